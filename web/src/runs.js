// All runs as a table: sorted, filtered, in pages; copied and saved whole.
import { el, scroller, section, select } from './dom.js';

const kPage = 100;
/** Paper takes so many rows; the CSV has all. */
const kOnPaper = 2000;
const kMain = ['relation', 'op', 'size_bytes', 'pair', 'client_device', 'client_buffer', 'server_buffer', 'path', 'direction', 'median_gbps', 'ci95_low_gbps', 'ci95_high_gbps',
  'efficiency', 'p50_ns', 'p99_ns', 'p999_ns', 'p9999_ns', 'unstable', 'unstable_reason', 'warnings'];

/** A spreadsheet runs what begins like a formula. */
const noFormula = (text) => (/^[=+@\t\r\n]/.test(text) || (/^-/.test(text) && Number.isNaN(Number(text))) ? `'${text}` : text);
const csvCell = (text) => {
  const safe = noFormula(text);
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

export class Runs {
  constructor(documents, say) {
    this.documents = documents;
    this.say = say;
    this.document = documents[documents.length - 1];
    this.all = false;
    this.filter = '';
    this.place = '';
    this.sort = null;
    this.page = 0;
    this.body = el('div', {});
    this.count = el('span', { class: 'quiet', role: 'status' });
    const box = el('input', { type: 'search', id: 'filter', placeholder: 'write_bw PIX 65536', oninput: () => { this.filter = box.value.toLowerCase(); this.page = 0; this.draw(); } });
    this.element = section('runs', 'All runs', 'Rates are in Gb/s and times in ns, as in the document. Copy and CSV export every row that matches the filter.',
      el('div', { class: 'controls' },
        documents.length > 1 ? select('Document', documents.map((document, i) => [String(i), document.label]), String(documents.length - 1), (value) => { this.document = documents[Number(value)]; this.page = 0; this.draw(); }, 'runs-document') : null,
        el('label', {}, 'Filter ', box),
        select('Columns', [['main', 'main'], ['all', 'all']], 'main', (value) => { this.all = value === 'all'; this.draw(); }, 'runs-columns'),
        el('button', { type: 'button', id: 'copy', onclick: () => this.copy() }, 'Copy'),
        el('button', { type: 'button', id: 'csv', onclick: () => this.save() }, 'Save as CSV'), this.count),
      this.body);
  }

  columns() {
    if (window.printing) return this.varying();
    const names = this.all ? this.document.names : kMain.filter((name) => this.document.names.includes(name));
    return names.filter((name) => this.all || this.document.raw[name].all !== '');
  }

  /** The columns whose values differ; a caption has the others. */
  varying() { return kMain.filter((name) => this.document.names.includes(name) && !('all' in this.document.raw[name])); }

  caption() {
    const { document } = this;
    if (!window.printing) return document.path;
    const same = kMain.filter((name) => document.raw[name]?.all).map((name) => `${name} ${document.raw[name].all}`);
    return `${document.path}; in all runs: ${same.join(', ')}`;
  }

  rows() {
    const { document } = this;
    const words = this.filter.split(/\s+/).filter(Boolean);
    const names = document.text('name');
    const rows = [];
    for (let row = 0; row < document.rows; row++) {
      if (this.place && document.place(row) !== this.place) continue;
      if (words.length) {
        const text = `${names[row]} ${document.text('size_bytes')[row]} ${document.text('warnings')[row]} ${document.text('unstable_reason')[row]}`.toLowerCase();
        if (!words.every((word) => text.includes(word))) continue;
      }
      rows.push(row);
    }
    if (this.sort) {
      const { name, down } = this.sort;
      const texts = document.text(name);
      const numbers = document.number(name);
      rows.sort((a, b) => {
        const order = Number.isNaN(numbers[a]) || Number.isNaN(numbers[b]) ? (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : 0) : numbers[a] - numbers[b];
        return down ? -order : order;
      });
    }
    return rows;
  }

  draw() {
    const { document } = this;
    const columns = this.columns();
    const rows = this.rows();
    const most = window.printing ? kOnPaper : kPage;
    const pages = Math.max(1, Math.ceil(rows.length / most));
    if (!window.printing) this.page = Math.min(this.page, pages - 1);
    const shown = window.printing ? rows.slice(0, most) : rows.slice(this.page * most, (this.page + 1) * most);
    this.count.textContent = `${rows.length} of ${document.rows} runs${this.place ? ` (${this.place})` : ''}`;
    const header = columns.map((name) => {
      const way = this.sort?.name === name ? (this.sort.down ? 'descending' : 'ascending') : 'none';
      return el('th', { scope: 'col', 'aria-sort': way }, el('button', { type: 'button', class: 'sort', 'data-column': name, onclick: () => {
        this.sort = { name, down: way === 'ascending' };
        this.draw();
        this.body.querySelector(`[data-column="${name}"]`)?.focus();
      } }, name, el('span', { 'aria-hidden': 'true' }, way === 'none' ? '' : way === 'ascending' ? ' ^' : ' v')));
    });
    const numeric = columns.map((name) => 'numbers' in document.raw[name] || /_(ns|gbps|bytes|s)$/.test(name));
    const texts = columns.map((name) => document.text(name));
    const pager = window.printing ? (pages === 1 ? null : el('p', {}, `The first ${most} of ${rows.length} runs are printed; "Save as CSV" has all.`)) : pages === 1 ? null : el('div', { class: 'controls' },
      el('button', { type: 'button', id: 'previous', disabled: this.page === 0, onclick: () => { this.page--; this.draw(); } }, 'Previous'),
      el('span', {}, `Page ${this.page + 1} of ${pages}`),
      el('button', { type: 'button', id: 'next', disabled: this.page === pages - 1, onclick: () => { this.page++; this.draw(); } }, 'Next'));
    this.body.replaceChildren(scroller('All runs', el('table', { class: 'runs' }, el('caption', { class: 'quiet' }, this.caption()), el('thead', {}, el('tr', {}, header)),
      el('tbody', {}, shown.map((row) => el('tr', {}, texts.map((column, i) => el('td', { class: numeric[i] ? 'number' : 'word', title: column[row].length > 40 ? column[row] : null }, column[row]))))))), ...(pager ? [pager] : []));
  }

  text(separator, cell) {
    const columns = this.columns();
    const texts = columns.map((name) => this.document.text(name));
    return [columns, ...this.rows().map((row) => texts.map((column) => column[row]))].map((line) => line.map(cell).join(separator)).join('\n') + '\n';
  }

  async copy() {
    const text = this.text('\t', (each) => noFormula(each).replaceAll(/[\t\n\r]/g, ' '));
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages from a file may be refused the clipboard; this way is old and works.
      const box = el('textarea', {}, text);
      document.body.append(box);
      box.select();
      document.execCommand('copy');
      box.remove();
    }
    this.say('Copied');
  }

  save() {
    const link = el('a', { href: URL.createObjectURL(new Blob([this.text(',', csvCell)], { type: 'text/csv' })), download: `${this.document.label.replace(/\.json$/, '')}.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    this.say('Saved as CSV');
  }
}
