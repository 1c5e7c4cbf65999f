package bfd

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

var (
	t0    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	addrA = netip.MustParseAddr("192.0.2.1")
	addrB = netip.MustParseAddr("192.0.2.2")
)

const ms = time.Millisecond

func every(d time.Duration, mult uint8) Timers { return Timers{MinTx: d, MinRx: d, DetectMult: mult} }

// puppet is a Manager with one session, and a peer that a test moves by hand.
type puppet struct {
	t      *testing.T
	m      *Manager
	now    time.Time
	sent   []Packet // since last looked at
	sentAt []time.Time
	events []Event
	peer   Packet // what the peer says; YourDiscr follows by itself
	at     Arrival
}

func newPuppet(t *testing.T, p Peer, cfg Config) *puppet {
	t.Helper()
	pu := &puppet{t: t, m: NewManager(cfg, t0), now: t0,
		peer: Packet{State: StateDown, DetectMult: 3, MyDiscr: 77, DesiredMinTx: 50_000, RequiredMinRx: 50_000},
		at:   Arrival{Src: addrB, Dst: addrA, TTL: 255}}
	if !p.Peer.IsValid() {
		p.Peer = addrB
	}
	if err := pu.m.Reconcile([]Peer{p}, t0); err != nil {
		t.Fatal(err)
	}
	pu.collect()
	return pu
}

func (pu *puppet) s() *session {
	for _, s := range pu.m.byDiscr {
		return s
	}
	return nil
}

func (pu *puppet) collect() {
	pu.t.Helper()
	for _, s := range pu.m.Sends() {
		p, err := Parse(s.Data())
		if err != nil {
			pu.t.Fatalf("we sent %x: %v", s.Data(), err)
		}
		pu.sent, pu.sentAt = append(pu.sent, p), append(pu.sentAt, pu.now)
	}
	pu.events = append(pu.events, pu.m.Events()...)
}

// take gives what was sent since it was last asked.
func (pu *puppet) take() []Packet {
	out := pu.sent
	pu.sent, pu.sentAt = nil, nil
	return out
}

func (pu *puppet) takeEvents() []Event {
	out := pu.events
	pu.events = nil
	return out
}

// says has the peer send a packet now.
func (pu *puppet) says(st State, change ...func(*Packet)) error {
	pu.t.Helper()
	pu.peer.State = st
	p := pu.peer
	if s := pu.s(); s != nil {
		p.YourDiscr = s.localDiscr
	}
	for _, c := range change {
		c(&p)
	}
	err := pu.m.Receive(&pu.at, p.Append(nil), pu.now)
	pu.collect()
	return err
}

// wait lets time pass, with every timer at its moment.
func (pu *puppet) wait(d time.Duration) {
	pu.t.Helper()
	end := pu.now.Add(d)
	for {
		next := pu.m.Next()
		if next.IsZero() || next.After(end) {
			break
		}
		pu.now = next
		pu.m.Tick(pu.now)
		pu.collect()
	}
	pu.now = end
}

// up brings the session to Up, with the Poll Sequence of the new timers done.
func (pu *puppet) up() {
	pu.t.Helper()
	pu.mustSay(StateDown)
	pu.mustSay(StateInit)
	pu.mustSay(StateUp, final)
	if s := pu.s(); s.state != StateUp || s.polling {
		pu.t.Fatalf("the session is %v, polling %v", s.state, s.polling)
	}
	pu.take()
	pu.takeEvents()
}

func (pu *puppet) mustSay(st State, change ...func(*Packet)) {
	pu.t.Helper()
	if err := pu.says(st, change...); err != nil {
		pu.t.Fatal(err)
	}
}

func (pu *puppet) want(st State, diag Diag) {
	pu.t.Helper()
	if s := pu.s(); s.state != st || s.localDiag != diag {
		pu.t.Fatalf("the session is %v (%v), want %v (%v)", s.state, s.localDiag, st, diag)
	}
}

func (pu *puppet) reconcile(p Peer) {
	pu.t.Helper()
	p.Peer = addrB
	if err := pu.m.Reconcile([]Peer{p}, pu.now); err != nil {
		pu.t.Fatal(err)
	}
	pu.collect()
}

func final(p *Packet)   { p.Final = true }
func poll(p *Packet)    { p.Poll = true }
func forgot(p *Packet)  { p.YourDiscr = 0 }
func demands(p *Packet) { p.Demand = true }

// deaf is a peer that has not heard us for its detection time.
func deaf(p *Packet) { p.Diag = DiagDetectTime }

// reports lists the reports of events.
func reports(ev []Event) []Report {
	out := []Report{}
	for _, e := range ev {
		out = append(out, e.Report)
	}
	return out
}

// node is one device of a simulated pair.
type node struct {
	m       *Manager
	addr    netip.Addr
	queue   []flight // received while the process was stopped
	stopped bool
	events  []Event
	sentAt  []time.Time
	lastIn  time.Time // last packet that came
	down    time.Time // last change from Up to Down
}

// flight is a packet on its way.
type flight struct {
	at   time.Time
	to   int
	data []byte
}

// world is two devices and the path between them.
type world struct {
	now   time.Time
	nodes [2]*node
	wire  []flight
	delay func() time.Duration
	lost  func(from int, data []byte) bool
	auth  *Auth
	timer [2]Timers
	seed  uint64
	cfg   Config
	// The slowest timers that were ever wanted.
	longest time.Duration
	mult    uint8
}

func newWorld(a, b Timers, seed uint64) *world {
	w := &world{now: t0, timer: [2]Timers{a, b}, seed: seed,
		delay: func() time.Duration { return 100 * time.Microsecond }, lost: func(int, []byte) bool { return false }}
	return w
}

func (w *world) start() {
	for i := range w.nodes {
		w.restart(i)
	}
}

// restart gives a device a new process that knows nothing.
func (w *world) restart(i int) {
	w.seed++
	cfg := w.cfg
	cfg.Seed = w.seed
	addrs := [2]netip.Addr{addrA, addrB}
	w.nodes[i] = &node{m: NewManager(cfg, w.now), addr: addrs[i]}
	if err := w.nodes[i].m.Reconcile(w.wanted(i), w.now); err != nil {
		panic(err)
	}
	w.collect(i)
}

func (w *world) wanted(i int) []Peer {
	addrs := [2]netip.Addr{addrA, addrB}
	for _, t := range w.timer {
		w.longest, w.mult = max(w.longest, time.Second, t.MinTx, t.MinRx), max(w.mult, t.DetectMult)
	}
	return []Peer{{Key: Key{Peer: addrs[1-i], Local: addrs[i]}, Timers: w.timer[i], Auth: w.auth}}
}

func (w *world) state(i int) State {
	for _, s := range w.nodes[i].m.byDiscr {
		return s.state
	}
	return StateAdminDown
}

func (w *world) bothUp() bool { return w.state(0) == StateUp && w.state(1) == StateUp }

func (w *world) collect(i int) {
	n := w.nodes[i]
	for _, s := range n.m.Sends() {
		n.sentAt = append(n.sentAt, w.now)
		data := slices.Clone(s.Data())
		if w.lost(i, data) {
			continue
		}
		w.wire = append(w.wire, flight{at: w.now.Add(w.delay()), to: 1 - i, data: data})
	}
	n.events = append(n.events, n.m.Events()...)
}

// step does the next thing that happens, no later than end; false: nothing does.
func (w *world) step(end time.Time) bool {
	next, who := end, -1
	first := -1
	for i, f := range w.wire {
		if f.at.Before(next) {
			next, first = f.at, i
		}
	}
	for i, n := range w.nodes {
		if at := n.m.Next(); !n.stopped && !at.IsZero() && at.Before(next) {
			next, who, first = at, i, -1
		}
	}
	if first < 0 && who < 0 {
		w.now = end
		return false
	}
	w.now = next
	if first >= 0 {
		f := w.wire[first]
		w.wire = slices.Delete(w.wire, first, first+1)
		who = f.to
		n := w.nodes[who]
		n.lastIn = w.now
		n.queue = append(n.queue, f)
		if n.stopped {
			return true
		}
	}
	w.run(who)
	return true
}

// run lets a device's process handle what has come and what is due.
func (w *world) run(i int) {
	n := w.nodes[i]
	before := w.state(i)
	n.m.Wake(w.now)
	for _, f := range n.queue {
		a := Arrival{Src: w.nodes[1-i].addr, Dst: n.addr, TTL: 255, At: f.at}
		_ = n.m.Receive(&a, f.data, w.now)
	}
	n.queue = n.queue[:0]
	n.m.Tick(w.now)
	if before == StateUp && w.state(i) != StateUp {
		n.down = w.now
	}
	w.collect(i)
}

func (w *world) wait(d time.Duration) {
	end := w.now.Add(d)
	for w.step(end) {
	}
}

// resume lets a stopped process go on.
func (w *world) resume(i int) {
	w.nodes[i].stopped = false
	w.run(i)
}
