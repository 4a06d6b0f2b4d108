// GPU x NIC: relation, result and share of the path's maximum; each cell is a button that picks the pair.
import { isRate, median, unique } from './data.js';
import { el, scroller } from './dom.js';
import { shade } from './look.js';
import { kUnits, percent, significant, size, time } from './units.js';

const natural = new Intl.Collator('en', { numeric: true }).compare;

/** Per place: its best (or the wanted size's) figure of a test on the direct path. */
function figures(document, test, wantedSize) {
  const found = new Map();
  const column = isRate(test) ? 'median_gbps' : 'p50_ns';
  for (let row = 0; row < document.rows; row++) {
    if (document.test(row) !== test || document.text('path')[row] === 'staged') continue;
    const bytes = document.number('size_bytes')[row];
    if (wantedSize && bytes !== wantedSize) continue;
    const value = document.number(column)[row];
    if (!(value > 0)) continue;
    const place = document.place(row);
    const before = found.get(place);
    if (before && (isRate(test) ? before.value >= value : before.value <= value)) continue;
    const ceiling = document.number('ceiling_gbps')[row];
    found.set(place, { value, bytes, relation: document.text('relation')[row], share: isRate(test) && ceiling > 0 ? value / ceiling : NaN,
      unstable: document.text('unstable')[row] === 'true' });
  }
  return found;
}

/** Shares are told apart by lightness, so by everyone and on paper. */
const kHue = 205;

/** A pair is an outlier below this share of the median of its relation (three pairs or more). */
const kOutlier = 0.9;

/** Places that are far worse than others of their relation. */
function outliers(found, higher) {
  const byRelation = new Map();
  for (const { relation, value } of found.values()) byRelation.set(relation, [...(byRelation.get(relation) ?? []), value]);
  const worse = (each) => {
    const others = byRelation.get(each.relation);
    const middle = median(others);
    return others.length >= 3 && (higher ? each.value / middle : middle / each.value) < kOutlier;
  };
  return new Set([...found.entries()].filter(([, each]) => worse(each)).map(([place]) => place));
}

/** What the colours mean, from 0 to 100 %. */
function legend(byShare, higher) {
  const steps = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const colours = shade(kHue, share);
    return el('span', { style: `background:${colours.background};color:${colours.color}` }, percent(share));
  });
  const of = byShare ? 'of the theoretical maximum' : higher ? 'of the best pair' : 'of the best pair (its time / this time)';
  return el('p', { class: 'legend' }, ...steps, ` ${of} `, el('span', { class: 'outlier' }, 'outlined'), ` below ${percent(kOutlier)} of the median of its relation`);
}

export function heatmap(document, state, pick) {
  const test = state.heatTest;
  const found = figures(document, test, state.heatSize);
  const known = document.head.topology?.pairs;
  const relationOf = (place) => found.get(place)?.relation ?? (known && typeof known === 'object' ? known[place]?.relation : undefined);
  const places = unique([...found.keys(), ...(known && typeof known === 'object' ? Object.keys(known) : [])]).filter((place) => place.includes('/'));
  const split = (place) => [place.slice(0, place.indexOf('/')), place.slice(place.indexOf('/') + 1)];
  const memories = unique(places.map((place) => split(place)[0])).sort((a, b) => a.startsWith('host') - b.startsWith('host') || natural(a, b));
  const nics = unique(places.map((place) => split(place)[1])).sort(natural);
  const byShare = state.heatBy === 'share' && [...found.values()].some((each) => Number.isFinite(each.share));
  const values = [...found.values()].map((each) => each.value);
  const most = Math.max(...values);
  const least = Math.min(...values);
  const higher = isRate(test);
  const stands = outliers(found, higher);
  const [unit, divisor] = higher ? [state.unit, 1 / kUnits[state.unit]] : most >= 1e6 ? ['ms', 1e6] : most >= 1e3 ? ['us', 1e3] : ['ns', 1];
  const shown = (value) => significant(value / divisor, 3);
  const cell = (memory, nic) => {
    const place = `${memory}/${nic}`;
    const figure = found.get(place);
    const relation = relationOf(place);
    if (!figure) return el('td', { class: 'none' }, relation ? el('span', { class: 'relation' }, relation) : '', el('span', { class: 'quiet' }, relation ? 'not run' : '-'));
    const colours = shade(kHue, byShare && Number.isFinite(figure.share) ? figure.share : isRate(test) ? figure.value / most : least / figure.value);
    const share = Number.isFinite(figure.share);
    // Said, not shown: what the place in the table shows.
    const said = (text) => el('span', { class: 'visually-hidden' }, text);
    return el('td', {}, el('button', { type: 'button', class: `cell${stands.has(place) ? ' outlier' : ''}`, 'data-place': place, 'aria-pressed': state.place === place ? 'true' : 'false',
      style: `background:${colours.background};color:${colours.color}`, onclick: () => pick(state.place === place ? '' : place) },
    said(`${memory} and ${nic}: `), el('span', { class: 'relation' }, relation + (figure.unstable ? ' ~' : '')), said(`${figure.unstable ? ' unstable' : ''}${stands.has(place) ? ' far worse than its relation' : ''}, `),
    el('span', { class: 'figure' }, shown(figure.value)), said(` ${unit}, `), el('span', { class: 'share' }, share ? percent(figure.share) : size(figure.bytes)),
    said(share ? ` of the maximum, at ${size(figure.bytes)}` : ', its maximum is not known')));
  };
  if (places.length === 0) return el('p', {}, 'No pair of memory and NIC was measured.');
  return el('div', {}, el('p', { class: 'quiet' }, `${test} in ${unit}, ${state.heatSize ? `at ${size(state.heatSize)}` : 'at the best size'}. ~ marks an unstable run.`), legend(byShare, higher), scroller('Heat map of memory and NIC', el('table', { class: 'heat', 'aria-label': `${test} by memory and NIC` },
    el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'memory \\ NIC'), nics.map((nic) => el('th', { scope: 'col' }, nic)))),
    el('tbody', {}, memories.map((memory) => el('tr', {}, el('th', { scope: 'row' }, memory), nics.map((nic) => cell(memory, nic))))))));
}

/** Keys in the map: arrows go from cell to cell. */
export function arrows(event) {
  const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const at = event.target.closest?.('td');
  if (!move || !at) return;
  const body = at.closest('tbody');
  let row = [...body.rows].indexOf(at.parentElement);
  let column = at.cellIndex;
  for (;;) {
    row += move[0];
    column += move[1];
    const next = body.rows[row]?.cells[column];
    if (!next) return;
    const button = next.querySelector('button');
    if (button) { button.focus(); event.preventDefault(); return; }
  }
}

/** The path of the picked pair, hop by hop, where the document knows it. */
export function pathOf(document, place) {
  const pair = document.head.topology?.pairs?.[place];
  if (!pair || typeof pair !== 'object') return null;
  const hops = Array.isArray(pair.hops) ? pair.hops.map((hop) => `${hop?.bdf} (gen ${hop?.gen ?? '?'} x${hop?.width ?? '?'})`).join(', ') : '';
  const parts = [`relation ${pair.relation}`, pair.limited_by ? `limited by ${pair.limited_by}` : '', pair.common_ancestor ? `common ancestor ${pair.common_ancestor}` : '', hops ? `links: ${hops}` : ''];
  return `${place}: ${parts.filter(Boolean).join('; ')}`;
}
