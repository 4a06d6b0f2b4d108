// One test at one size: percentiles, and batches in time.
import { groups, isRate, median } from './data.js';
import { axis, decades, limitsOf } from './chart.js';
import { dashes, ink, ofIndex, ofLine } from './look.js';
import { kUnits, rate, significant, size, time } from './units.js';

const kPercentiles = [['p50', 50], ['p90', 90], ['p99', 99], ['p999', 99.9], ['p9999', 99.99]];
const kEnoughBeyond = 10;
const kMostLines = 12;
const nines = (percent) => -Math.log10(1 - percent / 100);

export function percentiles(documents, state) {
  const lines = [];
  documents.forEach((document, index) => {
    for (const group of groups(document, state.timeTest, state.place)) {
      const rows = group.rows.filter((row) => document.number('size_bytes')[row] === state.size);
      const points = kPercentiles.map(([name, percent]) => ({
        percent, y: median(rows.map((row) => document.number(`${name}_ns`)[row])),
        beyond: Math.min(...rows.map((row) => document.number(`beyond_${name}`)[row]).filter((count) => count >= 0)),
      })).filter((point) => point.y > 0);
      if (points.length) lines.push({ ...group, index, points, name: `${group.relation}${group.path ? ' staged' : ''}${documents.length > 1 ? `, ${document.label}` : ''}` });
    }
  });
  const words = (point) => (point.beyond < kEnoughBeyond ? `${time(point.y)} (only ${point.beyond} samples beyond)` : time(point.y));
  return {
    title: `${state.timeTest || 'Latency'} at ${size(state.size)}: percentiles to p99.99${state.place ? `, ${state.place}` : ''}`,
    say: 'Hollow marks rest on fewer than 10 samples.',
    legend: lines.map((line) => line.name),
    option: {
      xAxis: axis('value', 'percentile', undefined, { min: 0, max: 4.2, gap: 30, splitLine: { show: false },
        axisTick: { customValues: kPercentiles.map(([, percent]) => nines(percent)) },
        axisLabel: { color: ink().quiet, customValues: kPercentiles.map(([, percent]) => nines(percent)),
          formatter: (value) => `p${kPercentiles.find(([, percent]) => Math.abs(nines(percent) - value) < 0.05)?.[1] ?? ''}` } }),
      yAxis: axis('log', 'latency', time, { gap: 50, ...decades(lines.flatMap((line) => line.points.map((point) => point.y))) }),
      series: lines.map((line) => {
        const look = ofLine(line.relation, line.index, documents.length);
        return { name: line.name, type: 'line', symbol: look.symbol, symbolSize: 9, itemStyle: { color: look.color }, lineStyle: { color: look.color, width: 2.2, type: dashes(line.path) },
          data: line.points.map((point) => ({ value: [nines(point.percent), point.y], itemStyle: point.beyond < kEnoughBeyond ? { color: ink().card, borderColor: look.color, borderWidth: 2 } : undefined })) };
      }),
    },
    header: ['line', ...kPercentiles.map(([, percent]) => `p${percent}`)],
    rows: lines.map((line) => [line.name, ...kPercentiles.map(([, percent]) => { const point = line.points.find((each) => each.percent === percent); return point ? words(point) : '-'; })]),
    tip: (params) => {
      const line = lines.find((each) => each.name === params.seriesName);
      const point = line?.points[params.dataIndex];
      return point ? [[`${line.name}, p${point.percent}`, true], [words(point)]] : [['']];
    },
  };
}

export function batches(documents, state) {
  const lines = [];
  let more = 0;
  documents.forEach((document, index) => {
    for (let row = 0; row < document.rows; row++) {
      if (document.test(row) !== state.seriesTest || document.number('size_bytes')[row] !== state.size) continue;
      if (state.place && document.place(row) !== state.place) continue;
      const values = document.series(row);
      if (values.length === 0) continue;
      if (lines.length === kMostLines) { more++; continue; }
      const cut = document.number('warmup_cut_s')[row] || 0;
      const step = (document.number('duration_s')[row] || values.length) / values.length;
      lines.push({ index, name: document.place(row) + (document.text('path')[row] === 'staged' ? ' staged' : '') + (documents.length > 1 ? `, ${document.label}` : ''),
        cut, unstable: document.text('unstable')[row] === 'true' ? document.text('unstable_reason')[row] || 'yes' : '',
        points: values.map((value, i) => [cut + (i + 0.5) * step, value]) });
    }
  });
  const rates = isRate(state.seriesTest);
  const scale = rates ? kUnits[state.unit] : 1;
  const shown = (value) => (rates ? rate(value, state.unit) : time(value));
  const cut = lines.length ? Math.max(...lines.map((line) => line.cut)) : 0;
  return {
    title: `${state.seriesTest || 'Runs'} at ${size(state.size)}: batches over time${more ? `, the first ${kMostLines} of ${kMostLines + more} runs` : ''}${state.place ? `, ${state.place}` : ''}`,
    say: `${lines.filter((line) => line.unstable).length} of ${lines.length} runs are unstable.`,
    legend: lines.map((line) => line.name),
    option: {
      xAxis: axis('value', 'seconds since the start of the run', (value) => significant(value, 3), { min: 0, gap: 30, splitLine: { show: false } }),
      yAxis: axis('value', rates ? state.unit : 'p50 of a batch', rates ? (value) => significant(value, 6) : time, { gap: 56, ...limitsOf(lines.flatMap((line) => line.points.map(([, y]) => y * scale))) }),
      series: lines.map((line, i) => {
        const look = ofIndex(i);
        return { name: line.name, type: 'line', symbol: look.symbol, symbolSize: 5, itemStyle: { color: look.color }, lineStyle: { color: look.color, width: 1.6, type: line.unstable ? 'dashed' : 'solid' },
          data: line.points.map(([x, y]) => [x, y * scale]),
          markArea: i === 0 && cut > 0 ? { silent: true, itemStyle: { color: ink().line, opacity: 0.5 }, label: { color: ink().quiet, position: 'insideTopLeft' }, data: [[{ name: 'warm-up, cut', xAxis: 0 }, { xAxis: cut }]] } : undefined };
      }),
    },
    header: ['run', 'stable', 'batches', 'lowest', 'median', 'highest'],
    rows: lines.map((line) => { const values = line.points.map((point) => point[1]); return [line.name, line.unstable ? `no: ${line.unstable}` : 'yes', String(values.length), shown(Math.min(...values)), shown(median(values)), shown(Math.max(...values))]; }),
    tip: (params) => [[params.seriesName, true], [`${significant(params.value[0], 3)} s: ${shown(params.value[1] / scale)}`]],
  };
}
