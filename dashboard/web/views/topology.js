// Devices in layers: reflectors, access switches, hosts; of a model the cables themselves.
import { html, svg, badge, mark, empty, skeleton, nothing } from '../ui.js';
import { count } from '../format.js';
import { all as allHosts, details as hostDetails } from './hosts.js';
import { ofDevices, ofFabric, place } from '../graph.js';

export const title = 'Topology';
export const needs = ['peers', 'bfd', 'hosts', 'ports'];

const drawnNodes = 160; // more are shown as a field of switches, without lines

const shapes = {
  reflector: (w) => svg`<rect class="body" x=${-w / 2} y="-21" width=${w} height="42" rx="21"></rect>`,
  switch: (w) => svg`<rect class="body" x=${-w / 2} y="-21" width=${w} height="42" rx="7"></rect>`,
  host: () => svg`<circle class="body" r="8"></circle>`,
  initiator: () => svg`<circle class="body" r="8"></circle>`,
  target: () => svg`<rect class="body" x="-8" y="-8" width="16" height="16" rx="2"></rect>`,
};

function details(page, n, g) {
  const links = g.links.filter((l) => l.a === n.id || l.b === n.id);
  return html`${badge(n.level, n.sub || n.level)}${n.host ? hostDetails(n.host) : html`
    ${n.hosts ? html`<dl class="pairs"><dt>Hosts</dt><dd>${count(n.hosts.all)}: ${count(n.hosts.initiators)} initiators, ${count(n.hosts.targets)} targets</dd><dt>Inactive</dt><dd>${count(n.hosts.off)}</dd></dl>` : nothing}
    <h3>Links (${count(links.length)})</h3><ul class="warnings tight">${links.slice(0, 200).map((l) => html`<li>${mark(l.level)}<span>${l.label}</span></li>`)}</ul>
    <p><a href=${`#/hosts?device=${encodeURIComponent(n.id)}`}>Its hosts</a> · <a href=${`#/events?device=${encodeURIComponent(n.id)}`}>events about it</a></p>`}`;
}

function drawing(page, g) {
  const least = Math.max(...g.layers.map((_, i) => g.nodes.filter((n) => n.layer === i).length * (i === g.layers.length - 1 ? 74 : 128)));
  const width = Math.max(760, least), gap = g.layers.length > 3 ? 118 : 165, height = 70 + gap * (g.layers.length - 1) + 78;
  const layers = place(g, width), byId = new Map(g.nodes.map((n) => [n.id, n]));
  const y = (n) => 52 + n.layer * gap;
  const all = layers.flat();
  const open = (n) => page.open({ title: n.label, body: () => details(page, n, g) });
  const key = (e, n) => {
    const i = layers[n.layer].indexOf(n);
    const to = { ArrowRight: layers[n.layer][i + 1], ArrowLeft: layers[n.layer][i - 1], ArrowDown: layers[n.layer + 1]?.[Math.floor(((i + 0.5) / layers[n.layer].length) * layers[n.layer + 1].length)], ArrowUp: layers[n.layer - 1]?.[Math.floor(((i + 0.5) / layers[n.layer].length) * layers[n.layer - 1].length)] }[e.key];
    if (e.key === 'Enter' || e.key === ' ') open(n);
    else if (to) e.currentTarget.ownerSVGElement.querySelector(`[data-i="${all.indexOf(to)}"]`)?.focus();
    else return;
    e.preventDefault();
  };
  const line = (l) => {
    const a = byId.get(l.a), b = byId.get(l.b);
    if (!a || !b) return nothing;
    const ya = y(a), yb = y(b), bow = l.path ? 44 : 0;
    const d = a.layer === b.layer ? `M${a.x} ${ya + 21} C${a.x} ${ya + 21 + bow + 30} ${b.x} ${yb + 21 + bow + 30} ${b.x} ${yb + 21}` : `M${a.x} ${ya} C${a.x} ${(ya + yb) / 2} ${b.x} ${(ya + yb) / 2} ${b.x} ${yb}`;
    return svg`<path class="link ${l.level} ${l.dashed ? 'dashed' : ''}" d=${d}><title>${l.label}</title></path>`;
  };
  return html`<div class="topo card" tabindex="-1"><svg viewBox=${`0 0 ${width} ${height}`} .style=${`min-width:${Math.min(width, 2600)}px;max-width:${Math.round(width * 1.3)}px`} role="group" aria-label="Topology">
    ${[...g.links].sort((a, b) => (a.level === 'bad') - (b.level === 'bad')).map(line)}
    ${g.layers.map((name, i) => svg`<text class="layer" x="4" y=${52 + i * gap - 32}>${name}</text>`)}
    ${all.map((n, i) => {
    const big = n.kind === 'switch' || n.kind === 'reflector', w = 112;
    return svg`<g class="node ${n.kind} ${n.level}" transform=${`translate(${n.x} ${y(n)})`} tabindex=${i === 0 ? 0 : -1} data-i=${i} role="button"
      @click=${() => open(n)} @keydown=${(e) => key(e, n)}><title>${`${n.kind} ${n.label}${n.sub ? `, ${n.sub}` : ''}: ${words[n.level]}`}</title>${(shapes[n.kind] ?? shapes.host)(w)}
      ${big ? svg`<text class="name" y="-3">${seen(n)[0]}</text><text class="sub" y="12">${seen(n)[1]}</text>${n.level === 'bad' ? svg`<path class="cross" d="M50 -25l12 12m0 -12l-12 12"></path>` : nothing}`
    : svg`<text class="name host" y="24">${seen(n)[0]}</text><text class="sub" y="37">${seen(n)[1]}</text>${n.level === 'bad' ? svg`<path class="cross" d="M-5 -5l10 10m0 -10l-10 10"></path>` : nothing}`}</g>`;
  })}</svg></div>`;
}

const words = { good: 'good', warn: 'needs attention', bad: 'failed', idle: 'not known' };

// seen are the two lines of a node.
const seen = (n) => (n.kind === 'switch' || n.kind === 'reflector' ? [cut(n.label, 16), cut(n.hosts ? `${count(n.hosts.all)} hosts` : n.sub ?? '', 19)] : [cut(n.label, 13), cut(n.sub ?? '', 13)]);

const cut = (s, n) => (s.length > n ? `${s.slice(0, n - 1)}…` : s);

// field is for fabrics with more switches than lines can be drawn for.
function field(page, g) {
  const list = g.nodes.filter((n) => n.kind === 'switch' || n.kind === 'reflector');
  const order = { bad: 0, warn: 1, idle: 2, good: 3 };
  list.sort((a, b) => a.layer - b.layer || order[a.level] - order[b.level] || (a.label < b.label ? -1 : 1));
  return html`<section class="card"><h2>${count(list.length)} devices</h2><ul class="plate field">${list.slice(0, 5000).map((n) => html`<li><button class="port ${n.level}" title=${n.sub ?? ''} @click=${() => page.open({ title: n.label, body: () => details(page, n, g) })}>${mark(n.level)}<span>${n.label}</span><small>${n.hosts ? `${count(n.hosts.all)} hosts${n.hosts.off > 0 ? `, ${count(n.hosts.off)} off` : ''}` : n.sub}</small></button></li>`)}</ul></section>`;
}

export function render(page) {
  const ts = page.store.shown();
  const daemons = ts.filter((t) => t.kind === 'daemon'), models = ts.filter((t) => t.kind !== 'daemon');
  const s = (page.state.topology ??= {});
  const graphs = [];
  if (daemons.length > 0) {
    if (daemons.every((t) => !t.loaded && !t.down)) return skeleton('the devices');
    const key = daemons.map((t) => `${t.id}:${t.at.status}:${t.at.peers}:${t.at.bfd}:${t.at.hosts}:${t.down ? 1 : 0}`).join();
    if (s.key !== key) {
      s.key = key;
      s.graph = ofDevices(daemons, allHosts(page) ?? []);
    }
    if (s.graph.nodes.length > 0) graphs.push([null, s.graph]);
  }
  for (const t of models) {
    const g = ofFabric(t);
    if (g) graphs.push([t, g]);
  }
  if (graphs.length === 0) return empty('Nothing to draw yet', 'Devices appear here as soon as they answer.');
  return html`<div class="stack">${graphs.map(([t, g]) => html`${t || graphs.length > 1 ? html`<h2>${t ? t.name : 'Devices'}</h2>` : nothing}
    ${g.nodes.length > drawnNodes ? field(page, g) : drawing(page, g)}
    ${g.logical ? html`<ul class="legend"><li><i class="l-session"></i>session (uplink cables are not known: lines are logical)</li><li><i class="l-bad"></i>failed</li><li><i class="n-round"></i>initiator</li><li><i class="n-square"></i>target</li></ul>` : nothing}`)}</div>`;
}
