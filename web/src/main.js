import { isRate, Results, sizesOf, testsOf } from './data.js';
import { charts, Figure } from './chart.js';
import { Cluster } from './cluster.js';
import { comparison, Trend } from './compare.js';
import { bandwidth, latency } from './curves.js';
import { batches, percentiles } from './distributions.js';
import { el, section, select } from './dom.js';
import { environment } from './environment.js';
import { arrows, heatmap, pathOf } from './heatmap.js';
import { Runs } from './runs.js';
import { size } from './units.js';

const data = JSON.parse(document.getElementById('data').textContent);
const documents = data.documents.map((raw) => new Results(raw));
const shown = documents.findLast((each) => each.rows > 0);
const tests = testsOf(documents);
const rates = tests.filter(isRate);
const times = tests.filter((test) => !isRate(test));
const sizes = sizesOf(documents);
const prefer = (wanted) => (sizes.includes(wanted) ? wanted : sizes[sizes.length >> 1] ?? 0);

const state = { unit: 'GB/s', scale: 'log', place: '', rateTest: rates[0] ?? '', timeTest: times[0] ?? '', heatTest: tests[0] ?? '', heatSize: 0, heatBy: 'share',
  seriesTest: tests[0] ?? '', size: prefer(65536), changes: 'changed', allCells: false };

const status = el('p', { class: 'visually-hidden', role: 'status', id: 'status' });
const heat = el('div', { id: 'heat', onkeydown: arrows });
const picked = el('p', { id: 'picked' });
const figures = { bandwidth: new Figure('bandwidth', 380), latency: new Figure('latency', 380), percentiles: new Figure('percentiles'), batches: new Figure('batches') };
const runs = new Runs(documents, (text) => { status.textContent = text; });
const trends = data.trends.map((raw, index) => new Trend(raw, index, state));
const clusters = data.clusters.map((raw, index) => new Cluster(raw, index, state));
/** Results of clusters alone have no runs of their own. */
const anyRuns = documents.some((each) => each.rows > 0);
const comparisons = el('div', { id: 'comparisons' });

function drawHeat() {
  if (!anyRuns) return;
  const focused = document.activeElement?.dataset?.place;
  heat.replaceChildren(heatmap(shown, state, pick));
  if (focused) [...heat.querySelectorAll('button')].find((button) => button.dataset.place === focused)?.focus();
  picked.replaceChildren(...(state.place ? [pathOf(shown, state.place) ?? `${state.place} is selected: charts and table show only this pair. `,
    el('button', { type: 'button', id: 'unpick', onclick: () => pick('') }, 'Show all pairs')] : []));
}

function drawComparisons() {
  const focused = document.activeElement?.id;
  comparisons.replaceChildren(...data.comparisons.map((raw, index) => comparison(raw, index, state, drawComparisons)));
  if (focused) document.getElementById(focused)?.focus();
}

function drawCharts() {
  for (const each of clusters) each.draw();
  if (!anyRuns) return;
  figures.bandwidth.draw(bandwidth(documents, state, data.published));
  figures.latency.draw(latency(documents, state));
  figures.percentiles.draw(percentiles(documents, state));
  figures.batches.draw(batches(documents, state));
  for (const trend of trends) trend.draw();
}

function pick(place) {
  state.place = place;
  runs.place = place;
  runs.page = 0;
  drawHeat();
  drawCharts();
  runs.draw();
  status.textContent = place ? `${place} is selected` : 'All pairs are shown';
}

function drawAll() {
  drawHeat();
  drawCharts();
  drawComparisons();
  if (anyRuns) runs.draw();
}

const set = (name, draw, convert = (value) => value) => (value) => { state[name] = convert(value); draw(); };
const named = (list) => list.map((each) => [each, each]);
const sized = (list) => list.map((each) => [String(each), size(each)]);

function build() {
  const names = [...documents.map((each) => each.label), ...clusters.map((each) => String(each.raw.path).split('/').pop())].join(', ');
  const app = document.getElementById('app');
  app.append(comparisons, ...clusters.map((each) => each.element));
  if (documents.length > 0 && !anyRuns) app.append(el('section', { id: 'empty' }, el('p', {}, `${documents.map((each) => each.path).join(', ')}: no runs, so there are no charts and no tables.`)), environment(documents));
  if (anyRuns) app.append(
    section('map', 'GPU-NIC matrix', 'Click a cell to see only that pair in the charts and the table below.',
      el('div', { class: 'controls' }, select('Test', named(tests), state.heatTest, set('heatTest', drawHeat), 'heat-test'),
        select('Size', [['0', 'best'], ...sized(sizes)], '0', set('heatSize', drawHeat, Number), 'heat-size'),
        select('Colour by', [['share', 'share of the maximum'], ['figure', 'result']], 'share', set('heatBy', drawHeat), 'heat-by')), heat, picked),
    section('curves', 'Over message size', `A line is the median of a relation\'s pairs, its band the spread of their 95 % intervals (latency: up to p99). Dotted: the path's theoretical maximum.${documents.length > 1 ? ' Each document has its colour, each relation its mark, and staged paths are dashed.' : ' Staged paths are dashed.'}`,
      el('div', { class: 'controls' }, select('Bandwidth test', named(rates), state.rateTest, set('rateTest', drawCharts), 'rate-test'),
        select('Axis', [['log', 'logarithmic'], ['linear', 'linear']], 'log', set('scale', drawCharts), 'scale'),
        select('Latency test', named(times), state.timeTest, set('timeTest', drawCharts), 'time-test')),
      el('div', { class: 'pair' }, figures.bandwidth.element, figures.latency.element)),
    section('distributions', 'At one size', 'Hollow marks: a percentile with fewer than ten samples beyond it. Dashed batches: an unstable run.',
      el('div', { class: 'controls' }, select('Size', sized(sizes), String(state.size), set('size', drawCharts, Number), 'size'),
        select('Batches of', named(tests), state.seriesTest, set('seriesTest', drawCharts), 'series-test')),
      el('div', { class: 'pair' }, figures.percentiles.element, figures.batches.element)),
    ...trends.map((trend) => trend.element), environment(documents), runs.element, status);
  document.getElementById('what').textContent = `gdrperf, ${names}`;
  document.getElementById('foot').textContent = `Made by ${data.tool}. GB/s is 1e9 bytes per second, Gb/s is 1e9 bits per second, MiB/s is 2^20 bytes per second.`;
}

function chooseTheme() {
  const names = ['system', 'light', 'dark'];
  const button = document.getElementById('theme');
  let chosen = 'system';
  try { chosen = localStorage.getItem('gdrperf-theme') ?? 'system'; } catch { /* refused to pages from files */ }
  const apply = () => {
    if (chosen === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    button.textContent = `Theme: ${chosen === 'system' ? 'as the system' : chosen}`;
  };
  button.addEventListener('click', () => {
    chosen = names[(names.indexOf(chosen) + 1) % names.length];
    try { localStorage.setItem('gdrperf-theme', chosen); } catch { /* not kept then */ }
    apply();
    drawHeat();
    drawCharts();
  });
  apply();
}

function listen() {
  const unit = document.getElementById('unit');
  unit.addEventListener('change', () => { state.unit = unit.value; drawAll(); });
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { drawHeat(); drawCharts(); });
  let pending = 0;
  window.addEventListener('resize', () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => { for (const figure of charts.values()) figure.resize(); });
  });
  let folded = [];
  const forPaper = (printing) => () => {
    window.printing = printing;
    for (const figure of charts.values()) figure.canvas.style.width = printing ? '680px' : '';
    for (const figure of charts.values()) figure.resize();
    drawAll();
    if (printing) folded = [...document.querySelectorAll('details:not(.points):not([open])')];
    for (const fold of folded) fold.open = printing;
  };
  window.addEventListener('beforeprint', forPaper(true));
  window.addEventListener('afterprint', forPaper(false));
}

chooseTheme();
build();
drawAll();
listen();
window.gdrperf = { charts, documents, clusters, state, drawnAfterMs: performance.now() };
