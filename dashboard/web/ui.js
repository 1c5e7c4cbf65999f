// Small pieces that all views share.
import { html, svg, nothing } from './vendor/lit-html.js';

export { html, svg, nothing };

const paths = {
  overview: 'M3 13h8V3H3zm0 8h8v-6H3zm10 0h8V11h-8zm0-18v6h8V3z',
  topology: 'M12 3a2.5 2.5 0 0 1 1 4.8V11h5a1 1 0 0 1 1 1v3.2a2.5 2.5 0 1 1-2 0V13h-4v2.2a2.5 2.5 0 1 1-2 0V13H7v2.2a2.5 2.5 0 1 1-2 0V12a1 1 0 0 1 1-1h5V7.8A2.5 2.5 0 0 1 12 3z',
  hosts: 'M4 4h16a1 1 0 0 1 1 1v5a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1zm0 9h16a1 1 0 0 1 1 1v5a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1v-5a1 1 0 0 1 1-1zm2-6.5v2h2v-2zm0 9v2h2v-2z',
  zones: 'M3 3h5v5H3zm6.5 0h5v5h-5zM16 3h5v5h-5zM3 9.5h5v5H3zm13 0h5v5h-5zM3 16h5v5H3zm6.500 0h5v5h-5zM16 16h5v5h-5z',
  events: 'M4 5h2v2H4zm4 0h12v2H8zM4 11h2v2H4zm4 0h12v2H8zm-4 6h2v2H4zm4 0h12v2H8z',
  notices: 'M3 4h9v4H3zm5 6h9v4H8zm5 6h8v4h-8z',
  queues: 'M3 3h4v4H3zm0 7h4v4H3zm0 7h4v4H3zM10 3h4v4h-4zm0 7h4v4h-4zm0 7h4v4h-4zM17 3h4v4h-4zm0 7h4v4h-4zm0 7h4v4h-4z',
  model: 'M8 5v14l11-7z',
  sun: 'M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM11 1h2v4h-2zm0 18h2v4h-2zM1 11h4v2H1zm18 0h4v2h-4zM4.200 5.600l1.400-1.400 2.800 2.800L7 8.400zM15.600 17l1.400-1.400 2.800 2.800-1.400 1.400zM4.200 18.400 7 15.600 8.400 17l-2.800 2.800zM15.600 7l2.800-2.800 1.400 1.400L17 8.400z',
  moon: 'M13 3a9 9 0 1 0 8 12.500A8 8 0 0 1 13 3z',
  auto: 'M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm0 2v16a8 8 0 0 1 0-16z',
  help: 'M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm-1 14h2v2h-2zm1-10a4 4 0 0 1 2.300 7.200c-.9.7-1.300 1-1.300 1.800h-2c0-1.900 1-2.700 2-3.400A2 2 0 1 0 10 10H8a4 4 0 0 1 4-4z',
  close: 'M6.400 5 12 10.600 17.600 5 19 6.400 13.400 12l5.600 5.600-1.400 1.400L12 13.400 6.400 19 5 17.600 10.600 12 5 6.400z',
  out: 'M5 3h8v2H6v14h7v2H5a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zm11 4 5 5-5 5-1.400-1.400L17.200 13H9v-2h8.200l-2.600-2.600z',
  save: 'M11 3h2v9.200l3.300-3.300 1.400 1.400L12 16l-5.700-5.700 1.400-1.400L11 12.200zM4 18h16v2H4z',
  pause: 'M7 5h4v14H7zm6 0h4v14h-4z',
  play: 'M8 5v14l11-7z',
};

export const icon = (name) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${paths[name]}></path></svg>`;

// A state has a shape of its own beside its colour.
const marks = {
  good: 'M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1z',
  warn: 'M6 .8 11.600 11H.4z',
  bad: 'M1.200 1.200h9.600v9.600H1.200z',
  idle: 'M6 1.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9zm0 1.800a2.700 2.700 0 1 1 0 5.400 2.700 2.700 0 0 1 0-5.400z',
  info: 'M6 .6 11.400 6 6 11.400.6 6z',
};

export const mark = (level) => html`<svg class="mark ${level}" viewBox="0 0 12 12" aria-hidden="true"><path d=${marks[level] ?? marks.idle}></path></svg>`;

export const badge = (level, text) => html`<span class="badge ${level}">${mark(level)}${text}</span>`;

// levels of what the API says.
export const levelOf = {
  port: (p) => ({ up: 'good', down: p.admin_up ? 'warn' : 'idle', 'error-down': 'bad', draining: 'warn', drained: 'idle', removed: 'idle' })[p.state] ?? 'idle',
  host: (h) => (h.refused?.length || h.conflict ? 'bad' : h.state === 'active' ? 'good' : 'bad'),
  peer: (p) => (p.refused ? 'bad' : p.state === 'Established' ? 'good' : 'warn'),
  notice: (n) => ({ acked: 'good', sent: 'warn', queued: 'warn', superseded: 'idle', 'given-up': 'bad' })[n.status] ?? 'idle',
  event: (e) => {
    if (e.kind === 'error' || e.kind === 'refused' || e.kind === 'fault' || e.kind === 'error-down') return /recover|ended|mended|is over/.test(e.text ?? '') ? 'good' : 'bad';
    if (e.kind === 'warning') return /has gone|is gone|is over/.test(e.text ?? '') ? 'good' : 'warn';
    if (/\b(down|lost|left|gone|inactive|fails|failed)\b/.test(e.text ?? '')) return 'warn';
    return 'info';
  },
};

export const empty = (title, text) => html`<div class="empty"><p class="empty-title">${title}</p><p>${text}</p></div>`;

export const skeleton = (what) => html`<div class="empty" role="status"><p class="empty-title">Waiting for ${what}</p><p>The device was asked a moment ago.</p></div>`;

// save has the browser keep a text as a file.
export function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// csv writes a table; a text that a spreadsheet would take for a formula is kept a text.
export function csv(columns, rows) {
  const cell = (v) => {
    let s = v == null ? '' : String(v);
    if (/^[=+\-@\t\r]/.test(s) && !/^-?\d+(\.\d+)?$/.test(s)) s = "'" + s;
    return /[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s;
  };
  return [columns.map((c) => cell(c.title)).join(','), ...rows.map((r) => columns.map((c) => cell(c.text(r))).join(','))].join('\n') + '\n';
}
