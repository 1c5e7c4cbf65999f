package fence

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/snsd"
)

// Machine decides what is blocked at the ports of one switch. Inputs change its tables; Steps hands
// out what the dataplane is to do, Facts what others are to hear. It belongs to one goroutine.
type Machine struct {
	cfg   Config
	view  View
	ready bool // the dataplane is there, and what it held before is known

	down    map[string]time.Time                 // local ports through which nothing passes, and since when
	blocks  map[Key]*block                       // wanted or in force
	pairs   map[pair]int                         // how many of them are of a pair
	ports   map[string]string                    // ports that pass nothing and are not fenced, and why
	hosts   map[netip.Addr]map[netip.Addr]string // faulty hosts: the arrays for which that was decided on, and why there is no block; "": there is
	handled int                                  // pairs in hosts
	noted   map[netip.Addr]struct{}              // hosts that are to be looked at
	queue   []noted                              // the same, in order
	facts   map[factKey]struct{}                 // that may have changed since Facts
	all     bool                                 // everything is to be lifted
	at      time.Time                            // when Steps has something to do, as far as is known; zero: now
	sleeps  bool                                 // nothing before the next input
	counts  Counters
}

// pair is a path: an address of an array and one of a host.
type pair struct{ array, host netip.Addr }

// noted is a host that is to be looked at, and when that became so.
type noted struct {
	addr netip.Addr
	at   time.Time
}

type factKey struct {
	port  string
	array netip.Addr
}

// phase is how far a block has come.
type phase uint8

const (
	wanted   phase = iota // to be asked for
	asked                 // the dataplane is about to drop
	standing              // it drops; the queue may hold frames from before
	ending                // it is to be lifted
)

// block is one that is wanted or in force.
type block struct {
	Block
	phase     phase
	busy      bool      // the dataplane has a step of it
	next      time.Time // of the next step, not before; zero: at once
	drained   bool      // the queue is empty, and the block is to be prolonged
	fault     time.Time // that it answers
	confirmed time.Time // nothing passes since then; zero: not known
	err       string    // of the last step
}

// New makes a Machine that does nothing before Adopt.
func New(cfg Config, view View) *Machine {
	return &Machine{
		cfg: cfg, view: view,
		down: map[string]time.Time{}, blocks: map[Key]*block{}, pairs: map[pair]int{},
		ports: map[string]string{}, hosts: map[netip.Addr]map[netip.Addr]string{},
		noted: map[netip.Addr]struct{}{}, facts: map[factKey]struct{}{},
	}
}

// Adopt takes over what was in force before this process: it stands until its time, and is asked
// for its queue as any other. From now on faults are answered.
func (m *Machine) Adopt(list []Block, now time.Time) {
	m.ready = true
	for _, b := range list {
		if m.blocks[b.Key] == nil {
			m.counts.Adopted++
			m.put(&block{Block: b, phase: standing, fault: b.Since})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(m.ports)) { // what failed before there was a dataplane
		if m.ports[p] == whyNotReady {
			m.fencePort(p, m.down[p], now)
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(m.hosts), netip.Addr.Compare) {
		for a, why := range m.hosts[h] {
			if why == whyNotReady {
				m.unhandle(pair{a, h})
				m.Note(h, now)
			}
		}
	}
}

// put makes a block known.
func (m *Machine) put(b *block) {
	m.blocks[b.Key] = b
	m.pairs[pair{b.Array, b.Host}]++
	m.touch(b.Key)
}

// Lost says that the dataplane is gone: what it holds stands, but nobody confirms it.
func (m *Machine) Lost() {
	m.ready = false
	for _, b := range m.blocks {
		b.busy = false
	}
}

// SetConfig changes what operators say. Off lifts all.
func (m *Machine) SetConfig(cfg Config) {
	if m.cfg.On && !cfg.On {
		m.LiftAll()
	}
	m.cfg = cfg
}

// LiftAll ends every block, also those that only the dataplane knows. Faults that stand are not
// answered again.
func (m *Machine) LiftAll() {
	m.all, m.sleeps, m.at = true, false, time.Time{}
	m.counts.LiftedAll++
	for k, b := range m.blocks {
		if b.phase == wanted && !b.busy {
			m.drop(k)
			continue
		}
		b.phase, b.next, b.confirmed = ending, time.Time{}, time.Time{}
		m.touch(k)
	}
}

// PortDown says that nothing passes a local port, in either direction, and that its queue
// is empty: it lost its carrier, or the dataplane reports that it is shut. fault is when the fault
// behind that began.
func (m *Machine) PortDown(port string, fault, now time.Time) {
	if _, already := m.down[port]; already {
		return
	}
	m.down[port] = now
	m.fencePort(port, fault, now)
}

// PortUp says that frames pass it again, except what is blocked.
func (m *Machine) PortUp(port string) {
	delete(m.down, port)
	delete(m.ports, port)
}

// Note has an address looked at that changed in the table of hosts.
func (m *Machine) Note(addr netip.Addr, at time.Time) {
	if _, already := m.noted[addr]; !already {
		m.noted[addr] = struct{}{}
		m.queue = append(m.queue, noted{addr, at})
	}
}

// Steps returns what the dataplane is to do now.
func (m *Machine) Steps(now time.Time) (steps []Step) {
	m.lookAtNoted(now)
	if next := m.Next(now); !m.ready || m.sleeps || next.After(now) {
		return nil
	}
	defer m.plan()
	if m.all {
		m.all = false
		return []Step{{Op: OpLiftAll}}
	}
	for _, b := range m.sorted() {
		switch {
		case b.busy:
			continue
		case b.phase != ending && !now.Before(b.Until):
			if b.phase == wanted { // it never came about
				m.drop(b.Key)
				continue
			}
			b.phase, b.next = ending, time.Time{}
		}
		if now.Before(b.next) {
			continue
		}
		step := Step{Block: b.Block}
		switch {
		case b.phase == ending:
			step.Op = OpLift
		case b.phase == wanted:
			b.phase, step.Op = asked, OpBlock
		case b.phase == standing && b.confirmed.IsZero() && b.drained:
			step.Op = OpBlock
		case b.phase == standing && b.confirmed.IsZero():
			step.Op = OpDrained
		default:
			continue
		}
		b.busy = true
		steps = append(steps, step)
	}
	return steps
}

// Next is when Steps has something to do; zero: after the next input.
func (m *Machine) Next(now time.Time) time.Time {
	switch {
	case len(m.queue) > 0:
		return now
	case !m.ready || m.sleeps:
		return time.Time{}
	case m.at.IsZero():
		return now
	}
	return m.at
}

// plan finds when Steps has something to do after a call.
func (m *Machine) plan() {
	m.at, m.sleeps = time.Time{}, true
	for _, b := range m.blocks {
		at := b.next
		switch {
		case b.busy:
			continue
		case b.phase == standing && !b.confirmed.IsZero():
			at = b.Until
		}
		if m.sleeps || at.Before(m.at) {
			m.at, m.sleeps = at, false
		}
	}
}

// Done takes what came of a step.
func (m *Machine) Done(r Result, now time.Time) {
	m.at, m.sleeps = time.Time{}, false
	if r.Err != nil {
		m.counts.Errors++
	}
	if r.Op == OpLiftAll {
		if r.Err != nil {
			m.all = true
			return
		}
		for k, b := range m.blocks {
			if b.phase == ending {
				m.counts.Lifted++
				m.drop(k)
			}
		}
		return
	}
	b := m.blocks[r.Key]
	if b == nil {
		return
	}
	b.busy, b.err, b.next = false, "", time.Time{}
	if r.Err != nil {
		b.err, b.next = r.Err.Error(), now.Add(retryAfter)
		if b.phase == asked {
			b.phase = wanted
		}
		return
	}
	switch {
	case r.Op == OpLift && b.phase == ending:
		m.counts.Lifted++
		m.drop(r.Key)
	case r.Op == OpBlock && b.phase == asked:
		m.counts.Blocks++
		b.phase, b.Since, b.Until = standing, r.Since, r.Until
		m.touch(b.Key)
		if _, down := m.down[b.Port]; down { // its queue is empty, and no frame passes when it is back
			m.confirm(b, now)
		}
	case r.Op == OpBlock && b.phase == standing && b.drained:
		lapsed := r.Since.After(b.Since) // it had ended before it was prolonged
		if b.Since, b.Until, b.drained = r.Since, r.Until, !lapsed; !lapsed {
			m.confirm(b, now)
		}
	case r.Op == OpDrained && b.phase == standing && r.Drained && b.Until.Before(now.Add(m.cfg.Hold-drainMargin)):
		// What the queue has sent last began the array's keep-alive time-out anew.
		b.drained, b.Until = true, now.Add(m.cfg.Hold)
	case r.Op == OpDrained && b.phase == standing && r.Drained:
		m.confirm(b, now)
	case r.Op == OpDrained && b.phase == standing:
		b.next = now.Add(drainEvery)
	}
}

func (m *Machine) confirm(b *block, now time.Time) {
	if b.confirmed.IsZero() && now.Before(b.Until) {
		b.confirmed = now
		m.counts.Confirmed++
		m.touch(b.Key)
	}
}

// drop forgets a block that is lifted, or never came about.
func (m *Machine) drop(k Key) {
	delete(m.blocks, k)
	p := pair{k.Array, k.Host}
	if m.pairs[p]--; m.pairs[p] == 0 {
		delete(m.pairs, p)
		if h, known := m.view.Host(k.Host); !known || !h.faulty() {
			m.unhandle(p)
		}
	}
	m.touch(k)
}

// sorted are the blocks, in an order that depends on nothing but their keys.
func (m *Machine) sorted() []*block {
	return slices.SortedFunc(maps.Values(m.blocks), func(a, b *block) int { return compareKeys(a.Key, b.Key) })
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Port, b.Port), a.Array.Compare(b.Array), a.Host.Compare(b.Host))
}

// touch notes which facts a block concerns.
func (m *Machine) touch(k Key) {
	m.at, m.sleeps = time.Time{}, false
	if !k.WholePort() {
		m.facts[factKey{k.Port, k.Array}] = struct{}{}
		return
	}
	for _, a := range m.view.Behind(k.Port) {
		m.facts[factKey{k.Port, a}] = struct{}{}
	}
}

// Facts returns what has changed since the last call, as it is now.
func (m *Machine) Facts() (out []Fact) {
	for k := range m.facts {
		out = append(out, Fact{k.port, k.array, m.peers(k)})
	}
	clear(m.facts)
	slices.SortFunc(out, func(a, b Fact) int {
		return cmp.Or(strings.Compare(a.Port, b.Port), a.Array.Compare(b.Array))
	})
	return out
}

// peers are those that are kept from an array at a port.
func (m *Machine) peers(k factKey) (list []Peer) {
	for _, b := range m.sorted() {
		if b.Port != k.port || !b.WholePort() && b.Array != k.array {
			continue
		}
		since := b.Since
		if since.IsZero() { // the dataplane has not said it yet
			since = b.fault
		}
		p := Peer{Host: b.Host, Since: since, Hold: max(0, b.Until.Sub(since)).Truncate(time.Second)}
		if !b.confirmed.IsZero() {
			p.Hold = max(0, min(b.Until.Sub(since), m.cfg.Hold)).Truncate(time.Second) // how long nothing passes from then on, at least
			p.Level, p.Took = snsd.FenceNetwork, max(0, b.confirmed.Sub(b.fault)).Truncate(time.Millisecond)
		}
		list = append(list, p)
	}
	return list
}

// Closed reports whether a local port is blocked as a whole: nothing behind it can be reached.
func (m *Machine) Closed(port string) bool { return m.blocks[Key{Port: port}] != nil }

// Counters returns a copy of the totals.
func (m *Machine) Counters() Counters {
	c := m.counts
	for _, b := range m.blocks {
		c.Standing++
		if b.confirmed.IsZero() {
			c.Unfenced++
		}
	}
	return c
}

// Shown is a block, or a fault without one, for operators.
type Shown struct {
	Block
	Fault     time.Time
	Confirmed time.Time // zero: not
	Why       string    // there is no block, or it is not confirmed
}

// Show lists the blocks and the faults that were not answered by one.
func (m *Machine) Show() (out []Shown) {
	for _, b := range m.sorted() {
		s := Shown{Block: b.Block, Fault: b.fault, Confirmed: b.confirmed}
		switch {
		case b.phase == ending:
			s.Why = "being lifted"
		case !b.confirmed.IsZero():
		case b.err != "":
			s.Why = b.err
		case b.phase < standing:
			s.Why = "the dataplane has not begun to drop"
		default:
			s.Why = "the port's queue still holds frames from before"
		}
		out = append(out, s)
	}
	for p, why := range m.ports {
		out = append(out, Shown{Block: Block{Key: Key{Port: p}}, Fault: m.down[p], Why: why})
	}
	for h, arrays := range m.hosts {
		for a, why := range arrays {
			if why != "" {
				out = append(out, Shown{Block: Block{Key: Key{Array: a, Host: h}}, Why: why})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Shown) int { return compareKeys(a.Key, b.Key) })
	return out
}
