// The device, or the devices, at a glance.
import { html, badge, mark, levelOf, empty, skeleton, nothing } from '../ui.js';
import { count, duration, span, bits, bytes, stamp, ago, compareNames } from '../format.js';
import { merged } from './events.js';
import { recorded } from '../model.js';

export const title = 'Overview';
export const needs = ['ports', 'peers', 'latency', 'error-down'];

const tile = (level, label, value, under, href) => html`<a class="tile ${level}" href=${href}>
  <span class="tile-label">${label}</span><span class="tile-value">${value}</span><span class="tile-under">${level === 'plain' ? nothing : mark(level)}${under}</span></a>`;

function sums(ts) {
  const c = { local: 0, remote: 0, conflicts: 0, ports: 0, up: 0, peers: 0, established: 0, watched: 0, failed: 0, faults: 0 };
  for (const t of ts) {
    const n = t.data.status?.counts;
    if (!n) continue;
    c.local += n.hosts_local;
    c.remote = Math.max(c.remote, n.hosts_remote);
    c.conflicts += n.conflicts;
    c.ports += n.ports;
    c.up += n.ports_up;
    c.peers += n.peers;
    c.established += n.peers_established;
    c.watched += n.paths.watched;
    c.failed += n.paths.failed;
    c.faults = Math.max(c.faults, n.faults); // a device knows those of others, too
  }
  return c;
}

// slowest is the p99 of fault to ack over all reasons of all devices, of the newest.
function slowest(ts) {
  let worst = null;
  for (const t of ts) {
    for (const s of t.data.latency?.stages ?? []) {
      if (s.scope === 'told' && s.stage === 'acked' && s.recent.count > 0 && (!worst || s.recent.p99_us > worst.p99)) worst = { p99: s.recent.p99_us, count: s.recent.count };
    }
  }
  return worst;
}

function tiles(ts) {
  const c = sums(ts), w = slowest(ts), one = ts.length === 1;
  return html`<div class="tiles">
    ${tile(c.conflicts > 0 ? 'warn' : 'plain', 'Hosts', count(one ? c.local + c.remote : Math.max(c.local, c.remote)), c.conflicts > 0 ? `${count(c.conflicts)} in conflict` : `${count(c.local)} attached here`, '#/hosts')}
    ${tile(c.ports === 0 ? 'plain' : c.up === c.ports ? 'good' : 'warn', 'Access ports', c.ports === 0 ? '–' : html`${count(c.up)}<small> of ${count(c.ports)}</small>`, c.ports === 0 ? 'none here' : c.up === c.ports ? 'all up' : `${count(c.ports - c.up)} not up`, '#/overview')}
    ${tile(c.faults > 0 ? 'bad' : 'good', 'Port faults', count(c.faults), c.faults > 0 ? 'error-down' : 'none', '#/events?kind=fault|error-down')}
    ${tile(c.established === c.peers ? 'good' : 'bad', 'Sessions', html`${count(c.established)}<small> of ${count(c.peers)}</small>`, c.established === c.peers ? 'all established' : `${count(c.peers - c.established)} down`, '#/events?kind=peer')}
    ${tile(c.watched === 0 ? 'plain' : c.failed > 0 ? 'bad' : 'good', 'Paths', c.watched === 0 ? '–' : html`${count(c.watched - c.failed)}<small> of ${count(c.watched)}</small>`, c.watched === 0 ? 'none watched' : c.failed > 0 ? `${count(c.failed)} failed` : 'all work', '#/events?kind=path')}
    ${tile('plain', 'Fault to ack, p99', w ? duration(w.p99) : '–', w ? `of the newest ${count(w.count)}` : 'no fault told yet', '#/events')}
  </div>`;
}

// attention is what an operator should look at: faults of ports, then what devices warn of.
function attention(ts) {
  const list = [
    ...ts.flatMap((t) => (t.data['error-down'] ?? []).filter((f) => f.cause).map((f) => ({
      level: 'bad', from: t.name, text: `Port ${f.port} is error-down: ${f.cause}`,
      do: `${f.since ? `For ${ago(f.since)}. ` : ''}${f.time_left_s > 0 ? `It opens by itself in ${span(f.time_left_s)}.` : f.recovery_s > 0 ? '' : f.cause === 'link-down' ? 'It opens by itself when the link is back.' : `It stays so until inofctl port recover ${f.port}.`}`,
    }))),
    ...ts.flatMap((t) => (t.data.status?.warnings ?? []).map((w) => ({ level: 'warn', from: t.name, text: w.text, do: w.do }))),
  ];
  if (list.length === 0) {
    return ts.some((t) => t.loaded && !t.down) && sums(ts).faults === 0 ? html`<section class="card calm">${mark('good')}<div><strong>Nothing needs attention.</strong> <span class="muted">${ts.length === 1 ? 'The device checks' : 'The devices check'} ${ts.length === 1 ? 'itself' : 'themselves'} all the time; what is found appears here with what to do.</span></div></section>` : nothing;
  }
  return html`<section class="card" aria-labelledby="attention"><h2 id="attention">Needs attention</h2><ul class="warnings">${list.slice(0, 50).map((w) => html`
    <li>${mark(w.level)}<div><strong>${w.text}</strong>${ts.length > 1 ? html` <span class="muted">${w.from}</span>` : nothing}<div class="muted">${w.do}</div></div></li>`)}</ul>
    ${list.length > 50 ? html`<p class="muted">and ${count(list.length - 50)} more</p>` : nothing}</section>`;
}

function devices(ts) {
  return html`<section class="card"><h2>Devices</h2><div class="scroll" tabindex="0" role="region" aria-label="Devices"><table class="plain"><thead><tr><th>Device</th><th>Role</th><th>State</th><th class="num">Hosts</th><th class="num">Ports up</th><th class="num">Sessions</th><th class="num">Faults</th><th class="num">Running for</th></tr></thead><tbody>
    ${ts.map((t) => {
    const s = t.data.status, n = s?.counts;
    const level = t.down ? 'bad' : !s ? 'idle' : s.warnings.length > 0 || !s.synced ? 'warn' : 'good';
    const text = t.down ? 'no answer' : !s ? 'connecting' : !s.synced ? 'synchronizes' : s.warnings.length > 0 ? `${s.warnings.length} warnings` : 'good';
    return html`<tr><th scope="row">${t.name} <span class="muted light">${s?.device ?? ''}</span></th><td>${s ? s.roles.join(', ') || 'standalone' : '–'}</td><td>${badge(level, text)}</td>
      <td class="num">${n ? html`${count(n.hosts_local)} <span class="muted">+ ${count(n.hosts_remote)}</span>` : '–'}</td><td class="num">${n ? `${n.ports_up}/${n.ports}` : '–'}</td><td class="num">${n ? `${n.peers_established}/${n.peers}` : '–'}</td><td class="num">${n ? n.faults : '–'}</td><td class="num">${s ? span(s.uptime_s) : '–'}</td></tr>`;
  })}</tbody></table></div></section>`;
}

function traffic(ts) {
  const rows = new Map();
  for (const t of ts) {
    for (const x of t.samples) {
      const k = Math.round(x.t / 2) * 2, r = rows.get(k) ?? [0, 0];
      rows.set(k, [r[0] + x.rx, r[1] + x.tx]);
    }
  }
  const times = [...rows.keys()].sort((a, b) => a - b);
  const data = [times, times.map((k) => rows.get(k)[0]), times.map((k) => rows.get(k)[1])];
  return html`<section class="card"><h2>Traffic of access ports</h2>${times.length < 2 ? html`<p class="muted chart-none">Two readings make a rate: a moment.</p>` : html`
    <inof-chart .series=${[{ label: 'from hosts', color: '--c1' }, { label: 'to hosts', color: '--c2' }]} .format=${bits} .data=${data}></inof-chart>`}</section>`;
}

const stageNames = { decided: 'fault taken up', sent: 'sent to reflectors', 'at-reflector': 'at the reflector', reflected: 'reflected', received: 'received here', applied: 'applied', frame: 'frame to the host', ack: 'ack of the host', taken: 'taken up', notice: 'fault to frame', acked: 'fault to ack' };

function latency(ts) {
  const worst = new Map(); // of several devices the slowest counts
  for (const t of ts) {
    for (const x of t.data.latency?.stages ?? []) {
      if (x.scope !== 'told' || x.recent.count === 0) continue;
      const k = `${x.stage} ${x.reason ?? ''}`;
      if (!(worst.get(k)?.recent.p99_us >= x.recent.p99_us)) worst.set(k, { ...x, from: t.name });
    }
  }
  const rows = [...worst.values()];
  const most = Math.max(1, ...rows.map((s) => s.recent.p99_us));
  const name = (s) => `${stageNames[s.stage] ?? s.stage}${s.reason ? `, ${s.reason}` : ''}`;
  const wide = (us) => `width:${Math.max(0.5, 100 * Math.log10(1 + us) / Math.log10(1 + most))}%`;
  return html`<section class="card"><h2>From a fault to the host's ack</h2>${rows.length === 0 ? html`<p class="muted chart-none">${ts.every((t) => t.data.latency) ? 'No host here was told of a fault yet.' : 'A moment.'}</p>` : html`
    <div class="scroll short" tabindex="0" role="region" aria-label="Stages"><table class="plain bars"><thead><tr><th>Stage</th>${ts.length > 1 ? html`<th>Slowest</th>` : nothing}<th class="num">Median</th><th class="num">p99</th><th class="grow" aria-hidden="true"></th></tr></thead><tbody>
    ${rows.map((s) => html`<tr><th scope="row">${name(s)}</th>${ts.length > 1 ? html`<td class="muted">${s.from}</td>` : nothing}<td class="num">${duration(s.recent.p50_us)}</td><td class="num">${duration(s.recent.p99_us)}</td>
      <td class="grow" aria-hidden="true"><span class="bar"><i class="p99" .style=${wide(s.recent.p99_us)}></i><i class="p50" .style=${wide(s.recent.p50_us)}></i></span></td></tr>`)}</tbody></table></div>`}</section>`;
}

function faceplates(page, ts) {
  const with_ = ts.filter((t) => t.data.ports?.length > 0);
  if (with_.length === 0) return nothing;
  return html`<section class="card"><h2>Access ports</h2>${with_.map((t) => html`${ts.length > 1 ? html`<h3>${t.name}</h3>` : nothing}<ul class="plate">
    ${[...t.data.ports].sort((a, b) => compareNames(a.name, b.name)).map((p) => html`<li><button class="port ${levelOf.port(p)}" @click=${() => page.open({ title: `${t.name} ${p.name}`, body: () => port(t, p.name) })}
      title=${`${p.name}: ${p.state}`}>${mark(levelOf.port(p))}<span>${p.name}</span><small>${p.state === 'up' ? `${count(p.hosts)} ${p.hosts === 1 ? 'host' : 'hosts'}` : p.state}</small></button></li>`)}</ul>`)}</section>`;
}

// port is what is behind one port, as it is now.
export function port(t, name) {
  const p = t.data.ports?.find((x) => x.name === name);
  if (!p) return html`<p>There is no such port any more.</p>`;
  const c = p.counters, r = t.rates?.get(name);
  const pairs = [['State', p.state], ['Carrier', p.carrier ? 'yes' : 'no'], ['Configured', p.admin_up ? 'up' : 'down'], ['Hosts', count(p.hosts)], ['LLDP neighbours', count(p.neighbours)], ['Flaps', count(p.flaps)], ['Last flap', p.last_flap ? stamp(p.last_flap) : ''],
    ['MAC', p.mac], ['MTU', count(p.mtu)], ['From hosts', r ? bits(r.rx) : ''], ['To hosts', r ? bits(r.tx) : ''],
    ...(c ? [['Received', `${count(c.rx_frames)} frames, ${count(c.rx_bytes)} bytes`], ['Sent', `${count(c.tx_frames)} frames, ${count(c.tx_bytes)} bytes`], ['Errors', `${count(c.rx_errors)}, CRC ${count(c.rx_crc_errors)}`], ['Dropped', `${count(c.rx_drops)} received, ${count(c.tx_drops)} sent`]] : [])];
  return html`${badge(levelOf.port(p), p.state)}<dl class="pairs">${pairs.filter(([, v]) => v !== '').map(([k, v]) => html`<dt>${k}</dt><dd>${v}</dd>`)}</dl>
    <p><a href=${`#/hosts?device=${encodeURIComponent(t.device)}&port=${encodeURIComponent(name)}`}>Its hosts</a> · <a href=${`#/events?port=${encodeURIComponent(name)}`}>its events</a></p>`;
}

function latest(page) {
  const list = merged(page).slice(-12).reverse();
  return html`<section class="card"><h2>Latest events</h2>${list.length === 0 ? html`<p class="muted">Nothing has happened yet.</p>` : html`<ol class="latest">${list.map((r) => html`<li><time>${r.when ?? stamp(r.raw.time)}</time>${mark(levelOf.event(r.raw))}<span>${r.raw.text}</span></li>`)}</ol><p><a href="#/events">All events</a></p>`}</section>`;
}

// fabric is a model that runs.
function fabric(t) {
  const f = t.data.fabric;
  if (!f) return t.down ? nothing : skeleton(t.name);
  const daemons = f.switches.filter((x) => x.attached).length, off = f.switches.filter((x) => x.off).length, ports = f.hosts.flatMap((h) => h.ports), cut = ports.filter((p) => !p.carrier).length;
  const heard = f.hosts.flatMap((h) => h.ports.flatMap((p) => (p.heard ?? []).map((x) => ({ host: h.name, port: p.name, ...x }))));
  return html`<h2>${t.name} <span class="muted light">a model in real time</span></h2><div class="tiles">
    ${tile('plain', 'Virtual time', span(f.now_ps / 1e12), f.behind_ms > 50 ? `${f.behind_ms.toFixed(0)} ms behind` : 'keeps up', '#/overview')}
    ${tile(off > 0 ? 'bad' : daemons === f.switches.length ? 'good' : 'warn', 'Switches', html`${count(daemons)}<small> of ${count(f.switches.length)}</small>`, off > 0 ? `${off} off` : 'have a daemon', '#/topology')}
    ${tile(cut > 0 ? 'bad' : 'good', 'Ports of hosts', html`${count(ports.length - cut)}<small> of ${count(ports.length)}</small>`, cut > 0 ? `${count(cut)} down` : 'all up', '#/topology')}
    ${(f.storage ?? []).slice(0, 3).map((x) => tile(x.paths_up === x.paths ? 'good' : x.paths_up > 0 ? 'warn' : 'bad', `I/O of ${x.name}`, html`${count(Math.round(x.iops))}<small> /s</small>`, `${x.paths_up} of ${x.paths} paths`, '#/queues'))}</div>
    <section class="card"><h2>What hosts heard last</h2>${heard.length === 0 ? html`<p class="muted">No host was told anything yet.</p>` : html`<div class="scroll short" tabindex="0" role="region" aria-label="Notices that hosts heard"><table class="plain"><thead><tr><th>Host</th><th>Port</th><th>About</th><th>State</th><th>Reason</th></tr></thead><tbody>
      ${heard.slice(0, 500).map((x) => html`<tr><th scope="row">${x.host}</th><td>${x.port}</td><td>${x.subject}</td><td>${badge(x.state === 'active' ? 'good' : 'bad', x.state)}</td><td>${x.reason === 'none' ? '' : x.reason}</td></tr>`)}</tbody></table></div>`}</section>`;
}

const colors = ['--c1', '--c2', '--c3', '--c4', '--c5', '--c6', '--c7', '--c8'];

// record is a run that is replayed.
function record(t) {
  const r = t.data.record;
  if (!r) return t.down ? nothing : skeleton(t.name);
  const at = recorded.at(t), { now } = recorded.frame(t), pfc = (now?.queues ?? []).reduce((n, q) => n + q.pfc, 0), told = recorded.notices(t).length;
  const units = [...new Set(r.series.names.map((n) => n.split(' ').at(-1)))];
  return html`<h2>${r.name} <span class="muted light">${r.about ?? ''}</span></h2><div class="tiles">
    ${tile(now?.down?.length ? 'bad' : 'good', 'Ports without carrier', count(now?.down?.length ?? 0), now?.down?.length ? now.down.slice(0, 2).join(', ') : 'none', '#/topology')}
    ${tile('plain', 'PFC frames until now', count(pfc), 'sent and received', '#/queues')}
    ${tile('plain', 'Fullest queue', now?.queues?.length ? bytes(Math.max(...now.queues.map((q) => q.bytes))) : '–', now?.queues?.length ? now.queues.reduce((a, b) => (b.bytes > a.bytes ? b : a)).port : 'none has anything', '#/queues')}
    ${tile('plain', 'Notices of faults', count(told), `of ${count(r.notices.length)} in the run`, '#/notices')}</div>
    <div class="two">${units.map((u) => {
    const which = r.series.names.map((n, i) => [n, i]).filter(([n]) => n.split(' ').at(-1) === u).slice(0, 8);
    const until = r.series.times_ms.map((x) => x <= at);
    return html`<section class="card"><h2>${u === 'frames' ? 'XOFF frames' : u}</h2><inof-chart .time=${false} .series=${which.map(([n], i) => ({ label: n, color: colors[i] }))} .format=${(v) => (Math.abs(v) >= 1000 ? count(Math.round(v)) : String(Number(v.toFixed(2))))}
      .data=${[r.series.times_ms, ...which.map(([, i]) => r.series.values[i].map((v, k) => (until[k] ? v : null)))]}></inof-chart></section>`;
  })}</div>`;
}

export function render(page) {
  const shown = page.store.shown(), ts = page.store.shown('daemon');
  if (shown.length === 0) return empty('No device is chosen', 'Choose one above.');
  const models = shown.filter((t) => t.kind !== 'daemon').map((t) => (t.kind === 'fabric' ? fabric(t) : record(t)));
  if (ts.length === 0) return html`<div class="stack">${models}${latest(page)}</div>`;
  if (ts.every((t) => !t.loaded) && models.length === 0) return ts.some((t) => t.down) ? empty('No device answers', 'Is inofd running there? The page goes on asking.') : skeleton('the device');
  return html`<div class="stack">${tiles(ts)}${attention(ts)}${ts.length > 1 ? devices(ts) : nothing}
    <div class="two">${traffic(ts)}${latency(ts)}</div>${faceplates(page, ts)}${models}${latest(page)}</div>`;
}
