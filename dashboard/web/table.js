// <inof-table>: any number of rows, of which only those on the screen are drawn; each column can
// be filtered and sorted, and what is left can be saved.
import { html, render, nothing } from './vendor/lit-html.js';
import { icon, save, csv } from './ui.js';
import { count, portKey } from './format.js';

const rowHeight = 32;

// sortable has numbers within names compare as numbers.
const sortable = (v) => (typeof v === 'number' ? v : portKey(v));

// matcher reads a filter: words (any of those with | between), !word for all others, >5 and <5 for numbers.
export function matcher(text) {
  text = text.trim();
  if (text === '') return null;
  const number = /^([<>])\s*(-?\d+(?:\.\d+)?)$/.exec(text);
  if (number) {
    const than = Number(number[2]);
    return number[1] === '>' ? (s, v) => Number(v ?? NaN) > than : (s, v) => Number(v ?? NaN) < than;
  }
  const not = text.startsWith('!');
  const words = (not ? text.slice(1) : text).toLowerCase().split('|').map((w) => w.trim()).filter((w) => w !== '');
  if (words.length === 0) return null;
  return (s) => words.some((w) => s.toLowerCase().includes(w)) !== not;
}

class Table extends HTMLElement {
  #columns = [];
  #rows = [];
  #view = null;         // rows after filters and order
  #filters = new Map(); // by the id of the column
  #sort = null;         // {id, down}
  #active = -1;
  #queued = false;
  #top = 0;
  #height = 600;
  #watch = null;
  #follow = true;

  // What a view sets.
  label = 'table';
  file = 'table';
  open = null;           // of a row, with Enter or a click
  newest = false;        // new rows come at the end of rows, and are shown first
  none = 'Nothing here yet.';
  extra = nothing;       // beside the buttons

  set columns(list) { this.#columns = list; this.#dirty(); }
  set rows(list) {
    if (list === this.#rows && list.length === this.#length) return;
    this.#rows = list;
    this.#length = list.length;
    this.#dirty();
  }
  #length = 0;
  // preset gives filters from an address: {id: text}.
  set preset(o) {
    const key = JSON.stringify(o ?? {});
    if (key === this.#preset) return;
    this.#preset = key;
    this.#filters = new Map(Object.entries(o ?? {}).filter(([, v]) => v !== ''));
    this.#dirty();
  }
  #preset = '{}';

  get view() {
    if (this.#view) return this.#view;
    const tests = [];
    for (const [id, text] of this.#filters) {
      const c = this.#columns.find((x) => x.id === id), m = matcher(text);
      if (c && m) tests.push((r) => m(c.text(r), c.sort?.(r)));
    }
    let v = this.#rows;
    if (tests.length > 0) v = v.filter((r) => tests.every((f) => f(r)));
    const by = this.#sort && this.#columns.find((c) => c.id === this.#sort.id);
    if (by) {
      const keyed = v.map((r) => [by.sort ? by.sort(r) : sortable(by.text(r)), r]);
      const d = this.#sort.down ? -1 : 1;
      keyed.sort((a, b) => (a[0] < b[0] ? -d : a[0] > b[0] ? d : 0));
      v = keyed.map((k) => k[1]);
    } else if (this.newest) {
      v = v.toReversed();
    }
    return (this.#view = v);
  }

  connectedCallback() {
    this.#watch = new ResizeObserver(() => this.#measure());
    this.#watch.observe(this);
    this.#dirty();
  }

  disconnectedCallback() { this.#watch?.disconnect(); }

  focusFilter() { this.querySelector('.th input')?.focus(); }

  #dirty() {
    this.#view = null;
    this.#later();
  }

  #later() {
    if (this.#queued || !this.isConnected) return;
    this.#queued = true;
    requestAnimationFrame(() => {
      this.#queued = false;
      if (this.isConnected) this.#draw();
    });
  }

  #measure() {
    const body = this.querySelector('.grid');
    if (body) this.#height = body.clientHeight;
    this.#later();
  }

  #setFilter(id, text) {
    if (text === '') this.#filters.delete(id);
    else this.#filters.set(id, text);
    this.#active = -1;
    const grid = this.querySelector('.grid');
    if (grid) grid.scrollTop = 0;
    this.#top = 0;
    this.#dirty();
  }

  #setSort(id) {
    if (this.#sort?.id !== id) this.#sort = { id, down: false };
    else if (!this.#sort.down) this.#sort = { id, down: true };
    else this.#sort = null;
    this.#dirty();
  }

  #key(e) {
    if (e.target.tagName === 'INPUT' || e.target.tagName === 'BUTTON') {
      if (e.key === 'Escape' && e.target.tagName === 'INPUT') {
        e.target.value = '';
        this.#setFilter(e.target.dataset.id, '');
        e.stopPropagation();
      }
      if (e.key !== 'ArrowDown' || e.target.tagName !== 'INPUT') return;
      this.querySelector('.grid').focus();
    }
    const page = Math.max(1, Math.floor(this.#height / rowHeight) - 2), last = this.view.length - 1;
    const to = { ArrowDown: this.#active + 1, ArrowUp: this.#active - 1, PageDown: this.#active + page, PageUp: this.#active - page, Home: 0, End: last }[e.key];
    if (to !== undefined && last >= 0) {
      e.preventDefault();
      this.#active = Math.min(last, Math.max(0, to));
      const grid = this.querySelector('.grid'), head = this.querySelector('.thead').offsetHeight, y = this.#active * rowHeight;
      if (y < grid.scrollTop) grid.scrollTop = y;
      else if (y + rowHeight + head > grid.scrollTop + grid.clientHeight) grid.scrollTop = y + rowHeight + head - grid.clientHeight;
      this.#top = grid.scrollTop;
      this.#draw();
    } else if (e.key === 'Enter' && this.view[this.#active]) {
      this.open?.(this.view[this.#active]);
    }
  }

  #save(as) {
    if (as === 'csv') save(`${this.file}.csv`, 'text/csv', csv(this.#columns.filter((c) => !c.plain), this.view));
    else save(`${this.file}.json`, 'application/json', JSON.stringify(this.view.map((r) => r.raw ?? r), null, 1));
  }

  #draw() {
    const view = this.view, n = view.length;
    const first = Math.max(0, Math.floor(this.#top / rowHeight) - 8);
    const last = Math.min(n, Math.ceil((this.#top + this.#height) / rowHeight) + 8);
    const id = (i) => `${this.id || this.file}-row-${i}`;
    const cell = (c, r) => html`<div role="gridcell" class="td ${c.num ? 'num' : ''} ${c.mono ? 'mono' : ''}" title=${c.text(r) ?? ''}>${c.cell ? c.cell(r) : c.text(r)}</div>`;
    const rows = [];
    for (let i = first; i < last; i++) {
      const r = view[i];
      rows.push(html`<div role="row" id=${id(i)} aria-rowindex=${i + 2} class="tr ${i === this.#active ? 'active' : ''} ${this.open ? 'opens' : ''}"
        @click=${() => { this.#active = i; this.open?.(r); this.#later(); }}>${this.#columns.map((c) => cell(c, r))}</div>`);
    }
    render(html`
      <div class="table-bar">
        <span class="muted" role="status">${n === this.#rows.length ? html`${count(n)} ${n === 1 ? 'row' : 'rows'}` : html`${count(n)} of ${count(this.#rows.length)} rows`}</span>
        ${this.#filters.size > 0 ? html`<button class="quiet" @click=${() => { this.#filters.clear(); this.#dirty(); }}>${icon('close')}Clear filters</button>` : nothing}
        <span class="grow"></span>${this.extra}
        <button class="quiet" @click=${() => this.#save('csv')}>${icon('save')}CSV</button>
        <button class="quiet" @click=${() => this.#save('json')}>${icon('save')}JSON</button>
      </div>
      <div class="grid" role="grid" tabindex="0" aria-label=${this.label} aria-rowcount=${n + 1}
        aria-activedescendant=${this.#active >= first && this.#active < last ? id(this.#active) : nothing}
        @keydown=${(e) => this.#key(e)}
        @scroll=${(e) => { this.#top = e.currentTarget.scrollTop; this.#height = e.currentTarget.clientHeight; this.#later(); }}>
        <div class="thead" role="rowgroup"><div role="row" class="tr" aria-rowindex="1">${this.#columns.map((c) => html`
          <div role="columnheader" class="th" aria-sort=${this.#sort?.id === c.id ? (this.#sort.down ? 'descending' : 'ascending') : 'none'}>
            <button class="sort" @click=${() => this.#setSort(c.id)}>${c.title}<span aria-hidden="true">${this.#sort?.id === c.id ? (this.#sort.down ? ' ↓' : ' ↑') : ''}</span></button>
            ${c.plain ? nothing : html`<input type="search" spellcheck="false" autocomplete="off" placeholder="filter" aria-label=${`Filter ${c.title}`} data-id=${c.id}
              .value=${this.#filters.get(c.id) ?? ''} @input=${(e) => this.#setFilter(c.id, e.target.value)}>`}
          </div>`)}</div></div>
        <div class="tbody" role="rowgroup" .style=${`padding-top:${first * rowHeight}px;height:${n * rowHeight}px`}>${rows}</div>
        ${n === 0 ? html`<div class="table-none" role="row"><div role="gridcell">${this.#rows.length === 0 ? this.none : 'No row matches the filters.'}</div></div>` : nothing}
      </div>`, this);
    const grid = this.querySelector('.grid');
    grid.style.setProperty('--cols', this.#columns.map((c) => c.width ?? 'minmax(90px,1fr)').join(' '));
    if (this.#height !== grid.clientHeight) {
      this.#height = grid.clientHeight;
      this.#later();
    }
  }
}

customElements.define('inof-table', Table);
