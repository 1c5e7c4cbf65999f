package hostnotify

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// model drives a Notifier with random operations beside a naive truth, through a wire that
// loses frames and acks, and checks every notice that is put on the wire.
type model struct {
	t   *rapid.T
	w   *world
	n   *Notifier
	now time.Time
	cfg Config
	// disk has the rows that were given.
	disk shelf

	synced  bool
	locals  []netip.Addr
	portOf  map[netip.Addr][]string
	all     []netip.Addr
	up      map[string]bool
	heard   map[netip.Addr]map[string]bool // registered on that port since it was last up
	present map[netip.Addr]bool            // subscribed at all

	said   map[key]*word
	seqs   map[uint32]key
	frames map[string][]time.Time
}

type key struct{ host, subject netip.Addr }

// word is the last notice of a pair on the wire, and what arrived.
type word struct {
	wire    snsd.Notice
	arrived verdict
	excuses int // how often the same thing may be told again
	// service is the one that the host connected to, nil: to none.
	service *snsd.Service
	gone    int // how often it left on the wire that this is gone, and was lost
}

func (m *model) truth(k key) (active bool, zoned bool) {
	zoned = m.w.Share(k.host, k.subject) && k.host != k.subject && k.host.Is4() == k.subject.Is4() &&
		m.w.hosts[k.host].MAC != m.w.hosts[k.subject].MAC && m.w.hosts[k.host].Role.Meets(m.w.hosts[k.subject].Role)
	st, _ := m.w.State(k.subject)
	return zoned && st == snsd.Active, zoned
}

func (m *model) pick(from []netip.Addr, what string) netip.Addr {
	return rapid.SampledFrom(from).Draw(m.t, what)
}

func (m *model) changed(why snsd.Reason, addrs ...netip.Addr) {
	var c zone.Changes
	for _, a := range addrs {
		c = append(c, zone.Change{Addr: a, Why: why})
	}
	m.n.Changed(c, m.now, m.now)
}

// forget starts a new life of the host: it may be told everything again.
func (m *model) forget(host netip.Addr) {
	for k := range m.said {
		if k.host == host {
			delete(m.said, k)
		}
	}
}

func (m *model) poll(lossy bool) {
	for _, o := range m.n.Poll(m.now) {
		if !m.up[o.Port] {
			m.t.Fatalf("frame on port %s, which is down", o.Port)
		}
		m.guard(o)
		lost := lossy && rapid.IntRange(0, 3).Draw(m.t, "lose") == 0
		for _, x := range parse(m.t, o.Frame).Notices {
			m.notice(o.Port, x, lossy, lost)
		}
	}
}

// guard checks the pace: no window holds more frames than the configuration says.
func (m *model) guard(o Out) {
	f := append(m.frames[o.Port], m.now)
	for len(f) > 0 && m.now.Sub(f[0]) >= m.cfg.Window {
		f = f[1:]
	}
	if m.frames[o.Port] = f; len(f) > m.cfg.FramesPerWindow {
		m.t.Fatalf("%d frames within %v on %s", len(f), m.cfg.Window, o.Port)
	}
}

func (m *model) notice(port string, x snsd.Notice, lossy, lost bool) {
	k := key{x.Host, x.Subject}
	if !slices.Contains(m.portOf[x.Host], port) || !m.present[x.Host] {
		m.t.Fatalf("%v told on %s, where it is not registered", x.Host, port)
	}
	w := m.said[k]
	if w == nil {
		if x.State != snsd.Active {
			m.t.Fatalf("told inactive of what it was never told: %+v", x)
		}
		w = &word{excuses: 1}
		if sub := m.n.subs[x.Host]; sub != nil && sub.queryDue != never {
			w.excuses++ // the answer to its query comes later
		}
		m.said[k] = w
	}
	if was, used := m.seqs[x.Seq]; used && w.wire.Seq != x.Seq {
		m.t.Fatalf("number %d of %v used again for %v", x.Seq, was, k)
	}
	if x.Seq == w.wire.Seq { // a retry
		if w.wire.State != x.State || w.wire.Reason != x.Reason {
			m.t.Fatalf("retry %+v of %+v", x, w.wire)
		}
	} else {
		m.fresh(k, w, x)
	}
	if lost {
		if removes(verdict{true, x.State, x.Reason}) {
			w.gone++
		}
		return
	}
	w.arrived = verdict{true, x.State, x.Reason}
	switch {
	case x.State == snsd.Active && w.service != nil && w.service.ReplacedBy(x.Service) && w.gone <= orderTries:
		m.t.Fatalf("told of the new service before the old one was taken back: %+v after %+v (%d times in vain)", x, *w.service, w.gone)
	case x.State == snsd.Active:
		w.service, w.gone = &x.Service, 0
	case removes(w.arrived):
		w.service, w.gone = nil, 0
	}
	if lossy && rapid.IntRange(0, 3).Draw(m.t, "lose ack") == 0 {
		return
	}
	m.n.Ack(port, snsd.Ack{Subject: x.Subject, Host: x.Host, Seq: x.Seq}, m.now)
}

// fresh checks a notice with a new number.
func (m *model) fresh(k key, w *word, x snsd.Notice) {
	isActive, zoned := m.truth(k)
	if x.State == snsd.Active && !isActive {
		m.t.Fatalf("told active against the truth: %+v (zoned %v)", x, zoned)
	}
	old := w.wire.Service
	if x.State == snsd.Inactive && isActive && (x.Reason != snsd.ReasonIPChanged || !old.ReplacedBy(m.w.hosts[k.subject].Service)) {
		m.t.Fatalf("told inactive against the truth: %+v", x)
	}
	if x.State == snsd.Inactive && x.Service != old {
		m.t.Fatalf("%+v is told of another service than %+v", x, old)
	}
	same := w.wire.State == x.State && (x.State == snsd.Active && x.Service == old || x.State != snsd.Active && keepAlive(w.wire.Reason) == keepAlive(x.Reason))
	if same && w.excuses <= 0 {
		m.t.Fatalf("told twice: %+v after %+v", x, w.wire)
	}
	w.wire = x
	if same {
		w.excuses--
	}
	m.seqs[x.Seq] = k
}

var allPorts = []string{"p1", "p2", "p3"}

func newModel(t *rapid.T) *model {
	m := &model{
		t: t, w: newWorld(), now: epoch, synced: true,
		cfg: Config{FramesPerWindow: 8, Window: 500 * time.Millisecond, MaxInFlight: 6, FirstSeq: 1, History: 50, Keep: true}, disk: shelf{},
		portOf:  map[netip.Addr][]string{},
		up:      map[string]bool{},
		heard:   map[netip.Addr]map[string]bool{},
		present: map[netip.Addr]bool{},
		said:    map[key]*word{}, seqs: map[uint32]key{},
		frames: map[string][]time.Time{},
	}
	for i := range 5 {
		a := ip(fmt.Sprintf("192.0.2.%d", i+1))
		m.locals = append(m.locals, a)
		m.portOf[a] = []string{allPorts[i%2]}
		if i == 3 {
			m.portOf[a] = []string{"p2", "p3"} // a bond
		}
	}
	v6 := ip("2001:db8::1")
	m.locals, m.portOf[v6] = append(m.locals, v6), []string{"p3"}
	m.all = append(m.all, m.locals...)
	for i := range 6 {
		m.all = append(m.all, ip(fmt.Sprintf("198.51.100.%d", i+1)))
	}
	m.all = append(m.all, ip("2001:db8::2"))
	for _, a := range m.all {
		m.w.put(a)
		m.heard[a] = map[string]bool{}
	}
	m.w.hosts[ip("192.0.2.5")].MAC = m.w.hosts[ip("192.0.2.1")].MAC // one machine
	m.w.join("x", m.all[:9]...)
	m.w.join("y", m.all[5:]...)
	m.n = New(m.cfg, m.w)
	m.n.SetSynced(true)
	m.everybody()
	return m
}

// everybody has all ports up and all hosts registered.
func (m *model) everybody() {
	for i, p := range allPorts {
		m.up[p] = true
		m.n.PortUp(p, mac(i+1), m.now)
	}
	for _, a := range m.locals {
		m.learn(a)
		for _, p := range m.portOf[a] {
			m.register(a, p)
		}
	}
}

func (m *model) learn(a netip.Addr) {
	if m.w.hosts[a] != nil {
		return
	}
	m.w.put(a)
	if a == ip("192.0.2.5") || a == ip("192.0.2.1") {
		m.w.hosts[a].MAC = mac(0x201)
	}
	m.changed(0, a)
}

func (m *model) register(a netip.Addr, port string) {
	if !m.up[port] || m.w.hosts[a] == nil {
		return
	}
	m.present[a] = true
	m.heard[a][port] = true
	m.n.Subscribe(a, port, m.w.hosts[a].MAC, m.now)
}

func (m *model) step() {
	draw := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(m.t, what) }
	switch draw(13, "operation") {
	case 0, 1:
		a := m.pick(m.all, "fault of")
		why := snsd.Reason([]int{1, 2, 3, 7}[draw(4, "reason")])
		if m.w.hosts[a] != nil {
			m.w.fault[a] = why
			m.changed(why, a)
		}
	case 2, 3:
		a := m.pick(m.all, "repair of")
		if m.w.hosts[a] != nil {
			delete(m.w.fault, a)
			m.changed(0, a)
		}
	case 4:
		a := m.pick(m.all, "withdraw")
		if m.w.hosts[a] != nil {
			delete(m.w.hosts, a)
			delete(m.w.fault, a)
			m.changed(snsd.Reason(5+draw(2, "reason")), a)
		}
	case 5:
		m.learn(m.pick(m.all, "learn"))
	case 6:
		a, z := m.pick(m.all, "member"), []string{"x", "y"}[draw(2, "zone")]
		why := snsd.ReasonNone
		if m.w.zones[z][a] {
			delete(m.w.zones[z], a)
			why = snsd.ReasonZoneChanged
		} else {
			m.w.join(z, a)
		}
		m.changed(why, a)
	case 7:
		p := allPorts[draw(3, "port")]
		m.n.PortDown(p)
		m.up[p] = false
		for _, a := range m.locals {
			if slices.Contains(m.portOf[a], p) {
				m.mayRepeat(a) // all is told again once it is up
			}
		}
	case 8:
		p := allPorts[draw(3, "port")]
		m.up[p] = true
		m.n.PortUp(p, mac(1), m.now)
	case 9:
		a := m.pick(m.locals, "registers")
		m.register(a, m.portOf[a][draw(len(m.portOf[a]), "on")])
	case 10:
		m.query(m.pick(m.locals, "queries"))
	case 12:
		if h := m.w.hosts[m.pick(m.all, "service of")]; h != nil {
			h.Service = snsd.Service{Role: snsd.Role(draw(4, "role")), Protocol: snsd.ProtocolRoCE, Port: uint16(4420 + draw(2, "port"))}
			if draw(2, "named") == 1 {
				h.NQN = "nqn.2026-11.net.example:" + h.Addr.String()
			}
			m.changed(0, h.Addr)
		}
	case 11:
		switch draw(8, "rare") {
		case 0:
			m.leave(m.pick(m.locals, "leaves"))
		case 1:
			m.synced = !m.synced
			m.n.SetSynced(m.synced)
		case 2:
			m.restart()
		}
	}
	for range draw(4, "polls") {
		m.poll(true)
		m.now = m.now.Add(time.Duration(draw(40, "ms")) * time.Millisecond)
	}
}

func (m *model) query(a netip.Addr) {
	m.n.Query(a, m.now)
	m.mayRepeat(a)
}

// mayRepeat lets a host be told once more what it was told.
func (m *model) mayRepeat(a netip.Addr) {
	for k, w := range m.said {
		if k.host == a {
			w.excuses++
		}
	}
}

// leave takes a host off its ports. Of one that has not registered since a restart nobody hears that
// it leaves: what it was told before stands for a while.
func (m *model) leave(a netip.Addr) {
	for _, p := range m.portOf[a] {
		m.n.Unsubscribe(a, p, m.now)
	}
	if len(m.heard[a]) > 0 {
		m.forget(a)
	}
	m.present[a] = false
	m.heard[a] = map[string]bool{}
}

// restart goes through the rows on a disk; the hosts' registrations were kept.
func (m *model) restart() {
	m.n.Rows(m.disk.put)
	s := m.disk.kept(m.t)
	if d := cmp.Diff(m.n.Snapshot(), s, keptOptions); d != "" {
		m.t.Fatalf("the rows that changed are not the truth (-truth +rows)\n%s", d)
	}
	m.cfg.FirstSeq += 1_000_003 // as of a daemon that starts a minute later
	m.n = New(m.cfg, m.w)
	m.frames = map[string][]time.Time{} // a new process counts its pace anew
	if err := m.n.Restore(s, m.now); err != nil {
		m.t.Fatal(err)
	}
	for p, up := range m.up {
		if up {
			m.n.PortUp(p, fabric.MAC{}, m.now)
		}
	}
	for _, a := range m.locals {
		for _, p := range m.portOf[a] {
			if m.heard[a][p] && m.w.hosts[a] != nil {
				m.n.Subscribe(a, p, m.w.hosts[a].MAC, m.now)
			} else {
				delete(m.heard[a], p)
			}
		}
	}
	m.n.SetSynced(m.synced)
}

// quiet lets everything come to rest without loss.
func (m *model) quiet() {
	m.synced = true
	m.n.SetSynced(true)
	m.everybody()
	for range 2000 {
		m.poll(false)
		next := m.n.Next()
		if next.IsZero() {
			break
		}
		if next.After(m.now) {
			m.now = next
		}
	}
	if next := m.n.Next(); !next.IsZero() && m.n.Counters().InFlight+m.n.Counters().Waiting > 0 {
		m.t.Fatalf("not at rest: next in %v, %+v", next.Sub(m.now), m.n.Counters())
	}
}

// check compares what every host heard last with the truth.
func (m *model) check() {
	for _, h := range m.locals {
		for _, s := range m.all {
			k := key{h, s}
			isActive, zoned := m.truth(k)
			w := m.said[k]
			if w == nil {
				if isActive {
					m.t.Fatalf("%v was not told of %v", h, s)
				}
				continue
			}
			if w.arrived.isActive() != isActive {
				m.t.Fatalf("%v heard %+v of %v, truth: active %v", h, w.arrived, s, isActive)
			}
			if isActive && *w.service != m.w.hosts[s].Service {
				m.t.Fatalf("%v knows %v with %+v, truth %+v", h, s, *w.service, m.w.hosts[s].Service)
			}
			if !isActive && m.w.hosts[s] != nil && !zoned && keepAlive(w.arrived.reason) && m.w.hosts[s].MAC != m.w.hosts[h].MAC {
				m.t.Fatalf("%v still keeps %v, which left its zone: %+v", h, s, w.arrived)
			}
		}
	}
}

func TestModelAfterQuietEveryHostKnowsTheTruth(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			m.step()
			m.invariants()
		}
		m.quiet()
		m.check()
		m.invariants()
	})
}

// invariants of the tables themselves.
func (m *model) invariants() {
	n := m.n
	pairs, flying, waiting := 0, 0, 0
	for _, s := range n.order {
		pairs += len(s.list)
		mine := 0
		for i, p := range s.list {
			if int(p.atL) != i || p.subj.pairs[p.atS] != p || s.pairs[p.subj.addr] != p || n.subjects[p.subj.addr] != p.subj {
				m.t.Fatal("index broken")
			}
			if p.flight.on {
				mine++
				if (p.flight.in != nil) == (p.waits.class != idle) {
					m.t.Fatalf("a notice under way is in no queue, or in two: flight %v class %d", p.flight.in != nil, p.waits.class)
				}
			}
			if p.flight.in != nil && (!p.flight.on || p.flight.in != &p.flight.with.fresh && p.flight.in != &p.flight.with.patient) {
				m.t.Fatalf("a notice that is not under way waits for its ack: %+v", p)
			}
			if p.waits.class.isNew() {
				waiting++
			}
		}
		if mine != s.inFlight {
			m.t.Fatalf("%v: %d in flight, counted %d", s.addr, mine, s.inFlight)
		}
		flying += mine
	}
	if pairs != n.pairs || flying != n.inFlight || waiting != n.waiting {
		m.t.Fatalf("pairs %d/%d, in flight %d/%d, waiting %d/%d", pairs, n.pairs, flying, n.inFlight, waiting, n.waiting)
	}
	kept := 0
	for p := n.gone.head; p != nil; p = p.next {
		if kept++; !p.kept || p.waits.class != idle || !keepAlive(p.told.reason) || p.told.isActive() || p.sub.pairs[p.subj.addr] != p {
			m.t.Fatalf("%v is kept of what is gone: %+v", p.sub.addr, p)
		}
	}
	if kept != n.kept {
		m.t.Fatalf("kept %d/%d", kept, n.kept)
	}
	if !n.retries.Sound() {
		m.t.Fatal("heap broken")
	}
	n.retries.Each(func(a *agent, due int64) {
		if want := n.due(a); stamp(due) != want {
			m.t.Fatalf("repetitions are due at %d, the heap knows %d", want, due)
		}
	})
}
