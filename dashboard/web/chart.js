// <inof-chart>: lines over time, drawn by uPlot in the colours of the page.
import uPlot from './vendor/uplot.js';

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

class Chart extends HTMLElement {
  #plot = null;
  #data = null;
  #key = '';
  #watch = null;

  // series: [{label, color, dash}] with color the name of a variable; format: of values.
  series = [];
  format = String;
  time = true;

  set data(d) {
    this.#data = d;
    this.#show();
  }

  connectedCallback() {
    this.#watch = new ResizeObserver(() => this.#plot?.setSize({ width: this.clientWidth, height: this.clientHeight }));
    this.#watch.observe(this);
    this.#show();
  }

  disconnectedCallback() {
    this.#watch?.disconnect();
    this.#plot?.destroy();
    this.#plot = null;
  }

  #show() {
    if (!this.isConnected || !this.#data) return;
    const key = JSON.stringify([this.series, css('--text'), css('--line')]);
    if (this.#plot && key === this.#key) {
      this.#plot.setData(this.#data);
      return;
    }
    this.#key = key;
    this.#plot?.destroy();
    const axis = { stroke: css('--muted'), grid: { stroke: css('--line'), width: 1 }, ticks: { stroke: css('--line'), width: 1 }, font: '11px system-ui, sans-serif' };
    this.#plot = new uPlot({
      width: this.clientWidth || 300, height: this.clientHeight || 160,
      legend: { live: true },
      cursor: { points: { size: 6 }, drag: { x: false, y: false } },
      scales: { x: { time: this.time }, y: { range: (u, min, max) => [Math.min(0, min ?? 0), max > 0 ? max * 1.1 : 1] } },
      axes: [{ ...axis, space: 70, ...(this.time ? { values: [[60, '{HH}:{mm}', null, null, null, null, null, null, 1], [1, '{HH}:{mm}:{ss}', null, null, null, null, null, null, 1]] } : {}) }, { ...axis, size: 72, values: (u, vals) => vals.map((v) => this.format(v)) }],
      series: [{ label: this.time ? 'time' : 'ms', value: this.time ? '{HH}:{mm}:{ss}' : undefined }, ...this.series.map((s) => ({
        label: s.label, stroke: css(s.color), width: 1.75, dash: s.dash, points: { show: false }, value: (u, v) => (v == null ? '–' : this.format(v)),
      }))],
    }, this.#data, this);
  }
}

customElements.define('inof-chart', Chart);
