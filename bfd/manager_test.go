package bfd

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func keys(m *Manager) []string {
	out := []string{}
	for _, s := range m.sorted() {
		k := s.peer.Key.String()
		if s.lingers != never {
			k += " retiring"
		}
		out = append(out, k)
	}
	return out
}

func TestReconcileMakesAndRemovesSessions(t *testing.T) {
	m := NewManager(Config{}, t0)
	hop := func(peer, local string) Peer {
		return Peer{Key: Key{Peer: ip(peer), Local: ip(local), Multihop: true}}
	}
	wanted := []Peer{
		{Key: Key{Peer: ip("192.0.2.9")}},
		{Key: Key{Peer: ip("fe80::2%eth1")}},
		{Key: Key{Peer: ip("fe80::2"), Interface: "eth2"}},
		hop("2001:db8::9", "2001:db8::1"), hop("192.0.2.9", "192.0.2.1"), hop("192.0.2.9", "192.0.2.2"),
	}
	if err := m.Reconcile(wanted, t0); err != nil {
		t.Fatal(err)
	}
	want := []string{"192.0.2.9", "192.0.2.9 multihop", "192.0.2.9 multihop", "2001:db8::9 multihop", "fe80::2%eth1", "fe80::2%eth2"}
	if d := cmp.Diff(want, keys(m)); d != "" {
		t.Error(d)
	}
	before := m.byKey[Key{Peer: ip("192.0.2.9")}].localDiscr
	if err := m.Reconcile(wanted[:1], t0); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"192.0.2.9"}, keys(m)); d != "" {
		t.Error("nobody answered the others, they end at once:", d)
	}
	if n := len(m.Gone()); n != 5 {
		t.Errorf("%d sessions are told as gone", n)
	}
	if m.byKey[Key{Peer: ip("192.0.2.9")}].localDiscr != before {
		t.Error("a session that is still wanted was made anew")
	}
	if err := m.Reconcile(nil, t0); err != nil || m.Len() != 0 || !m.Next().IsZero() {
		t.Errorf("%v, %d sessions left after nothing is wanted, next %v", err, m.Len(), m.Next())
	}
}

func TestReconcileTakesTheLargerTimers(t *testing.T) {
	m := NewManager(Config{}, t0)
	err := m.Reconcile([]Peer{
		{Key: Key{Peer: addrB}, Timers: Timers{MinTx: 10 * ms, MinRx: 300 * ms, DetectMult: 3}},
		{Key: Key{Peer: netip.AddrFrom16(addrB.As16())}, Timers: Timers{MinTx: 50 * ms, MinRx: 20 * ms, DetectMult: 5}},
	}, t0)
	if err != nil || m.Len() != 1 {
		t.Fatalf("%v, %d sessions", err, m.Len())
	}
	if got := m.Status(t0)[0].Configured; got != (Timers{MinTx: 50 * ms, MinRx: 300 * ms, DetectMult: 5}) {
		t.Errorf("timers %+v", got)
	}
}

func TestReconcileRefusesOnlyWhatIsWrong(t *testing.T) {
	m := NewManager(Config{MaxSessions: 2}, t0)
	err := m.Reconcile([]Peer{
		{Key: Key{Peer: ip("0.0.0.0")}},
		{Key: Key{Peer: ip("fe80::1")}},
		{Key: Key{Peer: ip("192.0.2.7"), Multihop: true}},
		{Key: Key{Peer: ip("192.0.2.7"), Local: ip("2001:db8::1")}},
		{Key: Key{Peer: ip("192.0.2.7")}, Timers: every(time.Microsecond, 3)},
		{Key: Key{Peer: ip("192.0.2.7")}, Auth: &Auth{Type: AuthMD5}},
		{Key: Key{Peer: ip("192.0.2.8")}}, {Key: Key{Peer: ip("192.0.2.9")}}, {Key: Key{Peer: ip("192.0.2.10")}},
	}, t0)
	var ce *ConfigError
	var le *LimitError
	if !errors.As(err, &ce) || !errors.As(err, &le) || le.Refused != 1 {
		t.Errorf("errors: %v", err)
	}
	if n := strings.Count(err.Error(), "\n"); n != 6 {
		t.Errorf("%d lines:\n%v", n+1, err)
	}
	if m.Len() != 2 || m.Counters().Refused != 7 {
		t.Errorf("%d sessions, %d refused", m.Len(), m.Counters().Refused)
	}
}

func TestUnwantedSessionTellsAdminDownForADetectionTime(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	if err := pu.m.Reconcile(nil, pu.now); err != nil {
		t.Fatal(err)
	}
	pu.collect()
	if ev := pu.takeEvents(); len(ev) != 1 || ev[0].Report != ReportAdminDown {
		t.Errorf("events %+v", ev)
	}
	discr := pu.s().localDiscr
	pu.wait(3 * time.Second)
	got := pu.take()
	if pu.m.Len() != 0 || len(got) < 3 {
		t.Errorf("%d sessions left, %d packets", pu.m.Len(), len(got))
	}
	for _, p := range got {
		if p.State != StateAdminDown {
			t.Errorf("sent %+v", p)
		}
	}
	if gone := pu.m.Gone(); len(gone) != 1 || gone[0] != discr {
		t.Errorf("gone %v", gone)
	}
}

func TestRetiringSessionIsRevived(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	discr := pu.s().localDiscr
	if err := pu.m.Reconcile(nil, pu.now); err != nil {
		t.Fatal(err)
	}
	pu.wait(time.Second)
	pu.reconcile(Peer{Timers: every(50*ms, 3)})
	if s := pu.s(); s.localDiscr != discr || s.state != StateDown {
		t.Errorf("discriminator %d, was %d; %v", s.localDiscr, discr, s.state)
	}
	pu.wait(time.Minute)
	if pu.m.Len() != 1 {
		t.Error("the session ended all the same")
	}
}

func TestDiscriminatorsAreNeitherZeroNorUsedTwice(t *testing.T) {
	seen := map[uint32]bool{}
	d := discriminators{key: 42}
	for range 100_000 {
		n := d.take(func(n uint32) bool { return n%5 == 0 })
		if n == 0 || seen[n] || n%5 == 0 {
			t.Fatalf("%d is zero, taken or was given before", n)
		}
		seen[n] = true
	}
	zero := uint32(0)
	for ; d.permute(zero) != 0 && zero < 1<<20; zero++ {
	}
	d.next = zero
	if d.take(func(uint32) bool { return false }) == 0 {
		t.Error("zero was given")
	}
}

func TestDemultiplexing(t *testing.T) {
	m := NewManager(Config{}, t0)
	err := m.Reconcile([]Peer{
		{Key: Key{Peer: ip("192.0.2.9"), Interface: "eth1"}},
		{Key: Key{Peer: ip("192.0.2.9"), Interface: "eth2"}},
		{Key: Key{Peer: ip("192.0.2.8")}},
		{Key: Key{Peer: ip("192.0.2.8"), Local: ip("192.0.2.1"), Multihop: true}, MinTTL: 250},
		{Key: Key{Peer: ip("192.0.2.8"), Local: ip("192.0.2.2"), Multihop: true}},
		{Key: Key{Peer: ip("fe80::1"), Interface: "eth1"}},
		{Key: Key{Peer: ip("192.0.2.6"), Local: ip("192.0.2.1")}},
	}, t0)
	if err != nil {
		t.Fatal(err)
	}
	down := Packet{State: StateDown, DetectMult: 3, MyDiscr: 9, DesiredMinTx: 1e6, RequiredMinRx: 1e6}
	for _, c := range []struct {
		name string
		a    Arrival
		want Key
		err  error
	}{
		{"by interface", Arrival{Src: ip("192.0.2.9"), Interface: "eth2", TTL: 255}, Key{Peer: ip("192.0.2.9"), Interface: "eth2"}, nil},
		{"interface without a session", Arrival{Src: ip("192.0.2.9"), Interface: "eth3", TTL: 255}, Key{}, ErrNoSession},
		{"any interface", Arrival{Src: ip("192.0.2.8"), Interface: "eth3", TTL: 255}, Key{Peer: ip("192.0.2.8")}, nil},
		{"mapped address", Arrival{Src: ip("::ffff:192.0.2.8"), TTL: 255}, Key{Peer: ip("192.0.2.8")}, nil},
		{"multihop by both addresses", Arrival{Src: ip("192.0.2.8"), Dst: ip("192.0.2.2"), Multihop: true, TTL: 3}, Key{Peer: ip("192.0.2.8"), Local: ip("192.0.2.2"), Multihop: true}, nil},
		{"multihop to another address", Arrival{Src: ip("192.0.2.8"), Dst: ip("192.0.2.3"), Multihop: true, TTL: 255}, Key{}, ErrNoSession},
		{"multihop from too far", Arrival{Src: ip("192.0.2.8"), Dst: ip("192.0.2.1"), Multihop: true, TTL: 249}, Key{}, ErrTTL},
		{"link-local, zone in the address", Arrival{Src: ip("fe80::1%eth1"), Interface: "eth1", TTL: 255}, Key{Peer: ip("fe80::1"), Interface: "eth1"}, nil},
		{"link-local of another link", Arrival{Src: ip("fe80::1"), Interface: "eth2", TTL: 255}, Key{}, ErrNoSession},
		{"single hop to another of our addresses", Arrival{Src: ip("192.0.2.6"), Dst: ip("192.0.2.2"), TTL: 255}, Key{}, ErrNoSession},
	} {
		before := map[Key]uint64{}
		for _, s := range m.byDiscr {
			before[s.peer.Key] = s.packetsIn
		}
		err := m.Receive(&c.a, down.Append(nil), t0)
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, s := range m.byDiscr {
			if got := s.packetsIn > before[s.peer.Key]; got != (s.peer.Key == c.want) {
				t.Errorf("%s: taken by %v is %v", c.name, s.peer.Key, got)
			}
		}
	}
}

func TestUpIsToldAfterTheHoldUpTimeAndDownAtOnce(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.mustSay(StateDown)
	pu.mustSay(StateInit)
	if d := cmp.Diff([]Report{ReportUp}, reports(pu.takeEvents())); d != "" {
		t.Error("the first Up follows no fault:", d)
	}
	pu.mustSay(StateDown, deaf)
	ev := pu.takeEvents()
	if len(ev) != 1 || ev[0].Report != ReportDown || ev[0].Diag != DiagNeighborDown || ev[0].Flaps != 1 || !ev[0].At.Equal(pu.now) {
		t.Errorf("events %+v", ev)
	}
	pu.mustSay(StateInit)
	for range 99 {
		pu.wait(10 * ms)
		pu.mustSay(StateUp)
	}
	if ev := pu.takeEvents(); len(ev) != 0 {
		t.Errorf("told before the hold-up time is over: %+v", ev)
	}
	if st := pu.m.Status(pu.now)[0]; st.HoldLeft != 10*ms || st.Report != ReportDown || st.State != StateUp {
		t.Errorf("status %+v", st)
	}
	pu.wait(10 * ms)
	if d := cmp.Diff([]Report{ReportUp}, reports(pu.takeEvents())); d != "" {
		t.Error(d)
	}
}

func TestFlappingSessionIsDamped(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{MaxHoldUp: 5 * time.Second, SteadyTime: time.Minute})
	cycle := func() time.Duration {
		pu.mustSay(StateDown, deaf)
		pu.mustSay(StateInit)
		return pu.m.Status(pu.now)[0].HoldLeft
	}
	pu.up()
	for i, want := range []time.Duration{1, 2, 4, 5, 5} {
		if got := cycle(); got != want*time.Second {
			t.Errorf("hold-up time of flap %d: %v, want %v s", i+1, got, int(want))
		}
	}
	if d := cmp.Diff([]Report{ReportDown}, reports(pu.takeEvents())); d != "" {
		t.Error("five flaps are one Down:", d)
	}
	for range 610 {
		pu.wait(100 * ms)
		pu.mustSay(StateUp)
	}
	if got := cycle(); got != time.Second {
		t.Errorf("after a steady minute the hold-up time is %v", got)
	}
	if c := pu.m.Counters(); c.Flaps != 6 || c.Damped != 3 {
		t.Errorf("counters %+v", c)
	}
}

// RFC 5882 section 3.2: AdminDown tells nothing about the path.
func TestAdminDownOfThePeerIsNoFault(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.mustSay(StateAdminDown)
	pu.want(StateDown, DiagNeighborDown)
	if d := cmp.Diff([]Report{ReportAdminDown}, reports(pu.takeEvents())); d != "" {
		t.Error(d)
	}
	pu.wait(time.Minute)
	pu.up2()
	if d := cmp.Diff([]Report{ReportUp}, reports(pu.takeEvents())); d != "" {
		t.Error("no hold-up time, there was no fault:", d)
	}
	if pu.m.Counters().Flaps != 0 {
		t.Error("counted as a flap")
	}
}

// up2 brings the session Up and leaves the events alone.
func (pu *puppet) up2() {
	pu.mustSay(StateDown)
	pu.mustSay(StateInit)
}

func TestFaultEndsWhenThePeerTurnsOutToBeAdminDown(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.wait(time.Second)
	pu.mustSay(StateAdminDown)
	if d := cmp.Diff([]Report{ReportDown, ReportAdminDown}, reports(pu.takeEvents())); d != "" {
		t.Error(d)
	}
}

func TestShutdownTellsAdminDown(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.m.Shutdown(pu.now)
	pu.collect()
	if got := pu.take(); len(got) != 1 || got[0].State != StateAdminDown || got[0].YourDiscr != 77 {
		t.Errorf("sent %+v", got)
	}
}

func TestEchoIsReturnedOnlyWhereOffered(t *testing.T) {
	offer := Timers{MinTx: 50 * ms, MinRx: 50 * ms, DetectMult: 3, MinEchoRx: 20 * ms}
	pu := newPuppet(t, Peer{Timers: offer}, Config{})
	if pu.m.Echo(&pu.at, pu.now) {
		t.Error("returned while Down")
	}
	pu.up()
	if pu.s().peer.Timers.MinEchoRx != 20*ms || !pu.m.Echo(&pu.at, pu.now) {
		t.Error("not returned")
	}
	pu.wait(5 * ms)
	if pu.m.Echo(&pu.at, pu.now) {
		t.Error("returned much faster than offered")
	}
	pu.wait(10 * ms)
	far := pu.at
	far.TTL = 254
	if pu.m.Echo(&far, pu.now) || !pu.m.Echo(&pu.at, pu.now) {
		t.Error("TTL 254 was returned, or 255 was not")
	}
	pu.mustSay(StateUp, poll)
	if got := pu.take(); got[len(got)-1].RequiredMinEchoRx != 20_000 {
		t.Errorf("offered %+v", got)
	}
	other := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	other.up()
	if other.m.Echo(&other.at, other.now) {
		t.Error("returned though not offered")
	}
	if c := pu.m.Counters(); c.EchoReturned != 2 || c.EchoRefused != 3 {
		t.Errorf("counters %+v", c)
	}
}

func TestAfterAPauseEachSessionGetsOneDetectionTime(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.now = pu.now.Add(10 * time.Second) // stopped
	pu.m.Wake(pu.now)
	pu.m.Tick(pu.now)
	pu.collect()
	pu.want(StateUp, DiagNone)
	if c := pu.m.Counters(); c.Pauses != 1 || c.Graced != 1 || c.TxLate != 1 || c.TxLateMax < 9*time.Second {
		t.Errorf("counters %+v", c)
	}
	pu.wait(150*ms - 1)
	pu.want(StateUp, DiagNone)
	pu.wait(1)
	pu.want(StateDown, DiagDetectTime)
}

func TestASecondPauseWithoutAWordGivesNoMoreTime(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	for range 3 {
		pu.now = pu.now.Add(100 * ms)
		pu.m.Wake(pu.now)
		pu.m.Tick(pu.now)
		pu.collect()
	}
	pu.want(StateDown, DiagDetectTime)
}

func TestAPauseShorterThanTheIntervalChangesNothing(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.wait(100 * ms)
	pu.m.Paused(pu.now, pu.now.Add(49*ms))
	pu.now = pu.now.Add(49 * ms)
	pu.wait(1 * ms)
	pu.want(StateDown, DiagDetectTime)
	if c := pu.m.Counters(); c.Pauses != 1 || c.Graced != 0 {
		t.Errorf("counters %+v", c)
	}
}

// What waited in the queue during a pause counts as heard when it is read: the
// packets behind it may have been dropped.
func TestPacketsOfAPauseCountFromItsEnd(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	heard := pu.now.Add(50 * ms)
	pu.now = pu.now.Add(10 * time.Second)
	pu.m.Wake(pu.now)
	pu.at.At = heard
	pu.mustSay(StateUp)
	pu.m.Tick(pu.now)
	pu.collect()
	pu.wait(149 * ms)
	pu.want(StateUp, DiagNone)
	pu.wait(ms)
	pu.want(StateDown, DiagDetectTime)
}

func TestAPeerThatSaysDownAfterAPauseIsBelieved(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.now = pu.now.Add(10 * time.Second)
	pu.m.Wake(pu.now)
	pu.mustSay(StateDown)
	pu.want(StateDown, DiagNeighborDown)
}

func TestMeshFormsWithoutAStorm(t *testing.T) {
	m := NewManager(Config{Seed: 3}, t0)
	var wanted []Peer
	for i := range 255 {
		wanted = append(wanted, Peer{Key: Key{Peer: netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), Local: addrA, Multihop: true}})
	}
	if err := m.Reconcile(wanted, t0); err != nil {
		t.Fatal(err)
	}
	buckets := make([]int, 10)
	for now := t0; now.Before(t0.Add(999 * ms)); now = m.Next() {
		m.Tick(now)
		buckets[now.Sub(t0)/(100*ms)] += len(m.Sends())
	}
	for i, n := range buckets {
		if n > 60 {
			t.Errorf("%d packets of 255 sessions in tenth %d of the first second", n, i)
		}
	}
}

func TestStatusShowsConfiguredAndEffectiveTimers(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.peer.DesiredMinTx, pu.peer.RequiredMinRx, pu.peer.DetectMult = 60_000, 80_000, 4
	pu.up()
	got := pu.m.Status(pu.now)[0]
	want := Status{Peer: addrB, State: StateUp, RemoteState: StateUp, Report: ReportUp, RemoteDiscr: 77,
		Configured: every(50*ms, 3), Remote: Timers{MinTx: 60 * ms, MinRx: 80 * ms, DetectMult: 4},
		TxInterval: 80 * ms, DetectTime: 240 * ms, HoldUp: time.Second, Since: t0, LastHeard: t0, PacketsIn: 3, PacketsOut: 2}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Status{}, "LocalDiscr"), cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Error(d)
	}
	b, err := json.Marshal(got)
	if err != nil || !strings.Contains(string(b), `"peer":"192.0.2.2"`) || !strings.Contains(string(b), `"state":"Up"`) {
		t.Errorf("%v: %s", err, b)
	}
	if r, ok := pu.m.ReportOf(Key{Peer: addrB}); !ok || r != ReportUp || !pu.m.Healthy(addrB) {
		t.Errorf("report %v, %v", r, ok)
	}
}

func TestTimeThatGoesBackIsTakenAsStandingStill(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.m.Tick(t0.Add(-time.Hour))
	pu.m.Wake(t0.Add(-time.Hour))
	pu.want(StateUp, DiagNone)
	if pu.m.Counters().Pauses != 0 {
		t.Error("taken for a pause")
	}
}
