// Hosts, devices and commands, folded; what differs between documents is marked.
import { el, scroller, section, table } from './dom.js';

function flat(value, name, out) {
  if (value && typeof value === 'object') for (const [key, inner] of Object.entries(value)) flat(inner, name ? `${name}.${key}` : key, out);
  else out.set(name, value === null || value === undefined ? '-' : String(value));
}

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`);

/** Names that speak of errors, loss or waiting. */
const kOfTrouble = /err|discard|drop|retrans|out_of_sequence|timeout|downed|nak|retry|integrity|overrun|xmit_wait|cnp|ecn|duplicate/;

/** What the ports counted more after the runs than before them. */
function countersOf(documents) {
  const rows = documents.flatMap((document) => document.counters.map(([end, device, name, rise, runs]) =>
    [`${documents.length > 1 ? `${document.label}, ` : ''}${end} ${device}`, name + (kOfTrouble.test(name) ? ' (!)' : ''), `+${rise}`, String(runs)]));
  if (rows.length === 0) return null;
  const troubled = rows.filter((row) => row[1].endsWith('(!)')).length;
  return el('details', { id: 'counters', open: troubled > 0 }, el('summary', {}, `Port counters that rose during the runs (${rows.length} rose, ${troubled} of errors, loss or waiting)`),
    scroller('Counters', table('Port counters that rose, summed over all runs', ['port', 'counter', 'rise', 'runs in which it rose'],
      rows.sort((a, b) => b[1].endsWith('(!)') - a[1].endsWith('(!)')))));
}

export function environment(documents) {
  const columns = documents.map((document) => {
    const out = new Map([['document', document.path]]);
    for (const key of ['started', 'simulated', 'schema']) flat(document.head[key] ?? null, key, out);
    flat({ version: document.head.tool?.version, git: document.head.tool?.git }, 'tool', out);
    flat(document.head.hosts, 'hosts', out);
    flat({ source: document.head.topology?.source, gpus: document.head.topology?.gpus, nics: document.head.topology?.nics }, 'topology', out);
    if (document.head.partial !== undefined) flat(document.head.partial, 'partial', out);
    return out;
  });
  const names = [...new Set(columns.flatMap((column) => [...column.keys()]))];
  const rows = names.map((name) => {
    const values = columns.map((column) => column.get(name) ?? '-');
    const differs = new Set(values).size > 1 && !['document', 'started'].includes(name);
    return el('tr', { class: differs ? 'differs' : '' }, el('th', { scope: 'row' }, name + (differs ? ' (differs)' : '')), values.map((value) => el('td', {}, value)));
  });
  const commands = documents.map((document) => {
    const argv = Array.isArray(document.head.tool?.argv) ? document.head.tool.argv.map(quoted).join(' ') : 'not known';
    return el('pre', { tabindex: 0 }, argv);
  });
  const scenarios = documents.filter((document) => typeof document.head.scenario?.text === 'string').map((document) => [
    el('p', { class: 'quiet' }, `${document.label} was made by the scenario ${document.head.scenario.file}:`), el('pre', { tabindex: 0 }, document.head.scenario.text)]);
  return section('environment', 'Environment and commands', null,
    el('details', {}, el('summary', {}, scenarios.length ? 'Commands and scenarios' : 'Commands'), ...commands, ...scenarios.flat()),
    countersOf(documents),
    el('details', {}, el('summary', {}, `Hosts, GPUs and NICs (${names.length} facts)`), scroller('Environment', el('table', {},
      el('caption', { class: 'quiet' },
        documents.length > 1 ? 'A column for each document' : 'As recorded in the document'),
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'what'), documents.map((document) => el('th', { scope: 'col' }, document.label)))),
      el('tbody', {}, rows)))));
}
