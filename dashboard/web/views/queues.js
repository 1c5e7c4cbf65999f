// Priority flow control: each port against each priority.
import { html, empty, skeleton, badge } from '../ui.js';
import { count, percent, bytes, compareNames } from '../format.js';
import { recorded } from '../model.js';
import '../matrix.js';

export const title = 'Queues';
export const needs = ['telemetry', 'ports'];

const metrics = {
  pause: { title: 'Paused', of: (c) => c.pause, scale: () => 1, text: (v) => percent(v), color: '--c2' },
  pfc: { title: 'PFC frames', of: (c) => c.pfc, scale: (m) => m, text: (v) => `${short(v)}/s`, color: '--c4' },
  queue: { title: 'Queue', of: (c) => c.queue, scale: (m) => m, text: (v) => bytes(v), color: '--c1' },
  headroom: { title: 'Headroom', of: (c) => c.headroom, scale: (m) => m, text: (v) => bytes(v), color: '--c3' },
  deadlocks: { title: 'Deadlocks', of: (c) => c.deadlocks, scale: (m) => m, text: (v) => count(v), color: '--c2' },
};

const short = (n) => (n >= 1e6 ? `${(n / 1e6).toFixed(1)}M` : n >= 1e3 ? `${(n / 1e3).toFixed(1)}k` : n.toFixed(n < 10 && n > 0 ? 1 : 0));

const leaf = /^\/inof\/interfaces\/interface\[name=(.*?)\]\/priorities\/priority\[id=(\d)\]\/state\/([a-z-]+)$/;

// cells of a device: per port 8 of {pause, pfc, queue, headroom, deadlocks}, each undefined where nobody tells.
function ofDevice(t) {
  const now = t.data.telemetry;
  if (!now || t.cellsOf === t.at.telemetry) return t.cells ?? new Map();
  const raw = new Map();
  for (const l of now) {
    const m = leaf.exec(l.path);
    if (!m) continue;
    const port = raw.get(m[1]) ?? raw.set(m[1], []).get(m[1]);
    (port[m[2]] ??= { at: Date.parse(l.time) })[m[3]] = typeof l.value === 'string' && /^-?\d+$/.test(l.value) ? Number(l.value) : l.value;
  }
  // Readings are taken by the device, now and then: only a newer one makes a rate.
  const at = (r) => Math.max(0, ...[...(r ?? new Map()).values()].flatMap((l) => l.map((x) => x?.at ?? 0)));
  if (at(raw) > at(t.raw)) {
    t.rawBefore = t.raw;
    t.raw = raw;
  }
  const cells = new Map();
  for (const [name, list] of t.raw ?? []) {
    cells.set(name, Array.from({ length: 8 }, (_, i) => {
      const x = list[i], b = t.rawBefore?.get(name)?.[i];
      if (!x) return null;
      const s = b ? (x.at - b.at) / 1000 : 0;
      const rate = (k) => (x[k] == null || b?.[k] == null || s <= 0 ? undefined : Math.max(0, x[k] - b[k]) / s);
      const pause = rate('in-pause-time'), pfcIn = rate('in-pfc-frames'), pfcOut = rate('out-pfc-frames');
      return { pause: pause === undefined ? undefined : Math.min(1, pause / 1e9), pfc: pfcIn === undefined && pfcOut === undefined ? undefined : (pfcIn ?? 0) + (pfcOut ?? 0), queue: x['queue-bytes'], headroom: x['headroom-bytes'], deadlocks: x.deadlocks, deadlocked: x.deadlocked };
    }));
  }
  t.cellsOf = t.at.telemetry;
  t.cells = cells;
  return cells;
}

// ofModel are those of a model: readings [port, queue, paused ps, pfc frames, queue bytes, headroom bytes, deadlocks] of two moments.
function ofModel(now, before) {
  const cells = new Map();
  if (!now) return cells;
  const was = new Map((before?.queues ?? []).map((q) => [`${q.port} ${q.queue}`, q]));
  const ms = before ? now.ms - before.ms : 0;
  for (const q of now.queues ?? []) {
    const b = was.get(`${q.port} ${q.queue}`);
    const d = (k) => (ms > 0 ? Math.max(0, (q[k] ?? 0) - (b?.[k] ?? 0)) : undefined);
    const list = cells.get(q.port) ?? cells.set(q.port, Array(8).fill(null)).get(q.port);
    const pause = d('paused_ms'), pfc = d('pfc');
    list[q.queue] = { pause: pause === undefined ? undefined : Math.min(1, pause / ms), pfc: pfc === undefined ? undefined : (1000 * pfc) / ms, queue: q.bytes, headroom: q.headroom, deadlocks: q.deadlocks, deadlocked: q.deadlocked };
  }
  return cells;
}

export function gather(ts) {
  const rows = [], many = ts.length > 1;
  for (const t of ts) {
    let cells;
    if (t.kind === 'daemon') {
      cells = ofDevice(t);
    } else if (t.kind === 'fabric') {
      const f = t.data.fabric;
      if (f && f !== t.lastFabric) {
        t.fabricBefore = t.lastFabric;
        t.lastFabric = f;
      }
      const frame = (x) => x && { ms: x.now_ps / 1e9, queues: x.queues };
      cells = ofModel(frame(t.lastFabric), frame(t.fabricBefore));
    } else {
      const { now, before } = recorded.frame(t);
      cells = ofModel(now, before ?? (now && { ms: 0, queues: [] }));
      for (const p of t.data.record?.ports ?? []) if (!cells.has(p)) cells.set(p, Array(8).fill(null)); // rows stay where they are
    }
    for (const [port, list] of cells) rows.push({ label: many ? `${t.name} ${port}` : port, port, t, cells: list });
  }
  return rows.sort((a, b) => compareNames(a.label, b.label));
}

export function render(page) {
  const ts = page.store.shown();
  if (ts.length > 0 && ts.every((t) => t.kind === 'daemon' && !t.data.telemetry && !t.down)) return skeleton('counters');
  const s = (page.state.queues ??= { metric: 'pause' });
  const rows = gather(ts);
  if (rows.length === 0) {
    return empty('No priority flow control', 'No port that is shown has seen a PFC frame, or its driver does not tell. What a platform does not tell is absent here, never 0.');
  }
  const told = Object.entries(metrics).filter(([, m]) => rows.some((r) => r.cells.some((c) => c && m.of(c) != null)));
  const metric = told.some(([k]) => k === s.metric) || told.length === 0 ? s.metric : told[0][0];
  const m = metrics[metric];
  const value = (r, c) => { const x = rows[r].cells[c]; return x ? m.of(x) ?? null : null; };
  let top = 0;
  for (let r = 0; r < rows.length; r++) for (let c = 0; c < 8; c++) top = Math.max(top, value(r, c) ?? 0);
  const scale = m.scale(top) || 1;
  const dead = rows.filter((r) => r.cells.some((c) => c?.deadlocked));
  const words = (r, c) => {
    const x = rows[r].cells[c];
    if (!x) return `${rows[r].label}, priority ${c}: no PFC seen, or not told`;
    const parts = Object.values(metrics).filter((y) => y.of(x) != null).map((y) => `${y.title.toLowerCase()} ${y.text(y.of(x))}`);
    return `${rows[r].label}, priority ${c}: ${parts.join(', ') || 'two readings make a rate'}${x.deadlocked ? ', DEADLOCKED' : ''}`;
  };
  const data = {
    label: 'Heat map of ports and priorities', rows, cols: Array.from({ length: 8 }, (_, i) => ({ label: `priority ${i}` })), wide: 92, axes: ['ports', 'priorities'], color: m.color,
    value: (r, c) => { const v = value(r, c); return v == null ? null : v / scale; },
    text: (r, c) => { const v = value(r, c); return v == null ? '' : rows[r].cells[c].deadlocked ? '✕ deadlock' : m.text(v); },
    tell: words,
    open: (r, c) => page.open({ title: rows[r].label, body: () => html`<p class="lead">${words(r, c)}</p><table class="plain"><thead><tr><th>Priority</th>${told.map(([, y]) => html`<th class="num">${y.title}</th>`)}</tr></thead><tbody>
      ${rows[r].cells.map((x, i) => html`<tr><th scope="row">${i}</th>${told.map(([, y]) => html`<td class="num">${x && y.of(x) != null ? y.text(y.of(x)) : '–'}</td>`)}</tr>`)}</tbody></table>` }),
  };
  return html`<div class="bar-row"><div class="segments" role="group" aria-label="What is shown">${told.map(([k, x]) => html`<button aria-pressed=${k === metric} @click=${() => { s.metric = k; page.draw(); }}>${x.title}</button>`)}</div>
    <span class="muted">${count(rows.length)} ports · full colour: ${m.text(scale)}</span>${dead.length > 0 ? badge('bad', `${dead.length} deadlocked`) : ''}</div>
    <inof-matrix class="card fill" .data=${data}></inof-matrix>`;
}
