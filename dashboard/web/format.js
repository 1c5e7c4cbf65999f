// Numbers, times and names as people read them. Everything here gives plain text.

const whole = new Intl.NumberFormat('en');

export const count = (n) => (n == null ? '–' : whole.format(n));

// micros reads an RFC 3339 time to the microsecond: Date has milliseconds only.
export function micros(text) {
  if (!text) return null;
  if (typeof text === 'number') return text; // microseconds already
  const m = /^(.*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (!m) return null;
  const base = Date.parse(m[1] + m[3]);
  return Number.isNaN(base) ? null : base * 1000 + Number((m[2] ?? '').padEnd(6, '0').slice(0, 6));
}

// duration of microseconds in the unit that fits.
export function duration(us) {
  if (us == null || Number.isNaN(us)) return '–';
  const a = Math.abs(us);
  if (a < 1) return us === 0 ? '0' : '<1 µs';
  if (a < 1e3) return `${us.toFixed(0)} µs`;
  if (a < 1e6) return `${(us / 1e3).toFixed(a < 1e4 ? 2 : 1)} ms`;
  if (a < 6e7) return `${(us / 1e6).toFixed(a < 1e7 ? 2 : 1)} s`;
  return span(us / 1e6);
}

// span of seconds in its two largest units.
export function span(s) {
  if (s == null) return '–';
  s = Math.max(0, Math.floor(s));
  const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
  const i = units.findIndex(([, n]) => s >= n);
  if (i < 0) return '0 s';
  const [u, n] = units[i];
  const rest = units[i + 1];
  const more = rest ? Math.floor((s % n) / rest[1]) : 0;
  return `${Math.floor(s / n)} ${u}${more ? ` ${more} ${rest[0]}` : ''}`;
}

export function ago(text, now = Date.now()) {
  const us = micros(text);
  return us == null ? '–' : span((now * 1000 - us) / 1e6);
}

const two = (n) => String(n).padStart(2, '0');

// clock is the local time of day, with so many digits of the second.
export function clock(text, digits = 3) {
  const us = micros(text);
  if (us == null) return '–';
  const d = new Date(us / 1000);
  const frac = String(Math.floor(us % 1e6)).padStart(6, '0').slice(0, digits);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}${digits ? '.' + frac : ''}`;
}

// stamp is the date too where it is not today's.
export function stamp(text, digits = 3) {
  const us = micros(text);
  if (us == null) return '–';
  const d = new Date(us / 1000), today = new Date();
  const day = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} `;
  return (d.toDateString() === today.toDateString() ? '' : day) + clock(text, digits);
}

function scaled(n, units, step) {
  let i = 0;
  while (Math.abs(n) >= step && i < units.length - 1) { n /= step; i++; }
  return `${n.toFixed(n !== 0 && Math.abs(n) < 10 && i > 0 ? 1 : 0)} ${units[i]}`;
}

export const bits = (n) => (n == null ? '–' : scaled(n, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s'], 1000));
export const bytes = (n) => (n == null ? '–' : scaled(n, ['B', 'kB', 'MB', 'GB', 'TB'], 1000));
export const percent = (x) => (x == null ? '–' : `${(100 * x).toFixed(x > 0 && x < 0.1 ? 1 : 0)} %`);

// compareNames orders names with their numbers as numbers: Ethernet2 before Ethernet10.
const names = new Intl.Collator('en', { numeric: true });
export const compareNames = (a, b) => names.compare(a ?? '', b ?? '');

// addressKey has addresses sort as numbers do.
export function addressKey(a) {
  if (!a) return '';
  if (a.includes(':')) return '~' + a;
  let n = 0;
  for (const p of a.split('.')) n = n * 256 + Number(p);
  return String.fromCharCode(48 + (n >>> 0) / 65536, 48 + (n % 65536)); // as texts compare
}

// portKey has Ethernet2 come before Ethernet10; there are few ports, and many hosts.
const portKeys = new Map();
export function portKey(name) {
  let k = portKeys.get(name);
  if (k === undefined) {
    if (portKeys.size > 10_000) portKeys.clear();
    portKeys.set(name, k = String(name ?? '').replace(/\d+/g, (d) => d.padStart(8, '0')));
  }
  return k;
}
