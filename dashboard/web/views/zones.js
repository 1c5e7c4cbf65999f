// Who may see whom: initiators against targets, and what a candidate would change.
import { html, badge, mark, empty, skeleton, save, nothing } from '../ui.js';
import { count, duration, addressKey, portKey, compareNames } from '../format.js';
import { ask } from '../store.js';
import { gather, count as countPairs } from '../pairs.js';
import { all as allHosts } from './hosts.js';
import '../matrix.js';

export const title = 'Zones';
export const needs = ['hosts', 'zones', 'zoning'];

const most = 500; // rows or columns: beyond them hosts are grouped

function layout(page) {
  const hosts = allHosts(page) ?? [];
  const s = (page.state.zones ??= { zone: '', candidate: null });
  if (s.hosts === hosts && s.of === s.zone) return s.layout;
  s.hosts = hosts;
  s.of = s.zone;
  const seen = new Map(), keys = new Map();
  const key = (d) => keys.get(d) ?? (keys.set(d, addressKey(d)), keys.get(d));
  for (const h of hosts) {
    if (h.refused?.length || h.conflict || (s.zone && !h.zones.includes(s.zone))) continue;
    const was = seen.get(h.addr);
    if (!was || h.type === 'local') seen.set(h.addr, { addr: h.addr, device: h.device, port: h.port, role: h.role, zones: h.zones, state: h.state, sortKey: `${key(h.device)} ${portKey(h.port)} ${addressKey(h.addr)}` });
  }
  const list = [...seen.values()].sort((a, b) => (a.sortKey < b.sortKey ? -1 : a.sortKey > b.sortKey ? 1 : 0));
  const rows = gather(list.filter((h) => h.role !== 'target'), most), cols = gather(list.filter((h) => h.role !== 'initiator'), most);
  const n = countPairs(rows.groups, cols.groups);
  const where = (groups) => { const m = new Map(); groups.forEach((g, i) => g.hosts.forEach((h) => m.set(h.addr, i))); return m; };
  s.layout = { rows: rows.groups, cols: cols.groups, by: [rows.by, cols.by], cells: n.cells, pairs: n.pairs, rowOf: where(rows.groups), colOf: where(cols.groups), hosts: list.length };
  s.overOf = null;
  return s.layout;
}

// overlay puts the listed pairs of a candidate where they are in the matrix.
function overlay(s, l) {
  if (s.overOf === s.candidate?.review) return s.over;
  s.overOf = s.candidate?.review;
  s.over = new Map();
  const x = s.candidate?.review?.impact;
  const put = (pairs, what) => {
    for (const p of pairs ?? []) {
      for (const [a, b] of [[p.host, p.target], [p.target, p.host]]) {
        const r = l.rowOf.get(a), c = l.colOf.get(b);
        if (r === undefined || c === undefined) continue;
        const k = r * l.cols.length + c, o = s.over.get(k) ?? { gained: 0, lost: 0 };
        o[what]++;
        s.over.set(k, o);
        break;
      }
    }
  };
  put(x?.gained, 'gained');
  put(x?.lost, 'lost');
  return s.over;
}

async function why(page, a, b) {
  const t = page.store.shown('daemon').find((x) => x.data.zoning) ?? page.store.shown('daemon')[0];
  let answer = null, problem = null;
  page.open({ title: `${a} and ${b}`, body: () => (problem ? html`<p class="problem">${problem}</p>` : !answer ? html`<p class="muted">Asking ${t.name} …</p>` : html`
    <p>${badge(answer.good ? 'good' : 'bad', answer.good ? 'good' : 'not good')}</p><p class="lead">${answer.verdict}</p>${answer.do ? html`<p>${answer.do}</p>` : nothing}
    <dl class="pairs"><dt>Shared zones</dt><dd>${answer.shared_zones.join(', ') || 'none'}</dd>
      ${answer.hosts.map((h) => html`<dt>${h.addr}</dt><dd>${h.attachments.map((x) => `${x.role}, ${x.device} ${x.port}, ${x.state}`).join('; ') || 'not known'}</dd>`)}
      ${answer.told.map((x) => html`<dt>${x.host} was told</dt><dd>${x.said ? `${x.state}${x.reason === 'none' ? '' : `, ${x.reason}`}${x.acked ? ', acked' : ', not acked'}` : 'nothing'}</dd>`)}</dl>
    ${answer.last_fault?.length ? html`<h3>The last fault</h3><ol class="chain">${answer.last_fault.map((x) => html`<li>${x.what} <span class="muted">${x.device ?? ''}${x.after_us == null ? '' : `, +${duration(x.after_us)}`}</span></li>`)}</ol>` : nothing}
    <p class="muted">As <code>inofctl why ${a} ${b}</code> says it.</p>`) });
  try {
    answer = await ask(`${t.base}/v1/why?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
  } catch (e) {
    problem = e.message;
  }
  page.draw();
}

async function check(page, s) {
  const c = s.candidate, t = s.reflector;
  c.problem = null;
  let plan;
  try {
    plan = JSON.parse(c.text);
  } catch (e) {
    c.problem = `This is no JSON: ${e.message}`;
    c.review = null;
    return page.draw();
  }
  c.busy = true;
  page.draw();
  try {
    c.review = await ask(`${t.base}/v1/zoning/check`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ plan, base: c.base }) });
  } catch (e) {
    c.problem = e.message;
    c.review = null;
  }
  c.busy = false;
  page.draw();
}

function begin(page, s) {
  const z = s.reflector.data.zoning;
  s.candidate = { text: JSON.stringify(z.plan, null, 1), base: z.version.base, number: z.version.number, review: null, problem: null };
  page.draw();
}

function review(r) {
  const x = r.impact;
  const figures = x ? [['pairs gained', x.pairs_gained, 'good'], ['pairs lost', x.pairs_lost, x.pairs_lost > 0 ? 'bad' : 'idle'], ['of those reachable now', x.lost_active, x.lost_active > 0 ? 'bad' : 'idle'], ['without a path left', x.cut_off, x.cut_off > 0 ? 'bad' : 'idle'], ['hosts without a partner', x.alone, x.alone > 0 ? 'warn' : 'idle'], ['notices', x.active + x.inactive, 'idle']] : [];
  const list = (title, items, level, n = 100) => (items.length === 0 ? nothing : html`<h3>${title} (${count(items.length)})</h3><ul class="warnings tight">${items.slice(0, n).map((e) => html`<li>${mark(level)}<span>${e}</span></li>`)}</ul>${items.length > n ? html`<p class="muted">and ${count(items.length - n)} more</p>` : nothing}`);
  return html`
    ${r.conflict ? html`<div class="banner warn">${mark('warn')}<div>${r.conflict}</div></div>` : nothing}
    ${r.errors.length > 0 ? list('Errors', r.errors, 'bad') : html`<dl class="figures">${figures.map(([k, v, level]) => html`<div><dt>${k}</dt><dd class=${v > 0 ? level : 'idle'}>${count(v)}</dd></div>`)}</dl>`}
    ${r.loss ? html`<div class="banner bad">${mark('bad')}<div>${r.loss}: it takes --force.</div></div>` : nothing}
    ${list('Warnings', r.warnings, 'warn')}${list('Changes', r.changes, 'info', 50)}
    ${x && x.lost.length > 0 ? list('Pairs lost', x.lost.map((p) => `${p.host} – ${p.target}${p.active ? ', reachable now' : ''}${p.paths >= 0 ? `, ${p.paths} paths left` : ''}`), 'bad', 50) : nothing}
    ${x ? html`<p class="muted">Whether I/O runs between those who are lost: ${x.io}.</p>` : nothing}`;
}

function candidate(page, s) {
  const c = s.candidate;
  if (!s.reflector) {
    return html`<section class="card side-card"><h2>Candidate</h2><p class="muted">Zones are written at a reflector: add one to the devices that are shown to lay a change over the matrix.</p></section>`;
  }
  if (!c) {
    return html`<section class="card side-card"><h2>Candidate</h2><p class="muted">See what a change of zones would do before it is made: who gains and loses whom.</p><p><button @click=${() => begin(page, s)}>Write a candidate</button></p></section>`;
  }
  return html`<section class="card side-card"><h2>Candidate on version ${c.number}</h2>
    <textarea aria-label="Zones of the candidate, as JSON" spellcheck="false" rows="11" .value=${c.text} @input=${(e) => { c.text = e.target.value; }}
      @keydown=${(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) check(page, s); }}></textarea>
    <div class="row"><button class="main" ?disabled=${c.busy} @click=${() => check(page, s)}>${c.busy ? 'Checking …' : 'Check'}</button>
      <label class="file button">Open<input type="file" accept=".json,application/json" @change=${async (e) => { const f = e.target.files[0]; if (f) { c.text = await f.text(); page.draw(); check(page, s); } }}></label>
      <button @click=${() => save('zones.json', 'application/json', c.text)}>Save</button>
      <button class="quiet" @click=${() => { s.candidate = null; page.draw(); }}>Discard</button></div>
    ${c.problem ? html`<p class="problem" role="alert">${c.problem}</p>` : nothing}
    <div aria-live="polite">${c.review ? review(c.review) : nothing}</div>
    ${c.review?.impact ? html`<p class="muted">Save it, then: <code>inofctl zone commit zones.json --confirm 10m</code></p>` : nothing}</section>`;
}

export function render(page) {
  const ts = page.store.shown('daemon');
  if (ts.length === 0) return empty('No device is chosen', 'A model has no zones of its own: its devices have.');
  if (ts.every((t) => !t.data.hosts && !t.down)) return skeleton('hosts and zones');
  const s = (page.state.zones ??= { zone: '', candidate: null });
  s.reflector = ts.find((t) => t.data.zoning) ?? null;
  const l = layout(page), over = overlay(s, l), w = l.cols.length;
  const names = [...new Set(ts.flatMap((t) => (t.data.zones ?? []).map((z) => z.name)))].sort(compareNames);
  const odd = [...new Set(ts.flatMap((t) => (t.data.zones ?? []).filter((z) => z.inconsistent).map((z) => z.name)))];
  const whole = (r, c) => l.rows[r].hosts.length * l.cols[c].hosts.length;
  const data = {
    label: 'Matrix of initiators and targets', rows: l.rows, cols: l.cols, axes: ['initiators', 'targets'], color: '--c1',
    value: (r, c) => (l.cells.get(r * w + c) ?? 0) / whole(r, c),
    over: (r, c) => over.get(r * w + c),
    tell: (r, c) => {
      const a = l.rows[r], b = l.cols[c], n = l.cells.get(r * w + c) ?? 0, o = over.get(r * w + c);
      const one = a.hosts.length === 1 && b.hosts.length === 1;
      const shared = one ? a.hosts[0].zones.filter((z) => b.hosts[0].zones.includes(z)) : [];
      return `${a.label} and ${b.label}: ${one ? (n > 0 ? `may exchange (${shared.join(', ')})` : 'may not exchange') : `${count(n)} of ${count(whole(r, c))} pairs may exchange`}${o?.gained ? `; ${count(o.gained)} gained` : ''}${o?.lost ? `; ${count(o.lost)} lost` : ''}`;
    },
    open: (r, c) => {
      const a = l.rows[r], b = l.cols[c];
      if (a.hosts.length === 1 && b.hosts.length === 1) why(page, a.hosts[0].addr, b.hosts[0].addr);
      else page.open({ title: `${a.label} and ${b.label}`, body: () => html`<p>${data.tell(r, c)}</p><h3>Initiators (${count(a.hosts.length)})</h3><p>${a.hosts.slice(0, 200).map((h) => h.addr).join(', ')}</p><h3>Targets (${count(b.hosts.length)})</h3><p>${b.hosts.slice(0, 200).map((h) => h.addr).join(', ')}</p>` });
    },
  };
  const grouped = l.by[0] !== 'host' || l.by[1] !== 'host';
  return html`<div class="bar-row"><label>Zone <select @change=${(e) => { s.zone = e.target.value; page.draw(); }}><option value="">all ${count(names.length)}</option>${names.slice(0, 5000).map((n) => html`<option ?selected=${n === s.zone}>${n}</option>`)}</select></label>
      <span class="muted">${count(l.pairs)} pairs of ${count(l.hosts)} hosts may exchange${grouped ? ` · rows by ${l.by[0]}, columns by ${l.by[1]}` : ''}</span>
      ${odd.length > 0 ? badge('warn', `reflectors differ about ${odd.slice(0, 3).join(', ')}${odd.length > 3 ? ' …' : ''}`) : nothing}
      <span class="grow"></span><ul class="legend"><li><i class="may"></i>may exchange</li><li><i class="gained"></i>gained</li><li><i class="lost"></i>lost</li></ul></div>
    <div class="split">${l.rows.length === 0 || l.cols.length === 0 ? html`<section class="card grow">${empty('No pair to show', l.hosts === 0 ? 'No host is known here, or none in this zone.' : 'There are initiators or targets here, not both.')}</section>` : html`<inof-matrix class="card" .data=${data}></inof-matrix>`}${candidate(page, s)}</div>`;
}
