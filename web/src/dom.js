// Elements are built from text nodes only: what a document says is never read as HTML.
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (name === 'class') made.className = value;
    else made.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}

export function select(label, options, value, onchange, id) {
  const box = el('select', { id, onchange: () => onchange(box.value) },
    options.map(([key, text]) => el('option', { value: key }, text)));
  box.value = value;
  return el('label', { hidden: options.length === 0 }, `${label} `, box);
}

/** A table for people and screen readers. */
export function table(caption, header, rows, attributes = {}) {
  return el('table', attributes,
    el('caption', { class: 'quiet' }, caption),
    el('thead', {}, el('tr', {}, header.map((text) => el('th', { scope: 'col' }, text)))),
    el('tbody', {}, rows.map((row) => el('tr', {}, row.map((text, i) => (i === 0 ? el('th', { scope: 'row' }, text) : el('td', {}, text)))))));
}

export function section(id, title, about, ...children) {
  return el('section', { id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, title),
    about ? el('p', { class: 'about' }, about) : null, ...children);
}

export function scroller(label, ...children) {
  return el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, ...children);
}
