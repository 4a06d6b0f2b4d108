// Colours, marks and dashes. Okabe and Ito's colours, and a mark for each, so that
// relations can be told apart without colour, too.
const kDown = 'path://M0,0H10L5,9Z';
const kPlus = 'path://M0,3H3V0H6V3H9V6H6V9H3V6H0Z';
const kLook = {
  PIX: ['#0072b2', '#56b4e9', 'circle'],
  PXB: ['#00785a', '#2fc79b', 'diamond'],
  PHB: ['#a86f00', '#f0b429', 'triangle'],
  NODE: ['#a8497f', '#e08fbd', 'rect'],
  SYS: ['#c04e00', '#ff8a4c', kDown],
  HOST: ['#5b6472', '#aab4c3', kPlus],
};
const kMore = [['#0072b2', '#56b4e9'], ['#c04e00', '#ff8a4c'], ['#00785a', '#2fc79b'], ['#a8497f', '#e08fbd'],
  ['#a86f00', '#f0b429'], ['#5b6472', '#aab4c3'], ['#4b3fb5', '#9d94ff'], ['#8a1c3b', '#ff8fa8']];
const kMarks = ['circle', 'diamond', 'triangle', 'rect', kDown, kPlus, 'arrow', 'circle'];

export const dark = () => {
  const chosen = document.documentElement.dataset.theme;
  if (window.matchMedia('print').matches || window.printing) return false;
  return chosen ? chosen === 'dark' : window.matchMedia('(prefers-color-scheme: dark)').matches;
};
export const ofRelation = (relation) => {
  const look = kLook[relation] ?? kLook.HOST;
  return { color: look[dark() ? 1 : 0], symbol: look[2] };
};
export const ofIndex = (index) => ({ color: kMore[index % kMore.length][dark() ? 1 : 0], symbol: kMarks[index % kMarks.length] });
export const ink = () => (dark() ? { text: '#e6e9ef', quiet: '#aab2bf', line: '#39414d', card: '#161b22' }
  : { text: '#1b222c', quiet: '#55606e', line: '#dfe3e8', card: '#ffffff' });
/** A line's dash is its path: direct is drawn through, staged is dashed. */
export const dashes = (path) => (path === 'staged' ? 'dashed' : 'solid');
/** Of several documents each has its colour, and a relation its mark; one document's relations have colours. */
export const ofLine = (relation, index, documents) => (documents > 1 ? { color: ofIndex(index).color, symbol: ofRelation(relation).symbol } : ofRelation(relation));

/** Relative luminance (WCAG 2) of a colour in HSL, from 0 to 1. */
function luminance(hue, saturation, light) {
  const part = (n) => {
    const k = (n + hue / 30) % 12;
    const value = light / 100 - (saturation / 100) * Math.min(light / 100, 1 - light / 100) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(0) + 0.7152 * part(8) + 0.0722 * part(4);
}

/** One hue from light (0) to full (1), and text on it that has a contrast of at least 4.5. */
export function shade(hue, full) {
  const share = Math.max(0, Math.min(1, full));
  const saturation = dark() ? 45 : 65;
  const light = dark() ? 22 + 40 * share : 96 - 62 * share;
  return { background: `hsl(${hue} ${saturation}% ${light}%)`, color: luminance(hue, saturation, light) > 0.179 ? '#000000' : '#ffffff' };
}
