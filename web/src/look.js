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
/** A document's line: the first is drawn through, others are dashed. */
export const dashes = (document, path) => (path === 'staged' ? 'dashed' : document === 0 ? 'solid' : [9, 3, 2, 3]);
