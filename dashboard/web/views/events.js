// What happens, as it happens.
import { html, badge, levelOf } from '../ui.js';
import { stamp, micros } from '../format.js';
import { recorded } from '../model.js';

export const title = 'Events';
export const needs = ['status'];

const fields = (e) => Object.entries(e.fields ?? {}).map(([k, v]) => `${k}=${v}`).join(' ');

const columns = (many) => [
  { id: 'time', title: 'Time', width: '150px', text: (r) => r.when ?? stamp(r.raw.time, 6), sort: (r) => (r.when ? r.raw.ms : micros(r.raw.time)), mono: true },
  ...(many ? [{ id: 'from', title: 'From', width: '110px', text: (r) => r.from }] : []),
  { id: 'kind', title: 'Kind', width: '120px', text: (r) => r.raw.kind, cell: (r) => badge(levelOf.event(r.raw), r.raw.kind) },
  { id: 'text', title: 'What', width: 'minmax(260px,3fr)', text: (r) => r.raw.text },
  { id: 'device', title: 'Device', width: '120px', text: (r) => r.raw.device ?? '' },
  { id: 'port', title: 'Port', width: '100px', text: (r) => r.raw.port ?? '' },
  { id: 'addr', title: 'Host', width: '130px', text: (r) => r.raw.addr ?? '' },
  { id: 'fields', title: 'Fields', width: 'minmax(140px,1fr)', text: (r) => fields(r.raw) },
];

// merged has the events of several targets in one list, oldest first; it is made anew only when one has come.
export function merged(page) {
  const ts = page.store.shown();
  const key = ts.map((t) => `${t.id}:${t.kind === 'record' ? t.cursor : t.kind === 'fabric' ? t.at.fabric : t.lastEvent}`).join();
  const s = (page.state.events ??= {});
  if (s.key !== key) {
    s.key = key;
    s.list = ts.flatMap((t) => of(t).map((e) => ({ raw: e, from: t.name, when: e.ms === undefined ? null : `${e.ms.toFixed(3)} ms` })));
    if (ts.length > 1) s.list.sort((a, b) => (micros(a.raw.time) ?? 0) - (micros(b.raw.time) ?? 0) || (a.raw.ms ?? 0) - (b.raw.ms ?? 0));
  }
  return s.list;
}

// of has the events of a target in one form.
function of(t) {
  if (t.kind === 'daemon') return t.events;
  if (t.kind === 'fabric') return (t.data.fabric?.events ?? []).map((e) => ({ time: e.time, kind: 'model', text: e.text, device: e.node }));
  return recorded.events(t).map((e) => ({ ms: e.ms, kind: e.kind, text: e.text, device: e.node, fields: e.to ? { to: e.to } : undefined }));
}

function details(r) {
  const e = r.raw;
  const pairs = [['Time', r.when ?? stamp(e.time, 6)], ['From', r.from], ['Kind', e.kind], ['Device', e.device], ['Port', e.port], ['Host', e.addr], ['Warning', e.warning], ['ID', e.id], ...Object.entries(e.fields ?? {})];
  return html`<p class="lead">${e.text}</p><dl class="pairs">${pairs.filter(([, v]) => v != null && v !== '').map(([k, v]) => html`<dt>${k}</dt><dd>${v}</dd>`)}</dl>`;
}

export function render(page) {
  const ts = page.store.shown(), rows = merged(page);
  const missed = ts.reduce((n, t) => n + t.missed, 0);
  return html`<inof-table class="fill" id="events" .label=${'Events'} .file=${'events'} .newest=${true} .columns=${columns(ts.length > 1)} .preset=${page.params}
    .none=${'Nothing has happened yet. Events appear here as they happen.'}
    .extra=${missed > 0 ? badge('warn', `${missed} were missed`) : ''}
    .open=${(r) => page.open({ title: 'Event', body: () => details(r) })} .rows=${rows}></inof-table>`;
}
