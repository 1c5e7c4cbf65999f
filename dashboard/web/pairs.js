// Which hosts may exchange traffic, counted without looking at each pair: hosts with the same
// zones and the same role are alike.

const may = (a, b) => a !== b || a === 'both' || a === 'unknown' || a === '';

// gather puts hosts, which are in order, into at most `most` groups: each alone, or by port, by switch, by runs of switches.
export function gather(hosts, most) {
  const by = (key, label) => {
    const groups = [];
    let last = null;
    for (const h of hosts) {
      const k = key(h);
      if (k !== last) groups.push({ label: label(h), hosts: [] });
      last = k;
      groups.at(-1).hosts.push(h);
    }
    return groups;
  };
  if (hosts.length <= most) return { by: 'host', groups: hosts.map((h) => ({ label: h.addr, hosts: [h] })) };
  let groups = by((h) => `${h.device} ${h.port}`, (h) => `${h.device} ${h.port}`);
  if (groups.length <= most) return { by: 'port', groups };
  groups = by((h) => h.device, (h) => h.device);
  if (groups.length <= most) return { by: 'switch', groups };
  const n = Math.ceil(groups.length / most), runs = [];
  for (let i = 0; i < groups.length; i += n) {
    const part = groups.slice(i, i + n);
    runs.push({ label: `${part[0].label} … (${part.length})`, hosts: part.flatMap((g) => g.hosts) });
  }
  return { by: `${n} switches`, groups: runs };
}

// count gives for groups of rows and of columns how many pairs may exchange: a sparse map of r * cols + c.
export function count(rows, cols) {
  const kinds = new Map(); // list of zones → role → kind; equal lists of one device are the same list
  const list = [];         // of kinds: {zones, role, rows: Map(group → hosts), cols}
  const kindOf = (h) => {
    let roles = kinds.get(h.zones);
    if (!roles) kinds.set(h.zones, roles = new Map());
    let k = roles.get(h.role);
    if (!k) {
      roles.set(h.role, k = { zones: h.zones, role: h.role, rows: new Map(), cols: new Map() });
      list.push(k);
    }
    return k;
  };
  rows.forEach((g, i) => g.hosts.forEach((h) => { const k = kindOf(h); k.rows.set(i, (k.rows.get(i) ?? 0) + 1); }));
  cols.forEach((g, i) => g.hosts.forEach((h) => { const k = kindOf(h); k.cols.set(i, (k.cols.get(i) ?? 0) + 1); }));
  const inZone = new Map();
  for (const k of list) if (k.cols.size > 0) for (const z of k.zones) (inZone.get(z) ?? inZone.set(z, []).get(z)).push(k);
  const out = new Map(), width = cols.length;
  let pairs = 0;
  for (const a of list) {
    if (a.rows.size === 0) continue;
    const met = new Set();
    for (const z of a.zones) {
      for (const b of inZone.get(z) ?? []) {
        if (met.has(b) || !may(a.role, b.role)) continue;
        met.add(b);
        for (const [r, n] of a.rows) {
          for (const [c, m] of b.cols) {
            const k = r * width + c;
            out.set(k, (out.get(k) ?? 0) + n * m);
            pairs += n * m;
          }
        }
      }
    }
  }
  return { cells: out, pairs };
}
