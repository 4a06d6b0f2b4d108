// What all charts share: axes, tooltips, a table of the same points, redrawing.
import { init, use } from 'echarts/core';
import { CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import { AriaComponent, GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent, TooltipComponent } from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';
import { el, scroller, table } from './dom.js';
import { ink } from './look.js';

use([CustomChart, LineChart, ScatterChart, AriaComponent, GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent,
  TooltipComponent, SVGRenderer]);

/** All charts on the page by id, for redrawing and for tests. */
export const charts = new Map();

/** A band between two lines: one polygon through all points. */
export function band(name, points, color, z = 1) {
  return {
    name, type: 'custom', silent: true, z, clip: true, tooltip: { show: false }, encode: { x: 0, y: [1, 2] },
    data: points.map((point) => [point.x, point.low, point.high]),
    renderItem: (params, api) => {
      if (params.dataIndex !== 0) return undefined;
      const up = points.map((point) => api.coord([point.x, point.high]));
      const down = points.map((point) => api.coord([point.x, point.low])).reverse();
      return { type: 'polygon', shape: { points: [...up, ...down] }, style: { fill: color, opacity: 0.16 } };
    },
  };
}

/** Limits of a linear axis: from zero, or 5 % around values that lie within 5 % of their middle. */
export function limitsOf(values) {
  const known = values.filter((value) => Number.isFinite(value));
  if (known.length === 0) return {};
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const middle = (least + most) / 2;
  return least >= middle * 0.95 && most <= middle * 1.05 ? { min: Number((middle * 0.95).toPrecision(3)), max: Number((middle * 1.05).toPrecision(3)) } : { min: Math.min(0, least) };
}

export function axis(type, name, formatter, more = {}) {
  const { quiet, line } = ink();
  return { type, name, nameLocation: 'middle', nameGap: more.gap ?? 34, nameTextStyle: { color: quiet },
    axisLabel: { color: quiet, formatter, hideOverlap: true }, axisLine: { lineStyle: { color: line } },
    splitLine: { lineStyle: { color: line } }, minorSplitLine: { show: false }, ...more };
}

/** Whole decades around the values of a logarithmic axis. */
export function decades(values) {
  const known = values.filter((value) => value > 0 && Number.isFinite(value));
  if (known.length === 0) return {};
  return { min: 10 ** Math.floor(Math.log10(Math.min(...known)) + 1e-9), max: 10 ** Math.ceil(Math.log10(Math.max(...known)) - 1e-9) };
}

function tip(lines) {
  return el('div', {}, lines.map(([text, strong]) => el('div', { class: strong ? 'tip-title' : '' }, text)));
}

/**
 * A figure with a chart and its points as a table. `make()` gives
 * {title, option, header, rows, tip(params)} and is called again by redraw().
 */
export class Figure {
  constructor(id, height = 340) {
    this.id = id;
    this.canvas = el('div', { class: 'chart', role: 'img', style: `height:${height}px` });
    this.caption = el('figcaption', {});
    this.numbers = el('details', { class: 'points' });
    this.numbers.addEventListener('toggle', () => this.fillTable());
    this.nothing = el('p', { class: 'about' });
    this.element = el('figure', { id: `figure-${id}` }, this.caption, this.nothing, this.canvas, this.numbers);
  }

  draw(made) {
    this.made = made;
    this.caption.textContent = made.title;
    this.canvas.setAttribute('aria-label', `${made.title}. ${made.say ?? ''} The table below lists the points.`);
    this.numbers.replaceChildren(el('summary', {}, `Points of "${made.title}" as a table (${made.rows.length})`));
    this.fillTable();
    const empty = made.rows.length === 0;
    this.canvas.hidden = empty;
    this.numbers.hidden = empty;
    this.nothing.textContent = empty ? 'No runs of this kind.' : '';
    if (empty) {
      this.chart?.clear();
      return;
    }
    if (!this.chart) {
      this.chart = init(this.canvas, null, { renderer: 'svg' });
      charts.set(this.id, this);
    }
    const { text, quiet, card, line } = ink();
    const option = {
      animation: false, textStyle: { fontFamily: 'system-ui, "DejaVu Sans", sans-serif', color: text },
      grid: { left: 72, right: 24, top: 72, bottom: 52 },
      legend: { type: 'scroll', top: 4, left: 0, textStyle: { color: text }, itemWidth: 26, data: made.legend },
      tooltip: { trigger: 'item', backgroundColor: card, borderColor: line, textStyle: { color: text },
        formatter: (params) => (made.tip ? tip(made.tip(params)) : '') },
      ...made.option,
    };
    for (const series of option.series) if (series.markLine) series.markLine = { silent: true, symbol: 'none', animation: false, ...series.markLine };
    this.chart.setOption(option, { notMerge: true });
    this.canvas.style.color = quiet;
  }

  fillTable() {
    if (!this.numbers.open || this.numbers.querySelector('table')) return;
    this.numbers.append(scroller(`${this.made.title}, table`, table(this.made.title, this.made.header, this.made.rows)));
  }

  resize() { this.chart?.resize(); }
}
