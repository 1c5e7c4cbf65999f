// The page: which view is shown, what is chosen, keys, and the frame around it all.
import { render, html, nothing } from './vendor/lit-html.js';
import { Store } from './store.js';
import { icon, badge, mark } from './ui.js';
import { span } from './format.js';
import './table.js';
import './chart.js';
import { Replay, recorded } from './model.js';
import * as overview from './views/overview.js';
import * as topology from './views/topology.js';
import * as hosts from './views/hosts.js';
import * as zones from './views/zones.js';
import * as events from './views/events.js';
import * as notices from './views/notices.js';
import * as queues from './views/queues.js';

const views = { overview, topology, hosts, zones, events, notices, queues };
const order = Object.keys(views);

const store = new Store();
const page = {
  store,
  replay: null,
  view: 'overview',
  params: {},
  drawer: null,       // {title, body: () => template}
  help: false,
  state: {},          // of views, kept while others are shown
  go(view, params = {}) {
    const q = new URLSearchParams(params).toString();
    location.hash = `#/${view}${q ? '?' + q : ''}`;
  },
  open(drawer) {
    page.back = document.activeElement;
    page.drawer = drawer;
    draw();
    document.querySelector('.drawer h2')?.focus();
  },
  shut() {
    page.drawer = null;
    page.help = false;
    draw();
    page.back?.focus?.();
  },
  draw: () => later(),
};

page.replay = new Replay(() => later());

// Themes: as the system, or chosen.
const themes = ['auto', 'light', 'dark'];
let theme = 'auto';
try { theme = localStorage.getItem('theme') ?? 'auto'; } catch { /* a browser that keeps nothing */ }

function setTheme(t) {
  theme = themes.includes(t) ? t : 'auto';
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem('theme', theme); } catch { /* as above */ }
  dispatchEvent(new Event('theme'));
  later();
}

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const view = views[path] ? path : 'overview';
  if (view !== page.view) page.drawer = null;
  page.view = view;
  page.params = Object.fromEntries(new URLSearchParams(query ?? ''));
  store.need(views[view].needs);
  draw();
}

// What comes is drawn at most some times a second: streams bring much at once.
let queued = false, drawn = 0;
function later() {
  if (queued) return;
  queued = true;
  setTimeout(() => requestAnimationFrame(draw), Math.max(0, 120 - (performance.now() - drawn)));
}

function connection() {
  const ts = store.shown();
  const down = ts.filter((t) => t.down);
  if (store.paused) return badge('idle', 'paused');
  if (ts.length === 0 || ts.every((t) => !t.loaded && !t.down)) return badge('idle', 'connecting');
  if (down.length === 0) return ts.every((t) => t.kind === 'record') ? badge('info', 'recorded') : badge('good', 'live');
  return badge('bad', down.length === ts.length ? 'no answer' : `${down.length} of ${ts.length} do not answer`);
}

function banners() {
  return store.shown().filter((t) => t.down).map((t) => html`<div class="banner bad" role="alert">${mark('bad')}<div>
    <strong>${t.name} does not answer</strong> for ${span((Date.now() - t.down.since) / 1000)}: ${t.down.why}.
    ${t.loaded ? 'What is shown is what was known then. ' : ''}Asking again every 2 s.</div></div>`);
}

function faults() {
  return store.shown().flatMap((t) => Object.entries(t.fault).filter(([p, e]) => views[page.view].needs.includes(p) && e.status !== 403)
    .map(([p, e]) => html`<div class="banner warn" role="status">${mark('warn')}<div><strong>${t.name}</strong> does not tell its ${p}: ${e.message}</div></div>`));
}

// transport moves the moment of recorded runs, over all views.
function transport() {
  const ts = store.shown('record').filter((t) => t.data.record);
  return ts.map((t) => {
    const end = t.data.record.end_ms, at = recorded.at(t), faults = t.data.record.events.filter((e) => e.kind === 'fault');
    const next = faults.find((e) => e.ms > at + 1e-9) ?? faults[0];
    return html`<section class="transport card" aria-label=${`Replay of ${t.name}`}><button @click=${() => page.replay.toggle(ts)} aria-label=${page.replay.playing ? 'Hold' : 'Replay'}>${icon(page.replay.playing ? 'pause' : 'play')}</button>
      <span class="moment">${at.toFixed(3)} ms<span class="muted"> of ${end.toFixed(3)}</span></span>
      <span class="slider"><input type="range" min="0" max=${end} step=${end / 1000} .value=${String(at)} aria-label=${`Moment of ${t.name}, ms`} aria-valuetext=${`${at.toFixed(3)} ms`} @input=${(e) => page.replay.set(t, Number(e.target.value))}>
        <span class="ticks" aria-hidden="true">${faults.slice(0, 200).map((e) => html`<i .style=${`left:${(100 * e.ms) / end}%`} title=${`${e.ms.toFixed(3)} ms: ${e.text} ${e.node}`}></i>`)}</span></span>
      <label class="pick">Speed <select @change=${(e) => { page.replay.speed = Number(e.target.value); }}><option value="1">20 s</option><option value="0.2">100 s</option><option value="5">4 s</option></select></label>
      ${next ? html`<button class="quiet" @click=${() => page.replay.set(t, next.ms + end / 1000)}>Next fault</button>` : nothing}</section>`;
  });
}

function loginForm() {
  return html`<main class="alone"><form class="card login" @submit=${(e) => {
    e.preventDefault();
    const f = e.target.elements.token;
    store.enter(f.value.trim());
    f.value = '';
  }}>
    <h1><img src="icon.svg" alt="" width="28" height="28">iNOF</h1>
    <label for="token">Token</label>
    <input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
    ${store.login.text ? html`<p class="problem" role="alert">${store.login.text}</p>` : nothing}
    <button class="main">Log in</button>
    <p class="muted">A line of the file that <code>management.token-file</code> names has the SHA-256 of each token that is taken.</p>
  </form></main>`;
}

function helpText() {
  const keys = [['1 … ' + order.length, 'the views'], ['/', 'filter'], ['↑ ↓ Enter', 'rows, cells; what is behind one'], ['t', 'light, dark, as the system'], ['p', 'pause, go on'], ['?', 'this'], ['Esc', 'close']];
  return html`<dl class="keys">${keys.map(([k, what]) => html`<dt><kbd>${k}</kbd></dt><dd>${what}</dd>`)}</dl>
    <p class="muted">Filters take words: <code>eth1|eth2</code> is either, <code>!port</code> all others, <code>&gt;5</code> larger numbers.</p>
    <p class="muted">The page only looks. Changes are made with inofctl.</p>
    <p class="muted"><a href="licenses.txt">Licences of lit-html and uPlot</a></p>`;
}

function draw() {
  queued = false;
  drawn = performance.now();
  const root = document.getElementById('app');
  const v = views[page.view];
  document.title = `${v.title} · iNOF`;
  if (store.login) return void render(loginForm(), root);
  if (store.failure) {
    return void render(html`<main class="alone"><div class="card login"><h1><img src="icon.svg" alt="" width="28" height="28">iNOF</h1>
      <p class="problem" role="alert">${store.failure.message}</p><p class="muted">${store.failure.status === 403 ? 'This page was opened in another browser, or inofctl was started again.' : 'Trying again every 2 s.'}</p></div></main>`, root);
  }
  const daemons = store.targets;
  const drawer = page.help ? { title: 'Keys', body: helpText } : page.drawer;
  const stale = store.shown().length > 0 && store.shown().every((t) => t.down);
  render(html`
    <a class="skip" href="#main" @click=${(e) => { e.preventDefault(); document.getElementById('main').focus(); }}>To the contents</a>
    <header class="side">
      <div class="brand"><img src="icon.svg" alt="" width="24" height="24"><span>iNOF</span></div>
      <nav aria-label="Views">${order.map((k, i) => html`<a href=${`#/${k}`} aria-current=${k === page.view ? 'page' : nothing} title=${`${views[k].title} (${i + 1})`}>${icon(k)}<span>${views[k].title}</span></a>`)}</nav>
      <div class="side-foot">
        <button class="quiet" @click=${() => setTheme(themes[(themes.indexOf(theme) + 1) % 3])} title="Light, dark, as the system (t)" aria-label=${`${{ auto: 'As the system', light: 'Light', dark: 'Dark' }[theme]}: colours`}>${icon({ auto: 'auto', light: 'sun', dark: 'moon' }[theme])}<span>${{ auto: 'As the system', light: 'Light', dark: 'Dark' }[theme]}</span></button>
        <button class="quiet" @click=${() => { page.help = true; page.open(null); }} title="Keys (?)" aria-label="Keys">${icon('help')}<span>Keys</span></button>
        ${store.user ? html`<button class="quiet" @click=${() => store.leave()} title="Log out" aria-label="Log out">${icon('out')}<span>${store.user.name} (${store.user.role})</span></button>` : nothing}
      </div>
    </header>
    <main id="main" tabindex="-1" class=${stale ? 'stale' : ''}>
      <div class="top"><h1>${v.title}</h1><span class="grow"></span>
        ${daemons.length > 1 ? html`<label class="pick">Show <select @change=${(e) => { store.chosen = e.target.value; store.tick(); draw(); }}>
          <option value="all" ?selected=${store.chosen === 'all'}>all ${daemons.length}</option>
          ${daemons.map((t) => html`<option value=${t.id} ?selected=${store.chosen === String(t.id)}>${t.name}</option>`)}</select></label>`
    : html`<span class="muted device">${daemons[0]?.name ?? ''}</span>`}
        <button class="quiet" @click=${pause} title="Pause (p)" aria-label=${store.paused ? 'Go on' : 'Pause'}>${icon(store.paused ? 'play' : 'pause')}</button>
        <span role="status">${connection()}</span></div>
      ${banners()}${faults()}${transport()}
      ${v.render(page)}
    </main>
    ${drawer ? html`<aside class="drawer" role="dialog" aria-label=${drawer.title}><div class="drawer-head"><h2 tabindex="-1">${drawer.title}</h2><button class="quiet" @click=${page.shut} aria-label="Close">${icon('close')}</button></div><div class="drawer-body" tabindex="0">${drawer.body()}</div></aside>` : nothing}
  `, root);
  document.documentElement.dataset.ready = store.targets.some((t) => t.loaded) ? 'yes' : 'no';
}

function pause() {
  store.paused = !store.paused;
  if (!store.paused) store.refresh();
  draw();
}

addEventListener('keydown', (e) => {
  if (e.key === 'Escape' && (page.drawer || page.help)) return page.shut();
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
  if (store.login || store.failure) return;
  const n = Number(e.key);
  if (n >= 1 && n <= order.length) page.go(order[n - 1]);
  else if (e.key === 't') setTheme(themes[(themes.indexOf(theme) + 1) % 3]);
  else if (e.key === 'p') pause();
  else if (e.key === '?') { page.help = true; page.open(null); }
  else if (e.key === '/') {
    e.preventDefault();
    (document.querySelector('inof-table') ?? { focusFilter: () => document.querySelector('.matrix-box')?.focus() }).focusFilter();
  }
});

store.listeners.add(later);
addEventListener('hashchange', route);
document.addEventListener('visibilitychange', () => { if (!document.hidden) store.tick(); });
document.getElementById('app').replaceChildren(); // what is said until here
setTheme(theme);
route();
store.start();
setInterval(() => { if (!document.hidden) store.tick(); }, 500);
setInterval(later, 1000); // ages grow
