// What hosts were told, each from the fault to the ack.
import { html, badge, levelOf, skeleton, nothing } from '../ui.js';
import { micros, duration, stamp, clock } from '../format.js';
import { recorded } from '../model.js';

export const title = 'Notices';
export const needs = ['notices'];

// steps of the way: where the time goes until each.
export const steps = [
  ['fault_at', 'fault seen', null],
  ['detected_at', 'told by the platform', 'origin'],
  ['origin_decided_at', 'taken up by its device', 'origin'],
  ['origin_sent_at', 'handed to its sessions', 'origin'],
  ['reflector_at', 'read by the reflector', 'up'],
  ['reflected_at', 'passed on', 'reflector'],
  ['received_at', 'read by this device', 'down'],
  ['queued', 'compared with what the host knows', 'here'],
  ['sent', 'frame to the host', 'here'],
  ['acked', 'ack of the host', 'host'],
  ['acted_at', 'the host has acted', 'acts'],
];

export const parts = { origin: 'device of the fault', up: 'to the reflector', reflector: 'reflector', down: 'to this device', here: 'this device', host: "host's ack", acts: 'the host acts (model)' };

// way gives the segments of a notice: {part, from, to, what}, in µs since its first moment.
export function way(n) {
  const known = steps.map(([k, what, part]) => ({ at: typeof n[k] === 'number' ? n[k] : micros(n[k]), what, part, key: k })).filter((s) => s.at != null);
  const out = [], first = known[0]?.at;
  let last = first;
  for (const s of known.slice(1)) {
    const to = Math.max(last, s.at); // clocks of two devices: never back
    out.push({ part: s.part, what: s.what, from: last - first, to: to - first, skew: s.at < last, key: s.key });
    last = to;
  }
  return { segments: out, total: last == null ? 0 : last - first, start: first, known };
}

const cached = new WeakMap();
const wayOf = (n) => cached.get(n) ?? (cached.set(n, way(n)), cached.get(n));

const bar = (n, most) => {
  const w = wayOf(n), whole = most || w.total || 1;
  return html`<span class="fall" aria-hidden="true">${w.segments.map((s) => html`<i class=${s.part} .style=${`left:${(100 * s.from) / whole}%;width:max(1px,${(100 * (s.to - s.from)) / whole}%)`}></i>`)}</span>`;
};

export const legend = (model) => html`<ul class="legend">${Object.entries(parts).filter(([k]) => k !== 'acts' || model).map(([k, v]) => html`<li><i class=${k}></i>${v}</li>`)}</ul>`;

const total = (n) => n.fault_to_acked_us ?? wayOf(n).segments.find((s) => s.key === 'acked')?.to ?? null;

const columns = (many, most) => [
  { id: 'time', title: 'Begun', width: '130px', mono: true, text: (r) => r.when ?? stamp(r.raw.fault_at ?? r.raw.queued), sort: (r) => wayOf(r.raw).start ?? 0 },
  ...(many ? [{ id: 'from', title: 'Device', width: '90px', text: (r) => r.from }] : []),
  { id: 'host', title: 'Host told', width: '120px', mono: true, text: (r) => r.raw.host },
  { id: 'subject', title: 'About', width: '120px', mono: true, text: (r) => r.raw.subject },
  { id: 'state', title: 'State', width: '105px', text: (r) => r.raw.state, cell: (r) => badge(r.raw.state === 'active' ? 'good' : 'bad', r.raw.state) },
  { id: 'reason', title: 'Reason', width: '110px', text: (r) => (r.raw.reason === 'none' ? '' : r.raw.reason) },
  { id: 'status', title: 'Status', width: '115px', text: (r) => r.raw.status, cell: (r) => badge(levelOf.notice(r.raw), r.raw.status) },
  { id: 'retries', title: 'Retries', width: '75px', num: true, text: (r) => String(r.raw.retries ?? 0), sort: (r) => r.raw.retries ?? 0 },
  { id: 'total', title: 'To ack, ms', width: '95px', num: true, text: (r) => (r.raw.clocks_differ ? 'clock' : total(r.raw) == null ? '' : (total(r.raw) / 1000).toFixed(3)), sort: (r) => (total(r.raw) ?? -1) / 1000 },
  { id: 'way', title: 'From fault to ack', width: 'minmax(240px,2fr)', plain: true, text: () => '', cell: (r) => bar(r.raw, most) },
];

export function all(page) {
  const ts = page.store.shown().filter((t) => t.data.notices || t.data.record?.notices);
  const key = ts.map((t) => `${t.id}:${t.at.notices ?? 0}:${t.kind === 'record' ? t.cursor : ''}`).join();
  const s = (page.state.notices ??= {});
  if (s.key !== key) {
    s.key = key;
    s.list = ts.flatMap((t) => (t.kind === 'record' ? recorded.notices(t) : t.data.notices).map((n) => ({ raw: n, from: t.name, when: n.when })));
    s.list.sort((a, b) => (wayOf(a.raw).start ?? 0) - (wayOf(b.raw).start ?? 0));
    const totals = s.list.map((r) => wayOf(r.raw).total).sort((a, b) => a - b);
    s.most = totals.length === 0 ? 1 : totals[Math.min(totals.length - 1, Math.floor(totals.length * 0.95))];
  }
  return s;
}

// details is the waterfall of one notice.
export function details(r) {
  const n = r.raw, w = wayOf(n);
  const begun = w.known[0];
  return html`<p class="lead">${n.host} was told that ${n.subject} is <strong>${n.state}</strong>${n.reason === 'none' ? '' : `: ${n.reason}`}</p>
    ${badge(levelOf.notice(n), n.status)} ${n.clocks_differ ? badge('warn', 'clocks differ') : nothing}
    ${begun ? html`<table class="plain steps"><thead><tr><th>Step</th><th class="num">After</th><th class="num">Since begin</th></tr></thead><tbody>
      <tr><th scope="row">${begun.what}</th><td class="num">${n.when ?? clock(n[begun.key], 6)}</td><td class="num">0</td></tr>
      ${w.segments.map((s) => html`<tr><th scope="row"><i class="swatch ${s.part}"></i>${s.what}</th><td class="num">${s.skew ? 'clock' : duration(s.to - s.from)}</td><td class="num">${duration(s.to)}</td></tr>
        <tr class="fallrow" aria-hidden="true"><td colspan="3"><span class="fall"><i class=${s.part} .style=${`left:${(100 * s.from) / (w.total || 1)}%;width:max(2px,${(100 * (s.to - s.from)) / (w.total || 1)}%)`}></i></span></td></tr>`)}
    </tbody></table>` : html`<p class="muted">No time is known of it.</p>`}
    <dl class="pairs">${[['Device of the fault', n.origin ?? 'this one'], ['Port', n.port], ['Sequence number', n.seq], ['Retries', n.retries]].filter(([, v]) => v != null && v !== '').map(([k, v]) => html`<dt>${k}</dt><dd>${v}</dd>`)}</dl>
    ${n.origin && !n.when ? html`<p class="muted">Times of two devices are by their two clocks.</p>` : nothing}
    ${n.when ? nothing : html`<p><a href=${`#/events?addr=${encodeURIComponent(n.subject)}`}>Events of ${n.subject}</a></p>`}`;
}

export function render(page) {
  const ts = page.store.shown();
  if (ts.length > 0 && ts.every((t) => t.kind === 'daemon' && !t.data.notices && !t.down)) return skeleton('notices');
  const s = all(page), st = (page.state.noticesScale ??= { own: false });
  return html`${legend(ts.some((t) => t.kind === 'record'))}<inof-table class="fill" id="notices" .label=${'Notices'} .file=${'notices'} .newest=${true} .columns=${columns(ts.length > 1, st.own ? 0 : s.most)} .preset=${page.params}
    .none=${'No host was told anything yet. Notices appear when a host, a port or a path fails or comes back.'}
    .extra=${html`<div class="segments" role="group" aria-label="Scale of the bars"><button aria-pressed=${!st.own} @click=${() => { st.own = false; page.draw(); }}>One scale, ${duration(s.most)}</button><button aria-pressed=${st.own} @click=${() => { st.own = true; page.draw(); }}>Each its own</button></div>`}
    .open=${(r) => page.open({ title: 'Notice', body: () => details(r) })} .rows=${s.list}></inof-table>`;
}
