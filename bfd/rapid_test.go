package bfd

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawTimers(t *rapid.T, name string) Timers {
	iv := rapid.SampledFrom([]time.Duration{5 * ms, 20 * ms, 50 * ms, 100 * ms, 300 * ms, time.Second, 2 * time.Second})
	return Timers{MinTx: iv.Draw(t, name+" tx"), MinRx: iv.Draw(t, name+" rx"), DetectMult: uint8(rapid.IntRange(1, 10).Draw(t, name+" mult"))}
}

func drawWorld(t *rapid.T) *world {
	w := newWorld(drawTimers(t, "a"), drawTimers(t, "b"), rapid.Uint64().Draw(t, "seed"))
	switch rapid.IntRange(0, 3).Draw(t, "auth") {
	case 1:
		w.auth = &Auth{Type: AuthSHA1, Keys: []AuthKey{{ID: 1, Secret: []byte("k")}}}
	case 2:
		w.auth = &Auth{Type: AuthMeticulousSHA1, Keys: []AuthKey{{ID: 1, Secret: []byte("k")}}}
	}
	return w
}

// detection gives the detection time of device i after RFC 5880 section 6.8.4.
func (w *world) detection(i int) time.Duration {
	mine, peer := w.timer[i], w.timer[1-i]
	return time.Duration(peer.DetectMult) * max(mine.MinRx, peer.MinTx)
}

// settle is how long a pair may take to be Up for good: a peer that lost its memory is
// taken after two detection times of a session that is not Up (section 6.8.1,
// bfd.AuthSeqKnown), then come the slow packets, the Poll Sequence and the hold-up time.
func (w *world) settle() time.Duration {
	return 2*time.Duration(w.mult)*w.longest + 3*w.longest + w.cfg.MaxHoldUp
}

// Whatever happened before: when packets flow, both sides come Up, agree on the
// timers, and report it.
func TestTwoMachinesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.cfg.MaxHoldUp = 3 * time.Second
		rnd := random{x: w.seed ^ 0x55}
		loss, slowest := uint64(0), uint64(time.Millisecond)
		w.lost = func(int, []byte) bool { return rnd.upTo(99) < loss }
		w.delay = func() time.Duration { return time.Duration(1 + rnd.upTo(slowest)) }
		w.start()
		for range rapid.IntRange(0, 12).Draw(t, "faults") {
			i := rapid.IntRange(0, 1).Draw(t, "who")
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0:
				loss = uint64(rapid.IntRange(0, 100).Draw(t, "loss"))
			case 1:
				slowest = uint64(rapid.SampledFrom([]time.Duration{time.Microsecond, 5 * ms, 2 * time.Second}).Draw(t, "delay"))
			case 2:
				w.restart(i)
			case 3:
				w.nodes[i].stopped = !w.nodes[i].stopped
				if !w.nodes[i].stopped {
					w.run(i)
				}
			case 4:
				w.nodes[i].m.Shutdown(w.now)
				w.collect(i)
			case 5, 6:
				w.timer[i] = drawTimers(t, "new")
				if err := w.nodes[i].m.Reconcile(w.wanted(i), w.now); err != nil {
					t.Fatal(err)
				}
				w.collect(i)
			case 7:
				if err := w.nodes[i].m.Reconcile(nil, w.now); err != nil {
					t.Fatal(err)
				}
				w.collect(i)
			}
			w.wait(rapid.SampledFrom([]time.Duration{ms, 40 * ms, 300 * ms, 2 * time.Second, 20 * time.Second}).Draw(t, "wait"))
		}
		loss, slowest = 0, uint64(100*time.Microsecond)
		for i := range w.nodes {
			if w.nodes[i].stopped {
				w.resume(i)
			}
			// The peer's word of before may still be on its way, and what was
			// configured comes back: a Shutdown is undone by telling it once more.
			if err := w.nodes[i].m.Reconcile(nil, w.now); err != nil {
				t.Fatal(err)
			}
			if err := w.nodes[i].m.Reconcile(w.wanted(i), w.now); err != nil {
				t.Fatal(err)
			}
			w.collect(i)
		}
		w.wait(2*time.Second + w.settle()) // the slowest packet of before, then
		if !w.bothUp() {
			t.Fatalf("states %v and %v", w.state(0), w.state(1))
		}
		for i, n := range w.nodes {
			st := n.m.Status(w.now)[0]
			if st.DetectTime != w.detection(i) || st.Polling || st.TxInterval != max(w.timer[i].MinTx, w.timer[1-i].MinRx) {
				t.Fatalf("device %d: %+v", i, st)
			}
			if st.Report != ReportUp {
				t.Fatalf("device %d reports %v", i, st.Report)
			}
		}
	})
}

// When packets stop, detection comes exactly one detection time after the last one:
// never earlier, and with the silence it is no later than that either.
func TestDetectionIsNeitherEarlyNorLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		cut := false
		w.lost = func(int, []byte) bool { return cut }
		// Delay varies by less than the margin that jitter leaves: without loss a
		// session must not go down.
		rnd := random{x: w.seed}
		jitter := uint64(200 * time.Microsecond)
		w.delay = func() time.Duration { return time.Duration(jitter + rnd.upTo(jitter/2)) }
		w.start()
		w.wait(w.settle())
		if !w.bothUp() {
			t.Fatalf("states %v and %v", w.state(0), w.state(1))
		}
		w.wait(time.Duration(rapid.IntRange(0, 2_000_000).Draw(t, "phase")) * time.Microsecond)
		for i, n := range w.nodes {
			if !n.down.IsZero() {
				t.Fatalf("device %d went down without a loss, at %v", i, n.down.Sub(t0))
			}
		}
		cut = true
		fault := w.now
		w.wire = slices.DeleteFunc(w.wire, func(flight) bool { return true })
		// Only one side can be judged by its silence: the other may hear nothing as well,
		// as here, since both directions are cut.
		w.wait(21 * time.Second)
		for i, n := range w.nodes {
			d := n.down.Sub(n.lastIn)
			if n.down.IsZero() || d != w.detection(i) {
				t.Fatalf("device %d: Down %v after the last packet, detection time %v", i, d, w.detection(i))
			}
			peerTx := max(w.timer[1-i].MinTx, w.timer[i].MinRx)
			if after := n.down.Sub(fault); after > w.detection(i) || after < w.detection(i)-peerTx-ms {
				t.Fatalf("device %d: Down %v after the fault", i, after)
			}
		}
	})
}

// A path that fails in one direction takes both ends down: the one that hears
// nothing by its timer, the other one because it is told.
func TestOneWayFaultIsSeenByBoth(t *testing.T) {
	w := newWorld(every(50*ms, 3), every(50*ms, 3), 9)
	cut := -1
	w.lost = func(from int, _ []byte) bool { return from == cut }
	w.start()
	w.wait(10 * time.Second)
	cut = 0
	w.wait(301 * ms) // the one that is not heard waits for the end of what named it
	if w.state(0) != StateDown || w.state(1) == StateUp {
		t.Fatalf("states %v and %v", w.state(0), w.state(1))
	}
	ev0, ev1 := w.nodes[0].events, w.nodes[1].events
	if l := ev0[len(ev0)-1]; l.Report != ReportDown || l.Diag != DiagNeighborDown || l.RemoteDiag != DiagDetectTime {
		t.Errorf("the heard end: %+v", l)
	}
	if l := ev1[len(ev1)-1]; l.Report != ReportDown || l.Diag != DiagDetectTime {
		t.Errorf("the deaf end: %+v", l)
	}
}

// Periodic packets are never further apart than the negotiated interval, and never
// closer than three quarters of it (section 6.8.7).
func TestPeriodicPacketsKeepTheirInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.start()
		w.wait(w.settle())
		for _, n := range w.nodes {
			n.sentAt = nil
		}
		w.wait(10 * time.Second)
		for i, n := range w.nodes {
			iv := max(w.timer[i].MinTx, w.timer[1-i].MinRx)
			for j := 1; j < len(n.sentAt); j++ {
				gap := n.sentAt[j].Sub(n.sentAt[j-1])
				most := iv
				if w.timer[i].DetectMult == 1 {
					most = iv * 9 / 10
				}
				if gap > most || gap < iv*3/4 {
					t.Fatalf("device %d: gap of %v at %v x %d", i, gap, iv, w.timer[i].DetectMult)
				}
			}
		}
	})
}

// A process that is stopped for any time, or a path that loses any packets while it
// is, must not by itself make the stopped side declare the peer dead.
func TestAStoppedProcessDoesNotDeclareItsPeerDead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		overflow := false
		w.lost = func(from int, _ []byte) bool { return overflow && from == 1 }
		w.start()
		w.wait(w.settle())
		w.nodes[0].stopped = true
		w.nodes[0].events = nil
		w.wait(time.Duration(rapid.IntRange(0, 1000).Draw(t, "queued ms")) * ms)
		rest := time.Duration(rapid.IntRange(0, 10_000).Draw(t, "stopped ms")) * ms
		// A queue overflows in a long pause only.
		if overflow = rapid.Bool().Draw(t, "queue overflows"); overflow {
			rest += 3 * max(w.timer[0].MinRx, w.timer[1].MinTx)
		}
		w.wait(rest)
		overflow = false
		w.resume(0)
		w.wait(w.settle())
		gaveUp := slices.ContainsFunc(w.nodes[1].events, func(e Event) bool { return e.Report == ReportDown })
		for _, e := range w.nodes[0].events {
			// A peer that took us for dead meanwhile is Down, told or not.
			if e.Report == ReportDown && !gaveUp {
				t.Fatalf("after a pause: %+v", e)
			}
		}
		if !w.bothUp() {
			t.Fatalf("states %v and %v", w.state(0), w.state(1))
		}
	})
}

// Reports of a session alternate and only ever follow the state with the hold-up time.
func TestReportsMakeSense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		rnd := random{x: w.seed}
		w.lost = func(int, []byte) bool { return rnd.upTo(9) < 4 }
		w.start()
		w.wait(60 * time.Second)
		for i, n := range w.nodes {
			last := Event{Report: ReportUnknown}
			for _, e := range n.events {
				if e.Report == last.Report || last.Report == ReportUnknown && e.Report != ReportUp {
					t.Fatalf("device %d: %v after %v", i, e.Report, last.Report)
				}
				if last.Report == ReportDown && e.At.Sub(last.At) < time.Second {
					t.Fatalf("device %d: up again after %v", i, e.At.Sub(last.At))
				}
				if e.Flaps < last.Flaps {
					t.Fatalf("device %d: %d flaps after %d", i, e.Flaps, last.Flaps)
				}
				last = e
			}
		}
	})
}

// FuzzSession drives one Manager with bytes: packets made from them, raw bytes, time
// and reconfiguration. It must neither panic nor hang nor break its own rules.
func FuzzSession(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add([]byte{1, 0, 1, 1, 5, 1, 2, 5, 1, 3, 5, 6, 7})
	f.Fuzz(func(t *testing.T, in []byte) {
		byteOf := func() (b byte) {
			if len(in) > 0 {
				b, in = in[0], in[1:]
			}
			return b
		}
		now := t0
		m := NewManager(Config{Seed: 5}, now)
		p := Peer{Key: Key{Peer: addrB, Interface: "eth0"}, Timers: every(50*ms, 3), Passive: byteOf()&1 != 0}
		if err := m.Reconcile([]Peer{p}, now); err != nil {
			t.Fatal(err)
		}
		for len(in) > 0 {
			a := Arrival{Src: addrB, Interface: "eth0", TTL: 255, At: now.Add(-time.Duration(byteOf()) * ms)}
			switch byteOf() % 8 {
			case 0: // raw bytes
				n := min(int(byteOf()), len(in))
				_ = m.Receive(&a, in[:n], now)
				in = in[n:]
			case 1, 2, 3, 4: // a packet that fits
				q := Packet{State: State(byteOf() % 4), DetectMult: byteOf(), MyDiscr: uint32(byteOf()), DesiredMinTx: uint32(byteOf()) << (byteOf() % 24),
					RequiredMinRx: uint32(byteOf()) << (byteOf() % 24), Demand: byteOf()&1 != 0}
				switch byteOf() % 3 {
				case 1:
					q.Poll = true
				case 2:
					q.Final = true
				}
				for discr := range m.byDiscr {
					q.YourDiscr = discr
				}
				_ = m.Receive(&a, q.Append(nil), now)
			case 5:
				now = now.Add(time.Duration(byteOf()) * ms)
				if byteOf()&1 != 0 {
					m.Wake(now)
				}
				m.Tick(now)
			case 6:
				p.Timers = every(time.Duration(1+byteOf())*ms, 1+byteOf()%20)
				p.AdminDown = byteOf()&1 != 0
				_ = m.Reconcile([]Peer{p}, now)
			case 7:
				m.LinkDown("eth0", now)
				m.LinkUp("eth0", now)
			}
			if err := m.consistent(now); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// consistent checks what must hold between any two calls.
func (m *Manager) consistent(now time.Time) error {
	for _, s := range m.Sends() {
		p, err := Parse(s.Data())
		if err != nil {
			return fmt.Errorf("we sent %x: %w", s.Data(), err)
		}
		if p.State == StateUp && p.YourDiscr == 0 || p.State != StateUp && p.DesiredMinTx < 1_000_000 {
			return fmt.Errorf("we sent %+v", p)
		}
	}
	m.Events()
	if !m.timers.Sound() || m.timers.Len() != len(m.byDiscr) {
		return fmt.Errorf("the heap of %d timers is broken", m.timers.Len())
	}
	for d, s := range m.byDiscr {
		switch {
		case d == 0 || d != s.localDiscr || !s.Queued() || s.due != s.earliest():
			return fmt.Errorf("session %d is out of place", d)
		case (s.state == StateUp || s.state == StateInit) && s.detectAt == never:
			return fmt.Errorf("%v without a detection timer", s.state)
		case s.periodic() != (s.txAt != never):
			return fmt.Errorf("periodic is %v, next packet at %d", s.periodic(), s.txAt)
		}
	}
	return nil
}
