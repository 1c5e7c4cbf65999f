package bfd

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A peer whose process was started again takes the session down without a
// diagnostic. That it comes up again soon shows that the path was well all the time.
func TestAPeerThatWasOnlyStartedAgainIsNoFault(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.peer.MyDiscr = 78
	pu.restarts()
	if left := pu.m.Status(pu.now)[0].DownLeft; left != 5*time.Second {
		t.Errorf("Down is told after %v", left)
	}
	pu.wait(time.Second)
	pu.up2()
	for range 200 {
		pu.wait(40 * ms)
		pu.mustSay(StateUp)
	}
	if ev := pu.takeEvents(); len(ev) != 0 {
		t.Errorf("events %+v", ev)
	}
	if c := pu.m.Counters(); c.Restarts != 1 || c.Flaps != 0 {
		t.Errorf("counters %+v", c)
	}
}

// restarts has a peer that does not know us any more say so; it counts when nothing came
// any more that names us.
func (pu *puppet) restarts() {
	pu.t.Helper()
	for range 3 {
		if err := pu.says(StateDown, forgot); !errors.Is(err, ErrUnnamed) {
			pu.t.Fatalf("while the session stands: %v", err)
		}
		pu.wait(50 * ms)
	}
	pu.want(StateDown, DiagNeighborDown)
}

func TestAPeerThatDoesNotComeBackIsAFault(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.restarts()
	pu.wait(5*time.Second - ms)
	if ev := pu.takeEvents(); len(ev) != 0 {
		t.Errorf("too early: %+v", ev)
	}
	pu.wait(ms)
	ev := pu.takeEvents()
	if d := cmp.Diff([]Report{ReportDown}, reports(ev)); d != "" || ev[0].Flaps != 1 {
		t.Errorf("%s%+v", d, ev)
	}
	pu.wait(time.Minute)
	if ev := pu.takeEvents(); len(ev) != 0 {
		t.Errorf("told again: %+v", ev)
	}
}

func TestSilenceAndAPeerThatDoesNotHearUsAreFaultsAtOnce(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.mustSay(StateDown, deaf)
	if d := cmp.Diff([]Report{ReportDown}, reports(pu.takeEvents())); d != "" {
		t.Error(d)
	}
	pu = newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.wait(150 * ms)
	if d := cmp.Diff([]Report{ReportDown}, reports(pu.takeEvents())); d != "" {
		t.Error(d)
	}
}

// While this process did not run its peers heard nothing and took their sessions down.
// That is a fault for their hosts, but for ours only if it lasts.
func TestAPauseOfOurOwnIsNoFaultOfTheOthers(t *testing.T) {
	for _, pause := range []time.Duration{2 * time.Second, 160 * ms, 20 * ms} {
		pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
		pu.up()
		pu.now = pu.m.Next().Add(pause)
		pu.m.Wake(pu.now)
		pu.mustSay(StateDown, deaf)
		pu.want(StateDown, DiagNeighborDown)
		want := []Report{}
		if pause < 100*ms { // too short to be the reason
			want = []Report{ReportDown}
		}
		if d := cmp.Diff(want, reports(pu.takeEvents())); d != "" {
			t.Errorf("pause of %v: %s", pause, d)
		}
	}
}

func TestAdminDownEndsTheWaitForAPeer(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.restarts()
	pu.mustSay(StateAdminDown)
	pu.wait(time.Minute)
	if d := cmp.Diff([]Report{ReportAdminDown}, reports(pu.takeEvents())); d != "" {
		t.Error(d)
	}
}

// What an earlier process knew of the path goes on: one that worked is told as failed
// when it is not seen to work.
func TestASessionGoesOnFromWhatWasReportedLast(t *testing.T) {
	for _, tc := range []struct {
		last  Report
		comes bool
		want  []Report
	}{
		{ReportUnknown, false, []Report{}}, {ReportUnknown, true, []Report{ReportUp}},
		{ReportUp, false, []Report{ReportDown}}, {ReportUp, true, []Report{}},
		{ReportDown, false, []Report{}}, {ReportDown, true, []Report{ReportUp}},
		{ReportAdminDown, false, []Report{}}, {ReportAdminDown, true, []Report{ReportUp}},
	} {
		pu := newPuppet(t, Peer{Timers: every(50*ms, 3), Last: tc.last}, Config{})
		pu.wait(time.Second)
		if tc.comes {
			pu.up2()
			for range 100 {
				pu.wait(40 * ms)
				pu.mustSay(StateUp)
			}
		} else {
			pu.wait(time.Minute)
		}
		if d := cmp.Diff(tc.want, reports(pu.takeEvents())); d != "" {
			t.Errorf("last %v, the peer comes %v: %s", tc.last, tc.comes, d)
		}
	}
}

func TestAProcessStartedAgainSpeaksWithinAnInterval(t *testing.T) {
	for seed := range uint64(50) {
		pu := newPuppet(t, Peer{Timers: every(50*ms, 3), Last: ReportUp}, Config{Seed: seed})
		pu.wait(50 * ms)
		if len(pu.take()) == 0 {
			t.Fatalf("seed %d: nothing was sent within the interval", seed)
		}
	}
}

// mesh is many Managers, each with a session to all others, on a network that takes a
// millisecond.
type meshWorld struct {
	t     *testing.T
	now   time.Time
	nodes []*Manager
	addrs []netip.Addr
	index map[netip.Addr]int
	inbox [][]meshPacket
	busy  []int // packets by device in the present 10 ms
	peak  int   // most of them
	total int
}

type meshPacket struct {
	from netip.Addr
	data []byte
}

func newMeshWorld(t *testing.T, n int) *meshWorld {
	w := &meshWorld{t: t, now: t0, index: map[netip.Addr]int{}, inbox: make([][]meshPacket, n), busy: make([]int, n)}
	for i := range n {
		a := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		w.addrs, w.index[a] = append(w.addrs, a), i
		w.nodes = append(w.nodes, NewManager(Config{Seed: uint64(i) + 1}, t0))
	}
	return w
}

func (w *meshWorld) wanted(i int, last Report, keys ...AuthKey) []Peer {
	var auth *Auth
	if len(keys) > 0 {
		auth = &Auth{Type: AuthMeticulousSHA1, Keys: keys}
	}
	var out []Peer
	for j, a := range w.addrs {
		if j != i {
			out = append(out, Peer{Key: Key{Peer: a, Local: w.addrs[i], Multihop: true}, Timers: DefaultTimers(), Last: last, Auth: auth})
		}
	}
	return out
}

func (w *meshWorld) millisecond() {
	boxes := w.inbox
	w.inbox = make([][]meshPacket, len(w.nodes))
	for i, m := range w.nodes {
		for _, p := range boxes[i] {
			_ = m.Receive(&Arrival{Src: p.from, Dst: w.addrs[i], Multihop: true, TTL: 255}, p.data, w.now)
		}
		if next := m.Next(); !next.IsZero() && !next.After(w.now) {
			m.Tick(w.now)
		}
		for _, s := range m.Sends() {
			j := w.index[s.Peer]
			w.inbox[j] = append(w.inbox[j], meshPacket{w.addrs[i], append([]byte(nil), s.Data()...)})
			w.busy[i]++
			w.total++
		}
		w.peak = max(w.peak, w.busy[i])
	}
	w.now = w.now.Add(ms)
	if w.now.Sub(t0)%(10*ms) == 0 {
		clear(w.busy)
	}
}

func (w *meshWorld) up() bool {
	for _, m := range w.nodes {
		for _, s := range m.byDiscr {
			if s.state != StateUp {
				return false
			}
		}
	}
	return true
}

// 256 devices whose sessions are all made at one moment come up without a device ever
// sending much more than it does later for good.
func TestAMeshOf256DevicesFormsWithoutAStorm(t *testing.T) {
	n := 256
	if testing.Short() {
		n = 64
	}
	w := newMeshWorld(t, n)
	for i, m := range w.nodes {
		if err := m.Reconcile(w.wanted(i, ReportUnknown), w.now); err != nil {
			t.Fatal(err)
		}
	}
	for !w.up() {
		if w.now.Sub(t0) > 5*time.Second {
			t.Fatal("not all sessions are up after 5 s")
		}
		for range 50 {
			w.millisecond()
		}
	}
	formed, forming, sent := w.now.Sub(t0), w.peak, w.total
	w.peak = 0
	for range 200 {
		w.millisecond()
	}
	// In rest a session sends a packet each 75 to 100 ms.
	rest := (n - 1) * 10 / 75
	t.Logf("%d sessions up after %v with %d packets; most packets of one device in 10 ms: %d forming, %d at rest", n*(n-1), formed, sent, forming, w.peak)
	if forming > 3*rest+10 {
		t.Errorf("a device sent %d packets in 10 ms while the mesh formed, and sends %d at rest", forming, rest)
	}
	if formed > 3*time.Second {
		t.Errorf("the mesh took %v to form", formed)
	}
}

// A device of a mesh whose process is started again comes back within the detection
// time of the others, in one interval.
func TestAMeshDoesNotNoticeAProcessThatIsStartedAgain(t *testing.T) {
	w := newMeshWorld(t, 16)
	for i, m := range w.nodes {
		if err := m.Reconcile(w.wanted(i, ReportUnknown), w.now); err != nil {
			t.Fatal(err)
		}
	}
	for range 3000 {
		w.millisecond()
	}
	for _, m := range w.nodes {
		m.Events()
	}
	w.nodes[0] = NewManager(Config{Seed: 99}, w.now)
	for range 50 { // the new process takes a while
		w.millisecond()
	}
	if err := w.nodes[0].Reconcile(w.wanted(0, ReportUp), w.now); err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		w.millisecond()
	}
	if !w.up() {
		t.Error("not all sessions are up")
	}
	for i, m := range w.nodes {
		if ev := m.Events(); len(ev) != 0 {
			t.Errorf("device %d: %+v", i, ev)
		}
	}
}

// Keys are changed one device after the other: first both know the new one, then it
// signs, then the old one goes.
func TestKeysAreChangedWithoutAFlap(t *testing.T) {
	w := newMeshWorld(t, 4)
	one, two := AuthKey{1, []byte("the old key")}, AuthKey{2, []byte("the new key")}
	for _, keys := range [][]AuthKey{{one}, {one, two}, {two, one}, {two}} {
		for i, m := range w.nodes {
			if err := m.Reconcile(w.wanted(i, ReportUnknown, keys...), w.now); err != nil {
				t.Fatal(err)
			}
			for range 1500 {
				w.millisecond()
			}
		}
		for range 8000 {
			w.millisecond()
		}
	}
	if !w.up() {
		t.Error("not all sessions are up")
	}
	for i, m := range w.nodes {
		if d := cmp.Diff([]Report{ReportUp, ReportUp, ReportUp}, reports(m.Events())); d != "" {
			t.Errorf("device %d: %s%+v", i, d, m.Counters())
		}
	}
}

// With authentication a process that was stopped on purpose and started again is
// refused for a while; that is told neither here nor there.
func TestAnAuthenticatedProcessIsStoppedAndStartedAgain(t *testing.T) {
	w := newMeshWorld(t, 3)
	key := AuthKey{1, []byte("the only key")}
	for i, m := range w.nodes {
		if err := m.Reconcile(w.wanted(i, ReportUnknown, key), w.now); err != nil {
			t.Fatal(err)
		}
	}
	for range 3000 {
		w.millisecond()
	}
	w.nodes[0].Shutdown(w.now)
	w.millisecond()
	w.nodes[0] = NewManager(Config{Seed: 99}, w.now)
	if err := w.nodes[0].Reconcile(w.wanted(0, ReportUp, key), w.now); err != nil {
		t.Fatal(err)
	}
	for range 15_000 {
		w.millisecond()
	}
	if ev := w.nodes[0].Events(); !w.up() || len(ev) != 0 {
		t.Errorf("up %v, events %+v", w.up(), ev)
	}
	if d := cmp.Diff([]Report{ReportUp, ReportUp, ReportAdminDown, ReportUp}, reports(w.nodes[1].Events())); d != "" {
		t.Error(d)
	}
}
