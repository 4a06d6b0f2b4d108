// A result of gdrperf cluster: what each NIC makes of its links, node by rail, and the parts that are suspects.
import { axis, Figure } from './chart.js';
import { el, scroller, section, select, table } from './dom.js';
import { ofIndex, shade } from './look.js';
import { percent as share, rate, significant, size, time } from './units.js';

const natural = new Intl.Collator('en', { numeric: true }).compare;
const kWays = [['slower', 'the slower of both'], ['sends', 'when it sends'], ['receives', 'when it receives']];
/** Slower by so many percent is the fullest colour. */
const kFull = 20;

/** [host, rank, device, rail, shift, low, high when it sends, the same when it receives] */
function read([host, rank, device, rail, sends, sendsLow, sendsHigh, receives, receivesLow, receivesHigh]) {
  return { host, rank, device, rail, sends: [sends, sendsLow, sendsHigh], receives: [receives, receivesLow, receivesHigh] };
}

function effect(nic, way) {
  if (way !== 'slower') return nic[way];
  if (nic.sends[0] === null || nic.receives[0] === null) return nic.sends[0] === null ? nic.receives : nic.sends;
  return nic.sends[0] <= nic.receives[0] ? nic.sends : nic.receives;
}

const percent = (value) => (value === null ? '-' : `${value > 0 ? '+' : ''}${value.toFixed(1)} %`);
const interval = ([shift, low, high]) => (shift === null ? '-' : `${percent(shift)} (${percent(low)} to ${percent(high)})`);

const kHue = 18;

const lowest = (byRail) => Math.min(0, ...[...byRail.values()].map((nic) => effect(nic, 'slower')[0] ?? 0));
/** An effect whose interval holds zero cannot be told from noise. */
const isNoise = ([shift, low, high]) => shift === null || (low <= 0 && high >= 0);

/** Rows are hosts, the one with the slowest NIC first; ranks where a host has several NICs of one rail. */
function rowsOf(nics) {
  const taken = new Set();
  let perRank = false;
  for (const nic of nics) {
    const key = JSON.stringify([nic.host, nic.rail]);
    perRank = perRank || taken.has(key);
    taken.add(key);
  }
  const rows = new Map();
  for (const nic of nics) {
    const name = perRank ? `${nic.host}, rank ${nic.rank}` : nic.host;
    if (!rows.has(name)) rows.set(name, new Map());
    rows.get(name).set(nic.rail, nic);
  }
  return [...rows.entries()].sort((a, b) => lowest(a[1]) - lowest(b[1]) || natural(a[0], b[0]));
}

function map(nics, suspects, way) {
  const rails = [...new Set(nics.map((nic) => nic.rail))].sort((a, b) => a - b);
  const slow = new Set(suspects.filter((each) => each.verdict === 'slow' && each.nic !== null).map((each) => each.nic));
  const cell = (nic) => {
    if (!nic) return el('td', { class: 'none' }, '-');
    const noise = isNoise(effect(nic, way)) && !slow.has(nic.number);
    const shift = noise ? null : effect(nic, way)[0];
    const colours = shade(kHue, -(shift ?? 0) / kFull);
    return el('td', { class: `effect${slow.has(nic.number) ? ' suspect' : ''}`,
      style: noise ? '' : `background:${colours.background};color:${colours.color}` },
      noise ? el('span', { class: 'visually-hidden' }, 'within noise') : percent(shift), slow.has(nic.number) ? el('b', {}, ' slow') : '');
  };
  return scroller('Map of nodes and rails', el('table', { class: 'heat cluster', 'aria-label': 'Effect of each NIC, node by rail' },
    el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'node \\ rail'), rails.map((rail) => el('th', { scope: 'col' }, `rail ${rail}`)))),
    el('tbody', {}, rowsOf(nics).map(([name, byRail]) => el('tr', {}, el('th', { scope: 'row' }, name), rails.map((rail) => cell(byRail.get(rail))))))));
}

function suspectsTable(suspects) {
  if (suspects.length === 0) return el('p', {}, 'No part is suspected of being slow.');
  return scroller('Suspects', table('Suspects, and the outcome of their retests', ['part', 'verdict', 'effect', 'measurements', 'retests'],
    suspects.map((each) => [each.part, each.verdict, each.text, String(each.measurements ?? '-'), String(each.retests ?? '-')])));
}

function patternsTable(patterns, unit) {
  const list = (Array.isArray(patterns) ? patterns : []).filter((each) => each && typeof each === 'object');
  if (list.length === 0) return null;
  const shown = (value) => (typeof value === 'number' ? rate(value * 8, unit) : '-');
  return scroller('Other loads', table('Loads other than pairs: rates of the flows', ['load', 'step', 'flows', 'sum', 'lowest', 'median', 'highest', 'victim'],
    list.map((each) => [String(each.pattern), String(each.step), String(each.flows), ...['sum', 'least', 'median', 'most', 'victim'].map((name) => shown(each[`${name}_gbytes`]))])));
}

function collectivesTable(collectives, unit) {
  const list = (Array.isArray(collectives) ? collectives : []).filter((each) => each && typeof each === 'object');
  if (list.length === 0) return null;
  const shown = (value, text) => (typeof value === 'number' ? text(value) : '-');
  return scroller('Collectives', table('all_reduce of GPUs, by the conventions of nccl-tests', ['size', 'GPUs', 'hosts', 'library', 'time', 'bus bandwidth', 'of pairs', 'failed'],
    list.map((each) => [shown(each.size_bytes, size), String(each.gpus), String(each.hosts), String(each.library), shown(each.seconds, (value) => time(value * 1e9)),
      shown(each.bus_gbytes, (value) => rate(value * 8, unit)), shown(each.share_of_pairs, share), (Array.isArray(each.failed) ? each.failed : []).join('; ') || '-'])));
}

export class Cluster {
  constructor(raw, index, state) {
    this.raw = raw;
    this.state = state;
    this.way = 'slower';
    this.nics = raw.nics.map((nic, number) => ({ ...read(nic), number }));
    this.figure = new Figure(`cluster-${index}`, 320);
    this.place = el('div', {});
    this.patterns = el('div', {});
    this.collectives = el('div', {});
    const test = raw.test && typeof raw.test === 'object' ? raw.test : {};
    this.element = section(`cluster-section-${index}`, `Cluster: ${raw.path}`,
      `${raw.started}; ${this.nics.length} NICs, ${test.test ?? 'bandwidth'} of ${test.size_bytes ?? '?'} B, ${test.rounds_done ?? '?'} of ${test.rounds ?? '?'} rounds${raw.partial ? ', partial' : ''}. An effect is the rate of a NIC's links compared with those of the median NIC. Slowest first; a blank cell is within noise.`,
      el('div', { class: 'controls' }, select('Effect', kWays, this.way, (value) => { this.way = value; this.draw(); }, `cluster-way-${index}`)),
      this.place, suspectsTable(raw.suspects), this.patterns, this.collectives, this.figure.element);
  }

  draw() {
    this.place.replaceChildren(map(this.nics, this.raw.suspects, this.way));
    this.patterns.replaceChildren(patternsTable(this.raw.patterns, this.state.unit) ?? '');
    this.collectives.replaceChildren(collectivesTable(this.raw.collectives, this.state.unit) ?? '');
    const name = (nic) => `${nic.host} ${nic.device} (rank ${nic.rank})`;
    const series = ['sends', 'receives'].map((way, i) => ({ way, look: ofIndex(i), nics: this.nics.filter((nic) => nic[way][0] !== null) }));
    this.figure.draw({
      title: `Effects of ${this.nics.length} NICs on their links`,
      say: this.raw.suspects.map((each) => `${each.part}: ${each.text}, ${each.verdict}.`).join(' '),
      legend: series.map((each) => each.way),
      option: {
        xAxis: axis('value', 'NIC', (value) => String(value), { min: 0, max: Math.max(this.nics.length - 1, 1), minInterval: 1, gap: 30, splitLine: { show: false } }),
        yAxis: axis('value', '%', (value) => significant(value, 3), { gap: 44, scale: true }),
        series: series.map((each) => ({ name: each.way, type: 'scatter', symbol: each.look.symbol, symbolSize: 8, itemStyle: { color: each.look.color },
          data: each.nics.map((nic) => [nic.number, nic[each.way][0]]) })),
      },
      header: ['NIC', 'rail', 'sends (95 % interval)', 'receives (95 % interval)'],
      rows: this.nics.map((nic) => [name(nic), String(nic.rail), interval(nic.sends), interval(nic.receives)]),
      tip: (params) => {
        const nic = this.nics[params.data?.[0]];
        return nic ? [[name(nic), true], [`rail ${nic.rail}`], [`sends ${interval(nic.sends)}`], [`receives ${interval(nic.receives)}`]] : [['']];
      },
    });
  }
}
