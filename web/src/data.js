// The documents as the program put them into the page: columns of text (see docs/how-to/report.md).

/** One document; row numbers stand for runs. */
export class Results {
  constructor(raw) {
    this.path = String(raw.path);
    this.head = raw.head && typeof raw.head === 'object' ? raw.head : {};
    this.rows = raw.rows;
    this.raw = raw.columns;
    this.names = Object.keys(raw.columns);
    this.packedSeries = raw.series ? raw.series.split(',') : [];
    /** [end, device, name, rise, runs in which it rose] */
    this.counters = Array.isArray(raw.counters) ? raw.counters : [];
    this.texts = new Map();
    this.numbers = new Map();
  }

  /** All texts of a column. */
  text(name) {
    if (!this.texts.has(name)) this.texts.set(name, this.unpack(this.raw[name]));
    return this.texts.get(name);
  }

  /** All numbers of a column, NaN where there is none. */
  number(name) {
    if (!this.numbers.has(name)) this.numbers.set(name, this.text(name).map((text) => (text === '' ? NaN : Number(text))));
    return this.numbers.get(name);
  }

  unpack(column) {
    if (!column) return new Array(this.rows).fill('');
    if ('all' in column) return new Array(this.rows).fill(column.all);
    if ('numbers' in column) return column.numbers.split(',');
    return column.at.split(',').map((index) => column.of[index]);
  }

  /** Batches of a run in Gb/s or ns. */
  series(row) {
    const packed = this.packedSeries[row];
    if (!packed) return [];
    const rate = this.number('median_gbps')[row];
    const figure = rate > 0 ? rate : this.number('p50_ns')[row];
    return packed.split(' ').map((share) => (share * figure) / 10000);
  }

  place(row) {
    return this.text('pair')[row] || `${this.text('client_buffer')[row]}/${this.text('client_device')[row]}`;
  }

  /** "write_bw", or with what else makes it another test. */
  test(row) {
    return this.text('op')[row] + (this.text('direction')[row] === 'bidirectional' ? ' bidirectional' : '');
  }

  get simulated() { return this.head.simulated === true || this.text('device_kind').includes('simulated'); }
  get hardware() { return this.rows > 0 && this.text('device_kind').every((kind) => kind === 'hardware'); }
  get label() { return this.path.split('/').pop(); }
}

export const kRelations = ['PIX', 'PXB', 'PHB', 'NODE', 'SYS', 'HOST'];
export const rank = (relation) => (kRelations.indexOf(relation) + 1 || 99);
const kTests = ['write_bw', 'read_bw', 'send_bw', 'write_lat', 'read_lat', 'send_lat'];
const testRank = (test) => (kTests.indexOf(test.split(' ')[0]) + 1 || 99) + (test.includes(' ') ? 0.5 : 0);
export const isRate = (test) => test.split(' ')[0].endsWith('_bw');

export function unique(values) { return [...new Set(values)]; }

export function testsOf(documents) {
  const all = new Set();
  for (const each of documents) for (let row = 0; row < each.rows; row++) all.add(each.test(row));
  return [...all].sort((a, b) => testRank(a) - testRank(b));
}

export function sizesOf(documents, test) {
  const all = new Set();
  for (const each of documents) {
    const sizes = each.number('size_bytes');
    for (let row = 0; row < each.rows; row++) if (!test || each.test(row) === test) all.add(sizes[row]);
  }
  return [...all].filter((size) => size > 0).sort((a, b) => a - b);
}

export function median(values) {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  if (sorted.length === 0) return NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Runs of one test by relation and path: [{relation, path, rows}], nearest first. */
export function groups(document, test, place) {
  const found = new Map();
  for (let row = 0; row < document.rows; row++) {
    if (document.test(row) !== test || (place && document.place(row) !== place)) continue;
    const relation = document.text('relation')[row];
    const path = document.text('path')[row] === 'staged' ? 'staged' : '';
    const key = `${relation} ${path}`;
    if (!found.has(key)) found.set(key, { relation, path, rows: [] });
    found.get(key).rows.push(row);
  }
  return [...found.values()].sort((a, b) => rank(a.relation) - rank(b.relation) || (a.path < b.path ? -1 : 1));
}
