// What the page knows: for each target the last answer of each path that a view needs, when it
// came, and whether the target answers at all. Nothing here draws.

// How often a path is asked for while a view needs it, in ms. What takes long is asked for less
// often: never more than a tenth of the time.
const periods = {
  status: 2000, ports: 2000, peers: 5000, 'error-down': 5000, latency: 5000, bfd: 5000, notices: 3000,
  hosts: 10000, zones: 10000, lldp: 10000, zoning: 10000, telemetry: 2000, cluster: 10000,
  fabric: 1000, record: 1e12,
};

// What is asked for where a path has much that no view needs.
const asked = { telemetry: 'telemetry?path=' + encodeURIComponent('/inof/interfaces/interface') };

// Hosts come in columns: tens of thousands of them otherwise take seconds to write, send and read.
const hostColumns = 'application/vnd.inof.hosts+json';

const timeout = 30_000;            // for an answer, in ms
const largest = 256 << 20;         // of an answer, in bytes: beyond it the tab would die
const keptEvents = 50_000;         // of each target
const keptSamples = 600;           // of each chart
const streams = 4;                 // a browser has six connections to one place; more targets are asked again and again
const retry = 2000;                // ms

export class Failure extends Error {
  constructor(text, status, code) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

// ask gives the JSON of a path; a Failure says why not.
export async function ask(path, options = {}) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), timeout);
  try {
    let r;
    try {
      r = await fetch(path, { ...options, signal: stop.signal, credentials: 'same-origin', redirect: 'error' });
    } catch (e) {
      throw new Failure(stop.signal.aborted ? `no answer within ${timeout / 1000} s` : 'no connection', 0, 'unreachable');
    }
    let text;
    try {
      text = await limited(r);
    } catch (e) {
      throw e instanceof Failure ? e : new Failure('the answer broke off', 0, 'unreachable');
    }
    let value = null;
    try {
      value = text === '' ? null : JSON.parse(text);
    } catch {
      throw new Failure(r.ok ? 'the answer is no JSON' : `answered ${r.status}`, r.status, 'broken');
    }
    if (!r.ok) throw new Failure(String(value?.error ?? `answered ${r.status}`), r.status, String(value?.code ?? ''));
    return value;
  } finally {
    clearTimeout(timer);
  }
}

// limited reads an answer unless it is too large to be one.
async function limited(r) {
  if (!r.body) return r.text();
  const parts = [], reader = r.body.getReader();
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > largest) {
      await reader.cancel();
      throw new Failure(`the answer has more than ${largest >> 20} MB`, r.status, 'broken');
    }
    parts.push(value);
  }
  return new Blob(parts).text();
}

// Target is a device, a model that runs, or a recorded run.
class Target {
  constructor(shown, id) {
    this.id = id;
    this.kind = shown.kind;
    this.base = shown.base;
    this.given = shown.name;
    this.data = {};          // by path
    this.at = {};            // ms, when it came
    this.cost = {};          // ms that it took
    this.fault = {};         // Failure, by path
    this.due = {};
    this.flying = new Set();
    this.events = [];
    this.lastEvent = 0;
    this.missed = 0;
    this.stream = null;      // EventSource
    this.streamDue = 0;
    this.down = null;        // {since, why, status} while it does not answer
    this.samples = [];       // {t, rx, tx}
    this.life = '';          // which process answers
  }

  get name() { return this.data.status?.name || this.data.fabric?.name || this.data.record?.name || this.given; }
  get device() { return this.data.status?.device ?? this.name; }
  get main() { return this.kind === 'daemon' ? 'status' : this.kind; }
  get loaded() { return this.data[this.main] != null; }
}

export class Store {
  constructor() {
    this.targets = [];
    this.chosen = 'all';
    this.needs = new Set();
    this.listeners = new Set();
    this.login = null;       // what the log-in says; null: not asked for
    this.user = null;
    this.failure = null;     // why there is no list of targets
    this.paused = false;
    this.revision = 0;
  }

  changed() {
    this.revision++;
    for (const f of this.listeners) f();
  }

  // start asks for the targets, again and again until they are there.
  async start() {
    try {
      // A browser that a device serves directly logs in first; a proxy says at once that nobody has to.
      const who = await ask('/login');
      if (who?.role === '') {
        this.login ??= { text: '' };
        return void this.changed();
      }
      this.user = who?.name ? who : null;
      const list = await ask('/targets');
      this.targets = list.map((t, i) => new Target(t, i));
      this.failure = this.login = null;
      this.tick();
    } catch (e) {
      if (e.status === 401) this.login = { text: '' };
      else {
        this.failure = e;
        if (e.status !== 403) setTimeout(() => this.start(), retry);
      }
    }
    this.changed();
  }

  async enter(token) {
    try {
      await ask('/login', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token }) });
      this.login = null;
      await this.start();
    } catch (e) {
      this.login = { text: e.status === 401 ? 'This token is not known here.' : e.message };
      this.changed();
    }
  }

  async leave() {
    await ask('/login', { method: 'DELETE' }).catch(() => {});
    location.reload();
  }

  // shown are the targets that were chosen.
  shown(kind) {
    return this.targets.filter((t) => (this.chosen === 'all' || String(t.id) === this.chosen) && (!kind || t.kind === kind));
  }

  need(paths) {
    this.needs = new Set(paths);
    this.tick();
  }

  refresh() {
    for (const t of this.targets) t.due = {};
    this.tick();
  }

  // tick asks for what is due; it is called twice a second.
  tick() {
    if (this.login || this.paused) return;
    const now = Date.now();
    for (const t of this.targets) {
      const want = t.kind === 'daemon' ? new Set(['status', ...this.needs]) : new Set([t.kind]);
      for (const path of want) {
        if (!(path in periods) || (t.kind === 'daemon') === (path === 'fabric' || path === 'record')) continue;
        if (t.flying.has(path) || (t.due[path] ?? 0) > now) continue;
        if (t.down && path !== t.main) continue;
        if (path === 'zoning' && !writes(t)) continue;
        this.fetch(t, path);
      }
      if (t.kind === 'daemon' && !t.down && t.loaded) this.follow(t, now);
    }
  }

  async fetch(t, path) {
    t.flying.add(path);
    const begun = performance.now();
    try {
      let value = await ask(`${t.base}/v1/${asked[path] ?? path}`, path === 'hosts' ? { headers: { Accept: `${hostColumns}, application/json` } } : {});
      if (path === 'hosts' && value?.count !== undefined) value = rowsOf(value);
      const took = performance.now() - begun;
      this.take(t, path, value);
      t.cost[path] = took;
      t.due[path] = Date.now() + Math.max(periods[path], 10 * took);
      delete t.fault[path];
    } catch (e) {
      t.due[path] = Date.now() + (path === t.main ? retry : Math.max(periods[path], retry));
      if (e.status === 401 && t.base === '') { // the log-in has run out
        this.login = { text: 'The log-in has run out.' };
      } else if (path === t.main || e.code === 'unreachable') {
        t.down ??= { since: Date.now(), why: e.message, status: e.status };
        t.down.why = e.message;
        t.stream?.close();
        t.stream = null;
      } else {
        t.fault[path] = e;
      }
    } finally {
      t.flying.delete(path);
      this.changed();
    }
  }

  take(t, path, value) {
    const now = Date.now();
    t.data[path] = value;
    t.at[path] = now;
    if (path === t.main) {
      if (t.down) {
        t.down = null;
        t.due = {}; // all of it may have changed
      }
      const life = path === 'status' ? `${value.pid}/${value.started}` : '';
      if (life !== t.life) {
        t.life = life;
        t.samples = [];
        t.due = {};
      }
    }
    if (path === 'ports') sample(t, value, now);
  }

  // follow opens the stream of events of a target, or asks for them where there are too many targets.
  follow(t, now) {
    if (t.stream || t.flying.has('events') || t.streamDue > now) return;
    const daemons = this.targets.filter((x) => x.kind === 'daemon');
    if (daemons.indexOf(t) >= streams) {
      t.flying.add('events');
      ask(`${t.base}/v1/events?after=${t.lastEvent}`)
        .then((list) => { for (const e of list) this.event(t, e); })
        .catch(() => {})
        .finally(() => { t.flying.delete('events'); t.streamDue = Date.now() + retry; this.changed(); });
      return;
    }
    const s = new EventSource(`${t.base}/v1/events?after=${t.lastEvent}`);
    t.stream = s;
    s.onmessage = (m) => {
      try {
        this.event(t, JSON.parse(m.data));
      } catch { /* half a line of a daemon that died: it comes again */ }
    };
    s.addEventListener('missed', (m) => {
      t.missed += Number(JSON.parse(m.data).missed) || 0;
      this.changed();
    });
    s.onerror = () => { // a browser gives up on some errors and not on others: always begin anew
      s.close();
      if (t.stream === s) t.stream = null;
      t.streamDue = Date.now() + retry;
      t.due.status = 0; // is it still there?
      this.changed();
    };
  }

  event(t, e) {
    if (!(e?.id > t.lastEvent)) return;
    t.lastEvent = e.id;
    t.events.push(e);
    if (t.events.length > keptEvents * 1.1) t.events.splice(0, t.events.length - keptEvents);
    if (['host', 'zone', 'port', 'fault', 'error-down', 'peer'].includes(e.kind)) soon(t, e.kind);
    this.changed();
  }
}

// rowsOf makes hosts of columns (internal/api/columns.go); equal lists are the same list.
export function rowsOf(c) {
  const out = new Array(c.count), w = c.words, l = c.lists, x = c.texts;
  const bool = (d) => ({ words: d.words.map((s) => s === 'true'), of: d.of });
  const pick = (d, i) => d.words[d.of[i]];
  const subscribes = bool(w.subscribes), conflict = bool(w.conflict), doubt = bool(w.doubt), ports = { words: w.service_port.words.map(Number), of: w.service_port.of };
  for (let i = 0; i < c.count; i++) {
    out[i] = {
      addr: x.addr[i], type: pick(w.type, i), role: pick(w.role, i), protocol: pick(w.protocol, i), service_port: pick(ports, i), nqn: x.nqn[i], device: pick(w.device, i), port: pick(w.port, i), mac: x.mac[i],
      subscribes: pick(subscribes, i), state: pick(w.state, i), reason: pick(w.reason, i), zones: pick(l.zones, i), hard_zoning: pick(w.hard_zoning, i), hard_zoning_why: pick(l.hard_zoning_why, i),
      learned_from: pick(w.learned_from, i), since: c.since_us[i], conflict: pick(conflict, i), doubt: pick(doubt, i), refused: pick(l.refused, i),
    };
  }
  return out;
}

// writes reports whether zones are written at a device: clients refuse to speak of it.
function writes(t) {
  const roles = t.data.status?.roles;
  return roles != null && (roles.length === 0 || roles.includes('reflector'));
}

// soon has what an event changed asked for again before its time, where that is cheap.
function soon(t, kind) {
  const paths = { host: ['hosts'], zone: ['zones', 'zoning', 'hosts'], port: ['ports'], fault: ['ports', 'notices'], 'error-down': ['error-down', 'ports'], peer: ['peers'] }[kind];
  for (const p of [...paths, 'status']) {
    const at = Date.now() + 300 + 10 * (t.cost[p] ?? 0);
    if (t.due[p] > at) t.due[p] = at;
  }
}

// sample keeps the traffic of all ports of a device, as a rate between two readings.
function sample(t, ports, now) {
  let rx = 0, tx = 0;
  for (const p of ports ?? []) {
    rx += p.counters?.rx_bytes ?? 0;
    tx += p.counters?.tx_bytes ?? 0;
  }
  const b = t.before;
  t.before = { now, rx, tx, ports: new Map((ports ?? []).map((p) => [p.name, p.counters])) };
  if (!b || now - b.now < 200) return;
  const s = (now - b.now) / 1000;
  const rate = (x, y) => (y < x ? y : y - x) / s; // a counter that went back began anew
  t.samples.push({ t: now / 1000, rx: 8 * rate(b.rx, rx), tx: 8 * rate(b.tx, tx) });
  if (t.samples.length > keptSamples) t.samples.shift();
  t.rates = new Map();
  for (const p of ports ?? []) {
    const was = b.ports.get(p.name);
    if (was && p.counters) t.rates.set(p.name, { rx: 8 * rate(was.rx_bytes, p.counters.rx_bytes), tx: 8 * rate(was.tx_bytes, p.counters.tx_bytes) });
  }
}
