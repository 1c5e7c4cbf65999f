// Hosts: where each is, how it stands, in which zones.
import { html, badge, levelOf, empty, skeleton } from '../ui.js';
import { ago, addressKey } from '../format.js';

export const title = 'Hosts';
export const needs = ['hosts'];

export const stateOf = (h) => (h.refused?.length ? 'refused' : h.conflict ? 'conflict' : h.state);

const columns = (many) => [
  { id: 'addr', title: 'Address', width: '140px', mono: true, text: (r) => r.addr, sort: (r) => addressKey(r.addr) },
  { id: 'state', title: 'State', width: '120px', text: stateOf, cell: (r) => badge(levelOf.host(r), stateOf(r)) },
  { id: 'reason', title: 'Reason', width: '120px', text: (r) => (r.reason === 'none' ? '' : r.reason) },
  { id: 'role', title: 'Role', width: '90px', text: (r) => r.role },
  { id: 'device', title: 'Device', width: '120px', text: (r) => r.device, sort: (r) => addressKey(r.device) },
  { id: 'port', title: 'Port', width: '110px', text: (r) => r.port },
  { id: 'zones', title: 'Zones', width: 'minmax(120px,1fr)', text: (r) => r.zones.join(', ') },
  { id: 'nqn', title: 'NQN', width: 'minmax(160px,2fr)', text: (r) => r.nqn ?? '' },
  ...(many ? [{ id: 'from', title: 'Told by', width: '110px', text: (r) => r.learned_from }] : []),
];

// all are the hosts of what is chosen, each attachment once: who has it at its own ports knows best.
export function all(page) {
  const ts = page.store.shown('daemon').filter((t) => t.data.hosts);
  const key = ts.map((t) => `${t.id}:${t.at.hosts}`).join();
  const s = (page.state.hosts ??= {});
  if (s.key === key) return s.list;
  s.key = key;
  if (ts.length === 1) return (s.list = ts[0].data.hosts);
  const by = new Map();
  for (const t of ts) {
    for (const h of t.data.hosts) {
      const k = `${h.addr} ${h.device} ${h.port}`, was = by.get(k);
      if (!was || (h.type === 'local' && was.type !== 'local')) by.set(k, h);
    }
  }
  return (s.list = [...by.values()]);
}

export function details(h) {
  const yes = (b) => (b ? 'yes' : 'no');
  const pairs = [['Address', h.addr], ['State', stateOf(h)], ['Reason', h.reason === 'none' ? '' : h.reason], ['Role', h.role], ['Service', h.service_port ? `${h.protocol}:${h.service_port}` : h.protocol],
    ['NQN', h.nqn], ['Access device', h.device], ['Access port', h.port], ['MAC', h.mac], ['Wants notices', yes(h.subscribes)], ['Zones', h.zones.join(', ')],
    ['Hard zoning', [h.hard_zoning, ...(h.hard_zoning_why ?? [])].join('; ')], ['Learned from', h.learned_from], ['Known for', ago(h.since)],
    ['Refused', (h.refused ?? []).join('; ')], ['In doubt', h.doubt ? 'its LLDP frames come from another MAC address than they say' : '']];
  return html`${badge(levelOf.host(h), stateOf(h))}<dl class="pairs">${pairs.filter(([, v]) => v != null && v !== '').map(([k, v]) => html`<dt>${k}</dt><dd class="wrap">${v}</dd>`)}</dl>
    <p><a href=${`#/events?addr=${encodeURIComponent(h.addr)}`}>Its events</a></p>`;
}

export function render(page) {
  const ts = page.store.shown('daemon');
  if (ts.length === 0) return empty('No device is chosen', 'The hosts of a model are in its topology.');
  if (ts.every((t) => !t.data.hosts && !t.down)) return skeleton('hosts');
  return html`<inof-table class="fill" id="hosts" .label=${'Hosts'} .file=${'hosts'} .columns=${columns(ts.length > 1)} .preset=${page.params}
    .none=${'No host is known. Hosts appear when they announce themselves by LLDP at an access port.'}
    .open=${(h) => page.open({ title: h.addr, body: () => details(h) })} .rows=${all(page)}></inof-table>`;
}
