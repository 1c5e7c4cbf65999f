// <inof-matrix>: cells of rows and columns on a canvas, as many as there are. The arrows move a
// cursor, Enter opens what is behind a cell; a line below says in words what the cell shows.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const labelWidth = 150, largest = 8192; // of a canvas, in pixels of the page

class Matrix extends HTMLElement {
  #d = null;            // {rows, cols, value, text, over, tell, open, scale, axes}
  #cell = 0;            // chosen size; 0: what fits
  #at = null;           // {r, c}
  #queued = false;
  #watch = null;
  #canvas = null;
  #live = null;
  #box = null;
  #themed = () => this.#later();

  // data: rows and cols [{label}]; value(r, c) 0..1 or null for none; text(r, c) in a cell;
  // over(r, c) {gained, lost} of a candidate; tell(r, c) in words; open(r, c).
  set data(d) {
    this.#d = d;
    if (this.#at && (this.#at.r >= d.rows.length || this.#at.c >= d.cols.length)) this.#at = null;
    this.#later();
  }

  connectedCallback() {
    if (!this.#box) {
      this.#box = document.createElement('div');
      this.#box.className = 'matrix-box';
      this.#box.tabIndex = 0;
      this.#box.setAttribute('role', 'application');
      this.#canvas = document.createElement('canvas');
      this.#canvas.setAttribute('aria-hidden', 'true');
      this.#live = document.createElement('p');
      this.#live.className = 'matrix-live';
      this.#live.setAttribute('role', 'status');
      const bar = document.createElement('div');
      bar.className = 'matrix-foot';
      const size = (text, label, f) => {
        const b = document.createElement('button');
        b.className = 'quiet';
        b.textContent = text;
        b.setAttribute('aria-label', label);
        b.addEventListener('click', f);
        return b;
      };
      bar.append(this.#live, size('−', 'Smaller cells', () => this.#size(-1)), size('+', 'Larger cells', () => this.#size(1)), size('Fit', 'Cells that fit', () => this.#size(0)));
      this.#box.append(this.#canvas);
      this.replaceChildren(this.#box, bar);
      this.#box.addEventListener('keydown', (e) => this.#key(e));
      this.#box.addEventListener('pointermove', (e) => this.#point(e));
      this.#box.addEventListener('click', (e) => { this.#point(e); this.#open(); });
      this.#box.addEventListener('scroll', () => this.#later());
    }
    this.#watch = new ResizeObserver(() => this.#later());
    this.#watch.observe(this.#box);
    addEventListener('theme', this.#themed);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', this.#themed);
    this.#later();
  }

  disconnectedCallback() {
    this.#watch?.disconnect();
    removeEventListener('theme', this.#themed);
    matchMedia('(prefers-color-scheme: dark)').removeEventListener('change', this.#themed);
  }

  #later() {
    if (this.#queued) return;
    this.#queued = true;
    requestAnimationFrame(() => {
      this.#queued = false;
      if (this.isConnected && this.#d) this.#draw();
    });
  }

  get #fit() {
    const d = this.#d, w = this.#box.clientWidth - labelWidth - 12, h = this.#box.clientHeight - this.#top - 12;
    const cw = d.wide ? Math.min(d.wide, w / Math.max(1, d.cols.length)) : Math.min(w / Math.max(1, d.cols.length), h / Math.max(1, d.rows.length));
    return Math.max(3, Math.min(d.wide ?? 34, Math.floor(cw)));
  }

  get #top() { return this.#d?.wide ? 44 : 96; } // room for the labels of columns

  get #w() { return this.#cell || this.#fit; }
  get #h() { return this.#d.wide ? Math.max(22, Math.min(this.#w, 26)) : this.#w; }

  #size(by) {
    this.#cell = by === 0 ? 0 : Math.max(2, Math.min(64, Math.round(this.#w * (by > 0 ? 1.5 : 1 / 1.5)) + (by > 0 ? 1 : 0)));
    this.#later();
  }

  #point(e) {
    if (!this.#d) return;
    const b = this.#box.getBoundingClientRect();
    const c = Math.floor((e.clientX - b.left + this.#box.scrollLeft - labelWidth) / this.#w), r = Math.floor((e.clientY - b.top + this.#box.scrollTop - this.#top) / this.#h);
    if (e.clientX - b.left < labelWidth || e.clientY - b.top < this.#top) return;
    if (r >= 0 && c >= 0 && r < this.#d.rows.length && c < this.#d.cols.length) this.#go(r, c);
  }

  #go(r, c) {
    if (this.#at?.r === r && this.#at?.c === c) return;
    this.#at = { r, c };
    this.#live.textContent = this.#d.tell(r, c);
    this.#later();
  }

  #key(e) {
    const d = this.#d, { r, c } = this.#at ?? { r: 0, c: -1 };
    if (!d || d.rows.length === 0 || d.cols.length === 0) return;
    if (e.key === 'Enter') return void this.#open();
    const to = { ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1], ArrowUp: [r - 1, c], ArrowDown: [r + 1, c], Home: [r, 0], End: [r, d.cols.length - 1], PageUp: [r - 10, c], PageDown: [r + 10, c] }[e.key];
    if (!to) return;
    e.preventDefault();
    const nr = Math.min(d.rows.length - 1, Math.max(0, to[0])), nc = Math.min(d.cols.length - 1, Math.max(0, to[1]));
    this.#go(nr, nc);
    const x = nc * this.#w, y = nr * this.#h, b = this.#box, w = b.clientWidth - labelWidth, h = b.clientHeight - this.#top;
    if (x < b.scrollLeft) b.scrollLeft = x;
    if (x + this.#w > b.scrollLeft + w) b.scrollLeft = x + this.#w - w;
    if (y < b.scrollTop) b.scrollTop = y;
    if (y + this.#h > b.scrollTop + h) b.scrollTop = y + this.#h - h;
  }

  #open() {
    if (this.#at) this.#d.open?.(this.#at.r, this.#at.c);
  }

  // Only what is on the screen is drawn: the canvas is as large as the box, and stays in place.
  #draw() {
    const d = this.#d, labelHeight = this.#top, box = this.#box, w = this.#w, h = this.#h, W = box.clientWidth, H = box.clientHeight, q = devicePixelRatio || 1;
    box.setAttribute('aria-label', d.label);
    if (W === 0 || H === 0) return;
    this.style.setProperty('--w', `${Math.min(1e7, labelWidth + w * d.cols.length + 8)}px`);
    this.style.setProperty('--h', `${Math.min(1e7, labelHeight + h * d.rows.length + 8)}px`);
    const c = this.#canvas;
    if (c.width !== Math.round(W * q) || c.height !== Math.round(H * q)) {
      c.width = Math.min(largest, Math.round(W * q));
      c.height = Math.min(largest, Math.round(H * q));
      c.style.width = `${W}px`;
      c.style.height = `${H}px`;
    }
    const g = c.getContext('2d');
    g.setTransform(q, 0, 0, q, 0, 0);
    g.fillStyle = css('--surface');
    g.fillRect(0, 0, W, H);
    const left = box.scrollLeft, top = box.scrollTop;
    const c0 = Math.floor(left / w), c1 = Math.min(d.cols.length, Math.ceil((left + W - labelWidth) / w)), r0 = Math.floor(top / h), r1 = Math.min(d.rows.length, Math.ceil((top + H - labelHeight) / h));
    const X = (i) => labelWidth + i * w - left, Y = (i) => labelHeight + i * h - top, gap = w >= 8 ? 1 : 0;
    const none = css('--idle-soft'), color = css(d.color ?? '--c1'), gained = css('--c3'), lost = css('--c2'), text = css('--text'), muted = css('--muted');
    g.save();
    g.beginPath();
    g.rect(labelWidth, labelHeight, W, H);
    g.clip();
    g.font = `${Math.min(12, Math.max(9, h - 12))}px system-ui, sans-serif`;
    g.textAlign = 'center';
    g.textBaseline = 'middle';
    for (let r = r0; r < r1; r++) {
      for (let k = c0; k < c1; k++) {
        const v = d.value(r, k), x = X(k), y = Y(r);
        if (v === undefined) continue;
        g.globalAlpha = 1;
        g.fillStyle = none;
        if (v === null) { // nobody tells
          if (w >= 8) {
            g.strokeStyle = none;
            g.strokeRect(x + 1.5, y + 1.5, w - 3, h - 3);
          }
        } else {
          g.fillRect(x, y, w - gap, h - gap);
          if (v > 0) {
            g.globalAlpha = 0.15 + 0.85 * Math.min(1, v);
            g.fillStyle = color;
            g.fillRect(x, y, w - gap, h - gap);
            g.globalAlpha = 1;
          }
        }
        const o = d.over?.(r, k);
        if (o?.gained) { // a plus, in a colour of its own
          g.fillStyle = gained;
          g.fillRect(x, y, w - gap, h - gap);
          if (w >= 10) bar(g, x, y, w, h, css('--surface'), true);
        }
        if (o?.lost) {
          const half = o.gained ? w / 2 : 0;
          g.fillStyle = lost;
          g.fillRect(x + half, y, w - gap - half, h - gap);
          if (w >= 10 && !o.gained) bar(g, x, y, w, h, css('--surface'), false);
        }
        const s = w >= 26 && d.text?.(r, k);
        if (s) {
          g.fillStyle = readable(mix(none, color, v > 0 ? 0.15 + 0.85 * Math.min(1, v) : 0));
          g.fillText(s, x + w / 2, y + h / 2 + 0.5, w - 4);
        }
      }
    }
    if (this.#at) {
      g.strokeStyle = text;
      g.lineWidth = 2;
      g.strokeRect(X(this.#at.c) - 1, Y(this.#at.r) - 1, w + 1, h + 1);
    }
    g.restore();
    // The labels: of each row and column where there is room, else of every nth.
    g.font = '11.5px system-ui, sans-serif';
    g.textBaseline = 'middle';
    const everyR = Math.ceil(14 / h), everyC = Math.ceil(15 / w);
    g.save();
    g.beginPath();
    g.rect(0, labelHeight, labelWidth, H);
    g.clip();
    g.textAlign = 'right';
    for (let r = r0; r < r1; r++) {
      const here = this.#at?.r === r;
      if (!here && (r % everyR !== 0 || (this.#at && Math.abs(this.#at.r - r) < everyR && everyR > 1))) continue;
      g.fillStyle = here ? text : muted;
      g.fillText(short(d.rows[r].label, 23), labelWidth - 8, Y(r) + h / 2, labelWidth - 12);
    }
    g.restore();
    g.save();
    g.beginPath();
    g.rect(labelWidth - 4, 0, W, labelHeight);
    g.clip();
    g.textAlign = 'left';
    for (let k = c0; k < c1; k++) {
      const here = this.#at?.c === k;
      if (!here && (k % everyC !== 0 || (this.#at && Math.abs(this.#at.c - k) < everyC && everyC > 1))) continue;
      g.fillStyle = here ? text : muted;
      if (d.wide) {
        g.textAlign = 'center';
        g.fillText(d.cols[k].label, X(k) + w / 2, labelHeight - 12, w - 4);
        continue;
      }
      g.save();
      g.translate(X(k) + w / 2, labelHeight - 6);
      g.rotate(-Math.PI / 3);
      g.fillText(short(d.cols[k].label, 17), 0, 0);
      g.restore();
    }
    g.restore();
    g.fillStyle = muted;
    g.textAlign = 'left';
    g.font = '600 11.5px system-ui, sans-serif';
    if (d.axes) {
      g.fillText(`${d.axes[1]} →`, 8, 14);
      g.fillText(`${d.axes[0]} ↓`, 8, labelHeight - 12);
    }
    if (this.#at) {
      const s = d.tell(this.#at.r, this.#at.c);
      if (this.#live.textContent !== s) this.#live.textContent = s;
    } else {
      this.#live.textContent = d.hint ?? 'Point at a cell, or move with the arrows.';
    }
  }
}

// mix lays a colour of the form #rrggbb over another one; readable is black or white, what is read better there.
const parts = (c) => (c.length === 4 ? [...c.slice(1)].map((x) => parseInt(x + x, 16)) : [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));
const mix = (under, over, share) => { const a = parts(under), b = parts(over); return a.map((x, i) => x + (b[i] - x) * share); };
const light = (rgb) => { const [r, g, b] = rgb.map((x) => { const s = x / 255; return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const readable = (rgb) => (1.05 / (light(rgb) + 0.05) > (light(rgb) + 0.05) / 0.05 ? '#fff' : '#000');

const short = (s, n) => (s.length > n ? `${s.slice(0, n - 1)}…` : s);

function bar(g, x, y, w, h, color, both) {
  const t = Math.max(2, w / 7), l = w * 0.5;
  g.fillStyle = color;
  g.fillRect(x + (w - 1 - l) / 2, y + (h - 1 - t) / 2, l, t);
  if (both) g.fillRect(x + (w - 1 - t) / 2, y + (h - 1 - l) / 2, t, l);
}

customElements.define('inof-matrix', Matrix);
