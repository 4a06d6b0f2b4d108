// Rates are Gb/s and latencies ns in the data; what people see is made here.
export const kUnits = { 'GB/s': 1 / 8, 'Gb/s': 1, 'MiB/s': 1e9 / 8 / 1048576 };

export function significant(value, digits = 4) {
  if (!Number.isFinite(value)) return '-';
  if (value === 0) return '0';
  if (Math.abs(value) >= 10 ** (digits - 1)) return value.toFixed(0);
  return String(Number(value.toPrecision(digits)));
}

export const rate = (gbps, unit) => `${significant(gbps * kUnits[unit])} ${unit}`;

export function time(ns) {
  if (!Number.isFinite(ns)) return '-';
  if (ns >= 1e9) return `${significant(ns / 1e9, 3)} s`;
  if (ns >= 1e6) return `${significant(ns / 1e6, 3)} ms`;
  if (ns >= 1e3) return `${significant(ns / 1e3, 3)} us`;
  return `${significant(ns, 3)} ns`;
}

export function size(bytes) {
  if (!Number.isFinite(bytes)) return '-';
  for (const [unit, factor] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 1024]]) {
    if (bytes >= factor) return `${significant(bytes / factor, 4)} ${unit}`;
  }
  return `${significant(bytes, 4)} B`;
}

export const percent = (share, digits = 0) => (Number.isFinite(share) ? `${(share * 100).toFixed(digits)} %` : '-');
export const change = (share) => (Number.isFinite(share) ? `${share >= 0 ? '+' : ''}${(share * 100).toFixed(1)} %` : '-');
