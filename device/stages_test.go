package device

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// timed is an access device whose reflector and host are played by the test, with a
// clock that goes on while it works.
type timed struct {
	nowhere
	*bareCore
	t0     time.Time
	work   time.Duration // that every action takes
	frames []snsd.Packet
}

func (w *timed) Now() time.Time  { return w.now.Add(w.work) }
func (w *timed) Left() time.Time { return w.Now() }
func (w *timed) SendFrame(_ string, f []byte) {
	if p, err := snsd.ParsePacket(f[fabric.EthernetHeaderLen:]); err == nil {
		w.frames = append(w.frames, p)
	}
}

const us = time.Microsecond

// newTimed is a device that knows a local host i1 and a remote one t1, of one zone.
func newTimed(t *testing.T) *timed {
	w := &timed{bareCore: bareMachine(t, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), work: 15 * us}
	c, err := New(Config{Self: bareSelf, Access: true, Epoch: 1}, w, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.Core = c
	w.carrier("eth1", true, fabric.PortAdded)
	w.Start(w.now)
	w.register("h1", "eth1", i1)
	w.ReflectorUp(bareReflector, w.now)
	member := func(s string) zone.Member {
		return zone.Member{Kind: zone.MemberAddr, First: netip.MustParseAddr(s)}
	}
	far := zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr(t1), Device: netip.MustParseAddr(far1), Port: "p"}, MAC: hostMAC("far")}
	w.hear(&wire.Update{Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "z", Members: []zone.Member{member(i1), member(t1)}}}},
		Hosts: []wire.HostRecord{{Op: wire.Put, Host: far}}})
	w.ReflectorMessage(bareReflector, &wire.EndOfSync{}, w.now)
	w.Tick(w.now)
	w.ackAll(0)
	w.Core.stages = stages{}
	w.now = w.now.Add(time.Second)
	w.t0 = w.now
	return w
}

func (w *timed) hear(u *wire.Update) {
	if !u.Origin.IsValid() {
		u.Origin = bareReflector
	}
	w.ReflectorMessage(bareReflector, u, w.now)
	w.Pump(w.now)
}

// ackAll acks what was sent; the kernel received the acks some time ago.
func (w *timed) ackAll(ago time.Duration) {
	for _, p := range w.frames {
		for _, n := range p.Notices {
			b, err := snsd.AppendAck(nil, snsd.Ack{Subject: n.Subject, Host: n.Host, Seq: n.Seq})
			if err != nil {
				w.t.Fatal(err)
			}
			w.Frame(fabric.Frame{Port: "eth1", Src: hostMAC("h1"), EtherType: fabric.EtherTypeNTS, Payload: b, At: w.now.Add(-ago)}, w.now)
		}
	}
	w.frames = nil
}

// wall is a time as another device sends it: its clock is ahead of ours.
func (w *timed) wall(d, ahead time.Duration) time.Time { return w.t0.Add(d + ahead).Round(0) }

// fault is one that far1 saw: every step took as long as its number times 100 us.
func (w *timed) fault(origin, reflector time.Duration) *wire.Update {
	return &wire.Update{Origin: netip.MustParseAddr(far1),
		FaultAt: w.wall(0, origin), DecidedAt: w.wall(100*us, origin), SentAt: w.wall(300*us, origin),
		ReflectorAt: w.wall(600*us, reflector), ReflectedAt: w.wall(1000*us, reflector), ReceivedAt: w.t0.Add(1500 * us),
		Downs: []wire.DownRecord{{Device: netip.MustParseAddr(far1), Port: "p", Down: zone.Down{Why: snsd.ReasonLinkDown}, Addrs: []netip.Addr{netip.MustParseAddr(t1)}}}}
}

// check compares the only value of each stage (microseconds), or -1: counted as skewed.
func (w *timed) check(want map[string]float64) {
	w.t.Helper()
	for name, us := range want {
		reason := ""
		if name == "notice" || name == "acked" {
			reason = "link-down"
		}
		s := stage(w.Stages(), api.ScopeTold, name, reason)
		switch {
		case us < 0 && (s.Skewed != 1 || s.Total.Count != 0):
			w.t.Errorf("%s: %+v, want one value counted as skewed", name, s)
		case us >= 0 && (s.Skewed != 0 || s.Total.Count != 1 || s.Total.Max != us):
			w.t.Errorf("%s: %+v, want %vus", name, s, us)
		}
	}
}

func TestEachStageIsWhatItSays(t *testing.T) {
	w := newTimed(t)
	w.Core.notify.Latencies().Frame, w.Core.notify.Latencies().Ack = w.stages.applied, w.stages.applied // empty
	w.now = w.t0.Add(2100 * us)
	w.hear(w.fault(0, 0)) // the frame leaves 15 us later
	w.now = w.t0.Add(5000 * us)
	w.ackAll(1000 * us)
	w.check(map[string]float64{"decided": 100, "sent": 200, "at-reflector": 300, "reflected": 400, "received": 500, "applied": 600,
		"frame": 15, "ack": 4000 - 2115, "notice": 2115, "acked": 4000})
}

// Every reason a fault can have is measured under its own name.
func TestEachReasonHasItsOwnFigures(t *testing.T) {
	for _, why := range []snsd.Reason{snsd.ReasonLinkDown, snsd.ReasonPacketError, snsd.ReasonPFCStorm, snsd.ReasonBFDDown, 99} {
		w := newTimed(t)
		w.now = w.t0.Add(2100 * us)
		u := w.fault(0, 0)
		u.Downs[0].Why = why
		w.hear(u)
		w.now = w.t0.Add(5000 * us)
		w.ackAll(0)
		name := why.String()
		if why == 99 {
			name = "other"
		}
		for _, stageName := range []string{"notice", "acked"} {
			for _, s := range w.Stages() {
				if s.Name != stageName || s.Reason == "active" { // the host was told of t1 before
					continue
				}
				if s.Reason != name || s.Total.Count != 1 {
					t.Errorf("%s for %s: %s has %d values", stageName, name, s.Reason, s.Total.Count)
				}
			}
		}
		if n := stage(w.Stages(), api.ScopeTold, "notice", name).Total; n.Count != 1 || n.Max != 2115 {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

// Stages within one device are right whatever its clock says; those between two clocks
// that differ are counted apart.
func TestClocksThatDifferSpoilOnlyWhatIsBetweenThem(t *testing.T) {
	for _, c := range []struct {
		name              string
		origin, reflector time.Duration // ahead of our clock
		want              map[string]float64
	}{
		{"the origin is ahead", time.Hour, 0, map[string]float64{"at-reflector": -1, "received": 500, "notice": -1, "acked": -1}},
		{"the origin is behind", -time.Hour, 0, map[string]float64{"at-reflector": -1, "received": 500, "notice": -1, "acked": -1}},
		{"the reflector is ahead", 0, time.Hour, map[string]float64{"at-reflector": -1, "received": -1, "notice": 2115, "acked": 2115}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTimed(t)
			w.now = w.t0.Add(2100 * us)
			w.hear(w.fault(c.origin, c.reflector))
			w.now = w.now.Add(15 * us)
			w.ackAll(0)
			w.check(c.want)
			w.check(map[string]float64{"decided": 100, "sent": 200, "reflected": 400, "applied": 600})
		})
	}
}

// However long a device takes by its own clock, it is slow: only a way between two of them
// can be a difference of clocks.
func TestWhatIsSlowIsNotTakenForAClock(t *testing.T) {
	w := newTimed(t)
	u := w.fault(0, 0)
	const slow = 30 * time.Second
	u.DecidedAt, u.SentAt = u.DecidedAt.Add(slow), u.SentAt.Add(slow)
	u.ReflectorAt, u.ReflectedAt = u.ReflectorAt.Add(slow), u.ReflectedAt.Add(2*slow)
	u.ReceivedAt = u.ReceivedAt.Add(2 * slow)
	w.now = w.t0.Add(2*slow + 2100*us)
	w.hear(u)
	w.now = w.now.Add(15 * us)
	w.ackAll(0)
	w.check(map[string]float64{"decided": 30_000_100, "sent": 200, "at-reflector": 300, "reflected": 30_000_400, "received": 500,
		"notice": 60_002_115, "acked": 60_002_115})
	if n := w.Core.notify.Counters().ClockSkewed; n != 0 {
		t.Errorf("%d notices were counted as of another clock", n)
	}
}

// A message of ours that comes back tells how far the reflector's clock is off.
func TestTheReflectorsClockIsMeasured(t *testing.T) {
	w := newTimed(t)
	back := func(out, in time.Duration) { // the ways there and back; the reflector, 7 s ahead, takes 100 us
		sent := w.now
		w.now = w.now.Add(out + 100*us + in)
		w.hear(&wire.Update{Origin: bareSelf, SentAt: sent.Round(0), ReflectorAt: sent.Add(7*time.Second + out).Round(0),
			ReflectedAt: sent.Add(7*time.Second + out + 100*us).Round(0), ReceivedAt: w.now})
	}
	check := func(ahead, trip float64) {
		t.Helper()
		if l := w.Clocks(); len(l) != 1 || l[0].Reflector != bareReflector || l[0].Ahead != ahead || l[0].RoundTrip != trip {
			t.Errorf("%+v, want %v ahead, round trip %v", l, ahead, trip)
		}
	}
	back(300*us, 100*us)
	check(7e6+100, 400)
	back(2000*us, 10*us) // worse than what is known
	check(7e6+100, 400)
	back(50*us, 50*us)
	check(7e6, 100)
	w.now = w.now.Add(clockAge)
	back(300*us, 100*us) // the better one is old by now
	check(7e6+100, 400)
	// A clock that was set between the stamps, or an absurd one, tells nothing.
	w.hear(&wire.Update{Origin: bareSelf, SentAt: w.now, ReflectorAt: w.now.Add(-time.Hour), ReflectedAt: w.now.Add(time.Hour), ReceivedAt: w.now})
	w.hear(&wire.Update{Origin: bareSelf, SentAt: w.now, ReflectorAt: w.now, ReflectedAt: w.now.Add(-time.Hour), ReceivedAt: w.now})
	check(7e6+100, 400)
}

func TestAnOwnFaultIsMeasuredFromItsStamp(t *testing.T) {
	w := newTimed(t)
	seen := w.now
	w.now = w.now.Add(40 * us) // until the owner got to it
	w.Port(fabric.Event{Kind: fabric.PortChanged, At: seen, Port: fabric.Port{Name: "eth1", Index: 1, AdminUp: true}}, w.now)
	l := w.Stages()
	if d, s := stage(l, api.ScopeOwn, "decided", ""), stage(l, api.ScopeOwn, "sent", ""); d.Total.Max != 40 || d.Total.Count != 1 || s.Total.Max != 15 || s.Total.Count != 1 {
		t.Errorf("decided %+v, sent %+v", d.Total, s.Total)
	}
}

// stage finds a stage; one that is not listed has no values.
func stage(list []api.Stage, scope api.Scope, name, reason string) api.Stage {
	i := slices.IndexFunc(list, func(s api.Stage) bool { return s.Scope == scope && s.Name == name && s.Reason == reason })
	if i < 0 {
		return api.Stage{}
	}
	return list[i]
}
