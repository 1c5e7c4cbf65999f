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
    return (t.data.record?.notices ?? []).filter((n) => n.fault_at / 1000 <= at).map((n) => ({ ...n, when: `${(n.fault_at / 1000).toFixed(3)} ms` }));
  },
  events(t) {
    const at = this.at(t);
    return (t.data.record?.events ?? []).filter((e) => e.ms <= at);
  },
};

// Replay moves the moment of all recorded runs.
export class Replay {
  constructor(draw) {
    this.draw = draw;
    this.timer = null;
    this.last = 0;
    this.speed = 1; // whole runs in 20 s
  }

  get playing() { return this.timer !== null; }

  set(t, ms) {
    const end = t.data.record?.end_ms ?? 0;
    t.cursor = Math.min(end, Math.max(0, ms));
    this.draw();
  }

  toggle(ts) {
    if (this.playing) return this.stop();
    for (const t of ts) if (t.data.record && recorded.at(t) >= t.data.record.end_ms) t.cursor = 0;
    this.last = performance.now();
    this.timer = setInterval(() => {
      const now = performance.now(), s = (now - this.last) / 1000;
      this.last = now;
      let on = false;
      for (const t of ts) {
        const end = t.data.record?.end_ms ?? 0;
        this.set(t, recorded.at(t) + (end * s * this.speed) / 20);
        if (recorded.at(t) < end) on = true;
      }
      if (!on) this.stop();
    }, 100);
    this.draw();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.draw();
  }
}
