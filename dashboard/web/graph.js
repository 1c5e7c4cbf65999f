// Layers of a fabric, as a graph to draw: nodes {id, label, sub, layer, level, kind}, links {a, b,
// level, dashed, label}. Where to is worked out here, how it looks in the view.
import { compareNames, count, addressKey } from './format.js';
import { levelOf } from './ui.js';
import { recorded } from './model.js';

const alone = 48; // hosts that are drawn each for itself; more are counted at their switch

// ofDevices joins what several devices say. Their uplink cables are not known: links are logical.
export function ofDevices(ts, hosts) {
  const nodes = new Map(), links = [], nameOf = new Map();
  for (const t of ts) if (t.data.status) nameOf.set(t.data.status.device, t.name);
  const put = (id, n) => { if (!nodes.has(id)) nodes.set(id, { id, label: nameOf.get(id) ?? id, ...n }); return nodes.get(id); };
  for (const t of ts) {
    const s = t.data.status;
    if (!s) continue;
    const reflects = s.roles.includes('reflector');
    const n = put(s.device, { kind: reflects ? 'reflector' : 'switch', layer: reflects ? 0 : 1 });
    n.asked = t;
    n.level = t.down ? 'bad' : s.warnings.length > 0 || !s.synced ? 'warn' : 'good';
    n.sub = t.down ? 'no answer' : reflects ? `${count(s.counts.peers_established)} of ${count(s.counts.peers)} sessions` : `${s.counts.ports_up}/${s.counts.ports} ports up`;
  }
  const joined = new Map();
  for (const t of ts) {
    const s = t.data.status;
    for (const p of t.data.peers ?? []) {
      if (!s || p.refused || !p.device) continue;
      const far = put(p.device, { kind: p.role === 'reflector' ? 'reflector' : 'switch', layer: p.role === 'reflector' ? 0 : 1, level: 'idle', sub: 'not shown' });
      const key = [s.device, far.id].sort().join(' ');
      const level = t.down ? 'idle' : p.state === 'Established' ? 'good' : 'bad';
      const was = joined.get(key);
      if (!was || level === 'bad') joined.set(key, { a: p.role === 'reflector' ? far.id : s.device, b: p.role === 'reflector' ? s.device : far.id, level, dashed: true, label: `session ${nameOf.get(s.device) ?? s.device} – ${far.label}: ${t.down ? 'not known' : p.state}` });
    }
    for (const b of t.data.bfd?.sessions ?? []) {
      if (!s || !b.fault) continue;
      put(b.device, { kind: 'switch', layer: 1, level: 'idle', sub: 'not shown' });
      const key = ['path', s.device, b.device].sort().join(' ');
      joined.set(key, { a: s.device, b: b.device, level: 'bad', path: true, label: `path ${nameOf.get(s.device) ?? s.device} – ${nameOf.get(b.device) ?? b.device} has failed (${b.diag})` });
    }
  }
  links.push(...joined.values());
  const at = new Map();
  for (const h of hosts) {
    if (h.refused?.length) continue;
    put(h.device, { kind: 'switch', layer: 1, level: 'idle', sub: 'not shown' });
    (at.get(h.device) ?? at.set(h.device, []).get(h.device)).push(h);
  }
  const whole = hosts.length;
  for (const [device, list] of at) {
    if (whole <= alone) {
      for (const h of [...list].sort((x, y) => (compareNames(x.port, y.port) || (addressKey(x.addr) < addressKey(y.addr) ? -1 : 1)))) {
        const id = `${h.addr} ${h.device} ${h.port}`;
        put(id, { kind: h.role === 'target' ? 'target' : 'initiator', layer: 2, label: h.addr, sub: h.port, level: levelOf.host(h), host: h });
        links.push({ a: device, b: id, level: levelOf.host(h), label: `${h.addr} at ${h.port}: ${h.state}${h.reason === 'none' ? '' : `, ${h.reason}`}` });
      }
    } else {
      const n = nodes.get(device), off = list.filter((h) => h.state !== 'active').length;
      n.hosts = { initiators: list.filter((h) => h.role === 'initiator').length, targets: list.filter((h) => h.role === 'target').length, all: list.length, off };
      if (off > 0 && (n.level === 'good' || n.level === 'idle')) n.level = 'warn';
    }
  }
  return { nodes: [...nodes.values()], links, layers: ['Reflectors', 'Access switches', 'Hosts'], logical: true };
}

// ofFabric is a model: its cables are known. Layers are steps away from hosts.
export function ofFabric(t) {
  const f = t.kind === 'fabric' ? t.data.fabric : t.data.record;
  if (!f) return null;
  const at = t.kind === 'record' ? recorded.frame(t).now : null;
  const down = new Set(at?.down ?? []);
  const nodes = new Map(), links = [], seen = new Set();
  for (const s of f.switches ?? []) nodes.set(s.name, { id: s.name, label: s.name, kind: 'switch', level: s.off || down.has(s.name) ? 'bad' : 'good', sub: s.off || down.has(s.name) ? 'off' : t.kind === 'fabric' ? (s.attached ? 'has a daemon' : 'no daemon') : `${s.ports.length} ports` });
  for (const h of f.hosts ?? []) {
    const cut = (h.ports ?? []).filter((p) => p.carrier === false || down.has(`${h.name}:${p.name}`)).length;
    nodes.set(h.name, { id: h.name, label: h.name, kind: h.initiator === undefined ? 'host' : h.initiator ? 'initiator' : 'target', layer: 0, level: cut === 0 ? 'good' : cut < h.ports.length ? 'warn' : 'bad', sub: cut > 0 ? `${cut} of ${h.ports.length} ports down` : h.agent ? 'agent' : '' });
  }
  for (const n of [...(f.switches ?? []), ...(f.hosts ?? [])]) {
    for (const p of n.ports ?? []) {
      const far = (p.peer ?? '').split(/[:>/]/)[0];
      if (!nodes.has(far)) continue;
      const key = [`${n.name}:${p.name}`, p.peer].sort().join(' ');
      if (seen.has(key)) continue;
      seen.add(key);
      const off = p.carrier === false || down.has(`${n.name}:${p.name}`) || down.has(p.peer);
      links.push({ a: n.name, b: far, level: off ? 'bad' : 'good', label: `${n.name} ${p.name} – ${p.peer}: ${off ? 'down' : 'up'}` });
    }
  }
  // Breadth first from the hosts.
  const next = new Map();
  for (const l of links) for (const [x, y] of [[l.a, l.b], [l.b, l.a]]) (next.get(x) ?? next.set(x, []).get(x)).push(y);
  let edge = [...nodes.values()].filter((n) => n.layer === 0).map((n) => n.id), depth = 0;
  while (edge.length > 0) {
    depth++;
    const found = [];
    for (const id of edge) for (const o of next.get(id) ?? []) if (nodes.get(o).layer === undefined) { nodes.get(o).layer = depth; found.push(o); }
    edge = found;
  }
  const most = Math.max(0, ...[...nodes.values()].map((n) => n.layer ?? 0));
  for (const n of nodes.values()) n.layer = n.layer === undefined ? 0 : most - n.layer; // hosts below
  const names = Array.from({ length: most + 1 }, (_, i) => (i === most ? 'Hosts' : most === 1 ? 'Switches' : i === most - 1 ? 'Access switches' : i === 0 ? 'Spines' : `Layer ${most - i}`));
  return { nodes: [...nodes.values()], links, layers: names, logical: false };
}

// place gives each node x and y within a width; each layer in the order that crosses least, by the
// middle of what it is joined to above and below.
export function place(g, width) {
  const layers = g.layers.map((_, i) => g.nodes.filter((n) => n.layer === i).sort((a, b) => compareNames(a.label, b.label)));
  const near = new Map(g.nodes.map((n) => [n.id, []]));
  for (const l of g.links) {
    if (l.path) continue;
    near.get(l.a)?.push(l.b);
    near.get(l.b)?.push(l.a);
  }
  const spread = (list) => list.forEach((n, i) => { n.x = (width * (i + 0.5)) / list.length; });
  layers.forEach(spread);
  const byId = new Map(g.nodes.map((n) => [n.id, n]));
  for (let round = 0; round < 4; round++) {
    for (const list of round % 2 === 0 ? layers : layers.toReversed()) {
      const mid = new Map(list.map((n) => {
        const xs = near.get(n.id).map((id) => byId.get(id)).filter((o) => o && o.layer !== n.layer).map((o) => o.x);
        return [n, xs.length > 0 ? xs.reduce((a, b) => a + b, 0) / xs.length : n.x];
      }));
      list.sort((a, b) => mid.get(a) - mid.get(b) || compareNames(a.label, b.label));
      spread(list);
    }
  }
  return layers;
}
