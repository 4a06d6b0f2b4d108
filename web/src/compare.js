// What changed against another document or a baseline, and the history of a folder.
import { el, scroller, section, select } from './dom.js';
import { axis, Figure, limitsOf } from './chart.js';
import { ofIndex, ink } from './look.js';
import { change, rate, significant, time, kUnits } from './units.js';

const kFirstRows = 200;
const kOrder = ['regression', 'slower', 'inconclusive', 'new', 'gone', 'improvement', 'ok'];

/** [name, verdict, higher is better, before, after, change, worse, sessions, sessions, why] */
function read(cell) {
  const [name, verdict, higher, before, after, share, worse, sessionsBefore, sessionsAfter, why] = cell;
  return { name, verdict: verdict === 'inconclusive' && worse ? 'slower' : verdict, higher, before, after, share, sessionsBefore, sessionsAfter, why };
}

function words(verdict) { return verdict === 'slower' ? 'worse, not proven' : verdict; }

/** Twice and half are equally far from unchanged, so bars are logarithms of now / before. */
const effect = (cell) => (cell.share === null || cell.share <= -1 ? 0 : Math.log(1 + cell.share) * (cell.higher ? 1 : -1));

function row(cell, unit, full) {
  const shown = (value) => (value === null ? '-' : cell.higher ? rate(value, unit) : time(value));
  const good = effect(cell);
  const width = 50 * Math.abs(good) / full;
  const bar = el('span', { class: 'bar', 'aria-hidden': 'true' }, el('i', { class: good < 0 ? 'worse' : 'better', style: `width:${width}%;${good < 0 ? 'right:50%' : 'left:50%'}` }));
  return el('tr', { class: cell.verdict }, el('th', { scope: 'row' }, cell.name), el('td', {}, el('span', { class: `mark ${cell.verdict}` }, words(cell.verdict))),
    el('td', { class: 'number' }, shown(cell.before)), el('td', { class: 'number' }, shown(cell.after)), el('td', { class: 'number' }, cell.share === null ? '-' : change(cell.share)),
    el('td', {}, bar), el('td', { class: 'number' }, `${cell.sessionsBefore} / ${cell.sessionsAfter}`), el('td', {}, cell.why || ''));
}

export function comparison(raw, index, state, redraw) {
  const cells = raw.cells.map(read).sort((a, b) => kOrder.indexOf(a.verdict) - kOrder.indexOf(b.verdict)
    || Math.abs(b.share ?? 0) - Math.abs(a.share ?? 0));
  const wanted = state.changes === 'all' ? cells : cells.filter((cell) => cell.verdict !== 'ok');
  const shown = state.allCells || window.printing ? wanted : wanted.slice(0, kFirstRows);
  const full = Math.max(Math.log(1.05), ...cells.map((cell) => Math.abs(effect(cell))));
  return section(`comparison-${index}`, `${raw.after} compared with ${raw.before}`, raw.summary,
    el('ul', { class: 'remarks' }, raw.remarks.map((text) => el('li', {}, text))),
    el('div', { class: 'controls' }, select('Show', [['changed', 'what is not ok'], ['all', 'all results']], state.changes, (value) => { state.changes = value; redraw(); }, `changes-${index}`)),
    shown.length === 0 ? el('p', {}, 'All results are ok.')
      : el('p', { class: 'quiet' }, `A row is one test at one size on one pair. Bars: left is worse, right is better, on a logarithmic scale; a full bar is a factor of ${Math.exp(full).toFixed(2)}.`),
    shown.length === 0 ? null : scroller('Results compared', el('table',
      { class: 'compare', 'aria-label': 'Results compared' },
      el('thead', {}, el('tr', {}, ['test', 'verdict', 'before', 'now', 'change', 'worse | better', 'sessions', 'why'].map((text) => el('th', { scope: 'col' }, text)))),
      el('tbody', {}, shown.map((cell) => row(cell, state.unit, full))))),
    shown.length < wanted.length ? el('button', { type: 'button', onclick: () => { state.allCells = true; redraw(); } }, `Show all ${wanted.length} rows`) : null);
}

const dateOf = (session) => String(session?.[0] ?? '').slice(0, 10);

/** A folder's history of one cell, with the changes of its level. */
export class Trend {
  constructor(raw, index, state) {
    this.raw = raw;
    this.state = state;
    this.cells = [...raw.cells].sort((a, b) => b.changes.length - a.changes.length || (a.name < b.name ? -1 : 1));
    this.cell = this.cells[0];
    this.machine = String(raw.machine ?? raw.folder).replace(/-[0-9a-f]{8}$/, '');
    this.figure = new Figure(`trend-${index}`, 300);
    const changed = this.cells.filter((cell) => cell.changes.length > 0).length;
    this.element = section(`trend-section-${index}`, `History of ${this.machine}`,
      `${raw.folder}: ${raw.sessions.length} sessions of ${raw.cells.length} tests. The level of ${changed} changed (circular binary segmentation on ranks; a hint, not a verdict).`,
      el('div', { class: 'controls' }, select('Test', this.cells.map((cell, i) => [String(i), `${cell.changes.length ? '* ' : ''}${cell.name}`]), '0', (value) => { this.cell = this.cells[Number(value)]; this.draw(); }, `trend-cell-${index}`)),
      this.figure.element);
  }

  draw() {
    const { cell, raw, state } = this;
    if (!cell) return;
    const scale = cell.higher ? kUnits[state.unit] : 1;
    const shown = (value) => (cell.higher ? rate(value, state.unit) : time(value));
    const look = ofIndex(0);
    const points = cell.values.map((value, i) => [i + 1, value === null ? null : value * scale]);
    this.figure.draw({
      title: `${this.machine}: ${cell.name}`,
      say: cell.changes.map((each) => `Level changed by ${change(each.change)} at session ${each.at + 1}.`).join(' '),
      option: {
        legend: { show: false },
        xAxis: axis('value', 'date of the session', (value) => dateOf(raw.sessions[value - 1]), { min: 0, max: points.length + 1, minInterval: 1, gap: 30, splitLine: { show: false } }),
        yAxis: axis('value', cell.higher ? state.unit : 'p50', cell.higher ? (value) => significant(value, 6) : time, { gap: 56, ...limitsOf(points.map(([, y]) => y)) }),
        series: [{ name: cell.name, type: 'line', data: points, symbol: 'circle', symbolSize: 8, itemStyle: { color: look.color }, lineStyle: { color: look.color, width: 1.5 },
          markLine: { data: cell.changes.map((each) => ({ xAxis: each.at + 0.5, lineStyle: { color: ink().text, type: 'dashed' }, label: { formatter: change(each.change), color: ink().text } })) } }],
      },
      header: ['session', 'started', 'result', 'document'],
      rows: cell.values.map((value, i) => [String(i + 1), raw.sessions[i][0], value === null ? '-' : shown(value), raw.sessions[i][1]]),
      tip: (params) => { const i = params.dataIndex; return [[`session ${i + 1}, ${raw.sessions[i][0]}`, true], [shown(cell.values[i])], [raw.sessions[i][1]]]; },
    });
  }
}
