// Bandwidth and latency over message size: a line for each relation, direct and staged.
import { groups, isRate, median } from './data.js';
import { axis, band, decades } from './chart.js';
import { dashes, ink, ofLine, ofRelation } from './look.js';
import { kUnits, rate, significant, size, time } from './units.js';

function pointsOf(document, rows, middle, low, high) {
  const bySize = new Map();
  const sizes = document.number('size_bytes');
  for (const row of rows) {
    if (!(document.number(middle)[row] > 0) || !(sizes[row] > 0)) continue;
    if (!bySize.has(sizes[row])) bySize.set(sizes[row], []);
    bySize.get(sizes[row]).push(row);
  }
  const values = (name, some) => some.map((row) => document.number(name)[row]).filter((value) => value > 0);
  return [...bySize.entries()].sort((a, b) => a[0] - b[0]).map(([x, some]) => {
    const y = median(values(middle, some));
    const lows = values(low, some);
    const highs = values(high, some);
    return { x, y, low: lows.length ? Math.min(...lows) : y, high: highs.length ? Math.max(...highs) : y, runs: some.length };
  });
}

/** The size from which on the other way is better, as `gdrperf` words it; 0: none, or to and fro. */
export function crossover(direct, staged, better) {
  const at = new Map(staged.map((point) => [point.x, point.y]));
  const both = direct.filter((point) => at.has(point.x)).map((point) => [point.x, better(at.get(point.x), point.y)]);
  let found = 0;
  for (let i = 1; i < both.length; i++) {
    if (both[i][1] === both[i - 1][1]) continue;
    if (found) return 0;
    found = both[i][0];
  }
  return found;
}

const name = (documents, index, group) => `${group.relation}${group.path ? ` ${group.path}` : ''}${documents.length > 1 ? `, ${documents[index].label}` : ''}`;

function linesOf(documents, state, test) {
  const lines = [];
  const columns = isRate(test) ? ['median_gbps', 'ci95_low_gbps', 'ci95_high_gbps'] : ['p50_ns', 'p50_ns', 'p99_ns'];
  documents.forEach((document, index) => {
    for (const group of groups(document, test, state.place)) {
      const points = pointsOf(document, group.rows, ...columns);
      if (points.length === 0) continue;
      const ceilings = group.rows.map((row) => document.number('ceiling_gbps')[row]).filter((value) => value > 0);
      lines.push({ ...group, index, points, name: name(documents, index, group), ceiling: ceilings.length ? Math.max(...ceilings) : 0, look: ofLine(group.relation, index, documents.length) });
    }
  });
  return lines;
}

function crossings(lines, isRateTest) {
  const marks = [];
  const better = isRateTest ? (staged, direct) => staged > direct : (staged, direct) => staged < direct;
  for (const line of lines.filter((each) => each.path === 'staged')) {
    const direct = lines.find((each) => each.relation === line.relation && each.index === line.index && each.path === '');
    const at = direct ? crossover(direct.points, line.points, better) : 0;
    if (at) marks.push({ at, line });
  }
  return marks;
}

/** Published results are shown next to measured ones of NICs only. */
function publishedOf(documents, published, lines) {
  if (!documents.every((document) => document.hardware)) return [];
  const relations = new Set(lines.map((line) => line.relation));
  const end = Math.max(...lines.flatMap((line) => line.points.map((point) => point.x)));
  return published.filter((each) => each.relations.some((relation) => relations.has(relation))).map((each) => ({ ...each, x: end }));
}

/** Lines that share a value share a mark: [[value, names]]. */
function gathered(pairs, near) {
  const all = [];
  for (const [value, name] of pairs) {
    const found = all.find((each) => Math.abs(each[0] / value - 1) < near);
    if (found) found[1].add(name);
    else all.push([value, new Set([name])]);
  }
  return all.map(([value, names]) => [value, [...names].join(', ')]);
}

/** Maxima are horizontal lines, crossovers of direct and staged vertical ones. */
function marksOf(lines, crosses, scale) {
  const { quiet } = ink();
  const ceilings = gathered(lines.filter((line) => line.ceiling && line.path === '' && line.index === 0).map((line) => [line.ceiling, line.relation]), 0.02);
  // Lines that lie close together share one label.
  const labels = gathered(ceilings.map(([value, names]) => [value, names]), 0.4);
  const labelOf = (names) => labels.find(([, all]) => all === names || all.startsWith(`${names}, `))?.[1] ?? '';
  const upright = gathered(crosses.map(({ at, line }) => [at, line.relation]), 0.001);
  return [
    ...ceilings.map(([value, names]) => ({ yAxis: value * scale,
      lineStyle: { color: ofRelation(names.split(',')[0]).color, type: 'dotted', width: 1.5 },
      label: { show: labelOf(names) !== '', formatter: `maximum of ${labelOf(names)}`, position: 'insideStartTop',
        color: quiet } })),
    ...upright.map(([at, names], i) => ({ xAxis: at, lineStyle: { color: ofRelation(names.split(',')[0]).color, type: 'dashed', width: 1 },
      label: { formatter: `crossover ${size(at)}${upright.length > 1 ? ` (${names})` : ''}`, position: 'end', distance: 3 + 13 * (i % 2), rotate: 0, color: quiet } })),
  ];
}

function seriesOf(line, scale, marks) {
  const { look } = line;
  const points = line.points.map((point) => ({ x: point.x, y: point.y * scale, low: point.low * scale, high: point.high * scale }));
  return [band(`${line.name} spread`, points, look.color), {
    name: line.name, type: 'line', z: 3, symbol: look.symbol, symbolSize: 7, showAllSymbol: true,
    data: points.map((point) => [point.x, point.y]), itemStyle: { color: look.color },
    lineStyle: { color: look.color, width: 2.2, type: dashes(line.path) }, markLine: marks.length ? { data: marks } : undefined }];
}

/** The axis ends where the sizes do; one size alone gets some room. */
function sizeLimits(lines) {
  const all = lines.flatMap((line) => line.points.map((point) => point.x));
  if (all.length === 0) return {};
  const [least, most] = [Math.min(...all), Math.max(...all)];
  return least < most ? { min: least, max: most } : { min: least / 2, max: most * 2 };
}

function legendOf(lines) { return lines.map((line) => line.name); }

export function bandwidth(documents, state, published) {
  const lines = linesOf(documents, state, state.rateTest);
  const scale = kUnits[state.unit];
  const marks = publishedOf(documents, published, lines);
  const upright = marksOf(lines, crossings(lines, true), scale);
  const series = lines.flatMap((line, i) => seriesOf(line, scale, i === 0 ? upright : []));
  if (marks.length) {
    series.push({ name: 'published', type: 'scatter', symbol: 'diamond', symbolSize: 11, z: 5, itemStyle: { color: 'transparent', borderColor: ink().text, borderWidth: 1.5 },
      data: marks.map((each) => ({ value: [each.x, each.gbps * scale], published: each })) });
  }
  const all = [...lines.flatMap((line) => [...line.points.map((point) => point.y), line.ceiling]), ...marks.map((each) => each.gbps)].map((gbps) => gbps * scale);
  const limits = state.scale === 'log' ? decades(all) : {};
  return {
    title: `${state.rateTest || 'Bandwidth'} over message size${state.place ? `, ${state.place}` : ''}`,
    say: lines.map((line) => `${line.name}: up to ${rate(Math.max(...line.points.map((point) => point.y)), state.unit)}.`).join(' '),
    legend: [...legendOf(lines), ...(marks.length ? ['published'] : [])],
    option: { xAxis: axis('log', 'message size', size, { logBase: 2, gap: 30, ...sizeLimits(lines) }),
      yAxis: axis(state.scale === 'log' ? 'log' : 'value', state.unit, (value) => significant(value), { gap: 48, ...limits }), series },
    header: ['line', 'size', state.unit, 'from', 'to', 'runs'],
    rows: lines.flatMap((line) => line.points.map((point) => [line.name, size(point.x), ...[point.y, point.low, point.high].map((gbps) => significant(gbps * scale)), String(point.runs)])),
    tip: (params) => {
      const each = params.data?.published;
      if (each) return [[`published: ${rate(each.gbps, state.unit)}`, true], [`${each.relations.join(' or ')}, ${each.gpu}, ${each.nic}`], [each.op], [each.source]];
      const line = lines.find((one) => one.name === params.seriesName);
      const point = line?.points[params.dataIndex];
      if (!point) return [[String(params.name)]];
      return [[`${line.name}, ${size(point.x)}`, true], [rate(point.y, state.unit)], [`spread ${rate(point.low, state.unit)} to ${rate(point.high, state.unit)}, ${point.runs} runs`],
        ...(line.ceiling ? [[`${(point.y / line.ceiling * 100).toFixed(0)} % of the maximum, ${rate(line.ceiling, state.unit)}`]] : [])];
    },
  };
}

export function latency(documents, state) {
  const lines = linesOf(documents, state, state.timeTest);
  const upright = marksOf([], crossings(lines, false), 1);
  const limits = decades(lines.flatMap((line) => line.points.flatMap((point) => [point.y, point.high])));
  return {
    title: `${state.timeTest || 'Latency'} over message size: p50, band up to p99${state.place ? `, ${state.place}` : ''}`,
    say: lines.map((line) => `${line.name}: from ${time(Math.min(...line.points.map((point) => point.y)))}.`).join(' '),
    legend: legendOf(lines),
    option: { xAxis: axis('log', 'message size', size, { logBase: 2, gap: 30, ...sizeLimits(lines) }), yAxis: axis('log', 'latency', time, { gap: 50, ...limits }),
      series: lines.flatMap((line, i) => seriesOf(line, 1, i === 0 ? upright : [])) },
    header: ['line', 'size', 'p50', 'p99', 'runs'],
    rows: lines.flatMap((line) => line.points.map((point) => [line.name, size(point.x), time(point.y), time(point.high), String(point.runs)])),
    tip: (params) => {
      const line = lines.find((one) => one.name === params.seriesName);
      const point = line?.points[params.dataIndex];
      return point ? [[`${line.name}, ${size(point.x)}`, true], [`p50 ${time(point.y)}`], [`p99 up to ${time(point.high)}, ${point.runs} runs`]] : [['']];
    },
  };
}
