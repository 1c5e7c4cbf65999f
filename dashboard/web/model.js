// A model of a fabric: one that runs (`fabric serve`), and a run that was recorded and is
// replayed. Both are brought into the forms that the views of devices take.

// recorded has what a recorded run says at the moment that is replayed: t.cursor, in ms.
export const recorded = {
  at: (t) => t.cursor ?? t.data.record?.end_ms ?? 0,
  frame(t) { // the last sample at or before the moment
    const f = t.data.record?.frames ?? [], at = this.at(t);
    let lo = 0, hi = f.length;
    while (lo < hi) {
      const m = (lo + hi) >> 1;
      if (f[m].ms <= at) lo = m + 1;
      else hi = m;
    }
    return { now: f[lo - 1] ?? null, before: f[lo - 2] ?? null };
  },
  notices(t) {
    const at = this.at(t);
    return (t.data.record?.notices ?? []).filter((n) => n.fault_at / 1000 <= at);
  },
  events(t) {
    const at = this.at(t);
    return (t.data.record?.events ?? []).filter((e) => e.ms <= at);
  },
};
