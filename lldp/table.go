package lldp

import (
	"bytes"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/timerheap"
	"github.com/openinof/inof/snsd"
)

// Limits of a Table. A zero field means its default.
type Limits struct {
	// PortRegistrations is how many registrations one port may hold: the agents
	// number the addresses of a port 01..64.
	PortRegistrations int `json:"port_registrations"`
	// PortOthers is how many addresses of other neighbours one port may hold; a
	// neighbour without an address counts as one.
	PortOthers int `json:"port_others"`
	// Device is how many addresses all ports together may hold, counted the same way.
	Device int `json:"device"`
}

// Defaults of Limits, and the largest device table that is supported.
const (
	DefaultPortRegistrations = 64
	DefaultPortOthers        = 16
	DefaultDevice            = 8000
	MaxDevice                = 80000
)

func (l Limits) withDefaults() Limits {
	if l.PortRegistrations <= 0 {
		l.PortRegistrations = DefaultPortRegistrations
	}
	if l.PortOthers <= 0 {
		l.PortOthers = DefaultPortOthers
	}
	if l.Device <= 0 {
		l.Device = DefaultDevice
	}
	l.Device = min(l.Device, MaxDevice)
	return l
}

// Table holds the neighbours of all ports of a device. It has one owner; it is not
// safe for concurrent use.
type Table struct {
	limits  Limits
	maxTTL  uint16 // seconds
	beliefs Beliefs
	own     own
	ports   map[string]*portTable
	ages    timerheap.Heap[entry, *entry] // by Expires
	base    time.Time                     // what the times in ages count from
	total   int                           // sum of all weights
	count   Counters
	one     [1]Change // result of a refresh, so that the common case allocates nothing
}

// NewTable gives an empty table.
func NewTable(cfg Limits) *Table {
	return &Table{limits: cfg.withDefaults(), maxTTL: uint16(DefaultMaxTTL / time.Second), ports: make(map[string]*portTable)}
}

// Limits gives the limits in force.
func (t *Table) Limits() Limits { return t.limits }

// SetLimits changes the limits; what is known stays, also above a lower limit.
func (t *Table) SetLimits(l Limits) { t.limits = l.withDefaults() }

// DefaultMaxTTL is the longest time to live that is taken unless SetMaxTTL says another.
const DefaultMaxTTL = 300 * time.Second

// Farewell is how long a neighbour that says that it ends stays for what it announces again, as
// itself or under another chassis or port id: an LLDP daemon whose link flaps, or whose name
// changes, ends and begins within a few ms. A neighbour that does end is told of so much later;
// the loss of a carrier waits for nothing.
const Farewell = 20 * time.Millisecond

// SetMaxTTL bounds the time to live of neighbours, in whole seconds up to 65,535; zero:
// DefaultMaxTTL. It holds from the next frame of each on.
func (t *Table) SetMaxTTL(d time.Duration) {
	if d <= 0 {
		d = DefaultMaxTTL
	}
	t.maxTTL = uint16(min(d/time.Second, math.MaxUint16))
}

// Receive takes one frame. It gives at most one change; the slice is valid until
// the next Receive. A frame that cannot be used gives a *FrameError that wraps an
// *Error, a *LimitError or a sentinel and, except for a broken registration of a
// new neighbour, no change; changes count whether there is an error or not.
func (t *Table) Receive(f fabric.Frame, now time.Time) ([]Change, error) {
	t.count.FramesIn++
	var ch []Change
	err := error(ErrDeclared)
	if !bytes.HasPrefix(f.Payload, declaredHead) {
		ch, err = t.receive(&f, now)
	}
	if err != nil {
		t.count.note(err)
		err = &FrameError{Port: f.Port, Src: f.Src.String(), Err: err}
	}
	return ch, err
}

func (t *Table) receive(f *fabric.Frame, now time.Time) ([]Change, error) {
	if f.EtherType != fabric.EtherTypeLLDP {
		return nil, ErrNotLLDP
	}
	// A dataplane that receives only this group address may leave it out.
	if f.Dst != fabric.MACNearestBridge && !f.Dst.IsZero() {
		return nil, ErrScope
	}
	raw, ended := trimPDU(f.Payload)
	if len(raw) > maxPDU {
		return nil, refuse(tlvEnd, ErrLength, "at byte %d, at most %d", len(raw), maxPDU)
	}
	at := f.At
	if at.IsZero() {
		at = now
	}
	e := t.lookup(f.Port, raw)
	same := e != nil && e.n.MAC == f.Src && bytes.Equal(e.n.LLDPDU, raw)
	if same && (e.cut == 0 || !t.hasRoom(e)) {
		return t.refresh(e, now, at), nil
	}
	p, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	t.count.notePDU(p)
	if p.TTL > t.maxTTL {
		t.count.TTLsCut++
		p.TTL = t.maxTTL
	}
	if p.TTL == 0 {
		t.count.Shutdowns++
		if e == nil {
			return nil, nil
		}
		if end := now.Add(Farewell); !e.shut && end.Before(e.n.Expires) {
			e.n.Expires = end
			t.age(e)
		}
		e.shut = true
		return nil, nil
	}
	if p.RegistrationErr != nil && e != nil && e.n.Registration != nil {
		return nil, p.RegistrationErr // what it said before stands until its TTL
	}
	n := newNeighbour(f.Port, f.Src, p, slices.Clone(raw), now)
	t.sameMachine(&n)
	t.believe(&t.beliefs, &n)
	t.count.noteBeliefs(&n)
	if a, lost := loses(e, &n); lost && !ended {
		// Cut on its way: what it no longer says it may have said behind the cut.
		return nil, refuse(tlvEnd, ErrTruncated, "is not there, and neither is address %s; it stays until its time to live is over", a)
	}
	ch, err := t.store(e, n, string(raw[:peekMSAP(raw)]), at)
	if err != nil {
		return nil, err
	}
	return []Change{ch}, p.RegistrationErr
}

// loses reports whether n, in the place of e, announces an address less or as less
// than e does, and gives that address.
func loses(e *entry, n *Neighbour) (a netip.Addr, lost bool) {
	if e == nil {
		return a, false
	}
	for i := range e.n.Known {
		if a = e.n.Known[i].Addr; !announces(n.Known, a) || e.n.Registration != nil && n.Registration == nil {
			return a, true
		}
	}
	return a, false
}

// hasRoom reports whether addresses of e that were left out may fit by now.
func (t *Table) hasRoom(e *entry) bool {
	return t.total < t.limits.Device && t.ports[e.n.Port].others < t.limits.PortOthers
}

// refresh is the common case: the same bytes again.
func (t *Table) refresh(e *entry, now, at time.Time) []Change {
	e.n.LastHeard, e.shut = now, false
	e.second.proven = !e.second.mac.IsZero()
	e.n.Expires = now.Add(time.Duration(min(e.n.TTL, t.maxTTL)) * time.Second)
	t.age(e)
	t.one[0] = Change{Kind: Refreshed, At: at}
	if !e.n.Confirmed {
		e.n.Confirmed = true
		t.count.Confirmed++
		t.one[0].Kind = Confirmed
		t.one[0].Put = t.puts(e)
	} else {
		t.count.Refreshed++
	}
	t.one[0].Neighbour = e.n
	return t.one[:]
}

// store learns a neighbour, or replaces what e said before by n.
func (t *Table) store(e *entry, n Neighbour, key string, at time.Time) (Change, error) {
	cut, err := t.fit(e, &n)
	if err != nil {
		return Change{}, err
	}
	if e == nil {
		e = &entry{n: n, key: key, cut: cut}
		t.insert(e)
		t.age(e)
		t.count.Inserts++
		return Change{Kind: Learned, Neighbour: n, Put: t.puts(e), At: at}, nil
	}
	old := e.n
	n.FirstHeard = old.FirstHeard
	keepSince(n.Known, old.Known)
	t.take(e)
	e.n, e.cut, e.second, e.shut = n, cut, secondMAC{}, false
	t.insert(e)
	t.age(e)
	t.count.Updated++
	ch := Change{Kind: Updated, Neighbour: n, Old: &old, Put: t.puts(e), At: at}
	t.settle(&ch, old.Known, snsd.ReasonIPChanged)
	return ch, nil
}

// fit makes sure that n, in the place of e, keeps within the limits: addresses of a
// plain host are cut to what fits, and what does not fit at all is refused. A
// neighbour that is known never loses room it has. It gives how many were cut.
func (t *Table) fit(e *entry, n *Neighbour) (cut int, err error) {
	p := t.ports[n.Port]
	class, limit, what := 0, t.limits.PortOthers, "addresses of other neighbours on the port"
	isReg := n.Registration != nil
	if isReg {
		limit, what = t.limits.PortRegistrations, "registrations on the port"
	}
	if p != nil {
		if class = p.others; isReg {
			class = p.regs
		}
	}
	device, own := t.total, 0
	if e != nil {
		device -= e.weight
		if (e.n.Registration != nil) == isReg {
			class -= e.weight
			own = e.weight
		}
	}
	if limit-class < 1 && own == 0 {
		return 0, &LimitError{What: what, Limit: limit}
	}
	if t.limits.Device-device < 1 && own == 0 {
		return 0, &LimitError{What: "addresses on the device", Limit: t.limits.Device}
	}
	room := max(own, min(limit-class, t.limits.Device-device))
	if cut = len(n.Known) - room; cut <= 0 {
		return 0, nil
	}
	t.count.AddressesCut += uint64(cut)
	n.Known = n.Known[:room]
	return cut, nil
}

// PortDown notes that a port lost its carrier: its neighbours stay, and age, but
// are not confirmed until they are heard again.
func (t *Table) PortDown(port string, now time.Time) {
	if p := t.ports[port]; p != nil {
		for _, e := range p.byMSAP {
			e.n.Confirmed, e.second = false, secondMAC{}
		}
	}
}

// PortRemoved forgets the neighbours of a port that is gone.
func (t *Table) PortRemoved(port string, now time.Time) []Change {
	var out []Change
	for _, e := range t.sorted(port) {
		out = append(out, t.drop(e, snsd.ReasonLinkDown, now))
	}
	return out
}

// Expire removes the neighbours whose TTL has run out (clause 9.2.7.6): at Expires or
// later, never before.
func (t *Table) Expire(now time.Time) []Change {
	var out []Change
	for t.ages.Len() > 0 {
		e, _ := t.ages.First()
		if e.n.Expires.After(now) {
			break
		}
		if !e.shut {
			t.count.Ageouts++
		}
		out = append(out, t.drop(e, snsd.ReasonAgedOut, now))
	}
	return out
}

// Next is when Expire has something to do; zero when there are no neighbours.
func (t *Table) Next() time.Time {
	if t.ages.Len() == 0 {
		return time.Time{}
	}
	e, _ := t.ages.First()
	return e.n.Expires
}

// Len is the number of neighbours.
func (t *Table) Len() int { return t.ages.Len() }

// Weight is the number of addresses that count for Limits.Device.
func (t *Table) Weight() int { return t.total }

// Neighbours gives those of one port, in a stable order.
func (t *Table) Neighbours(port string) []Neighbour {
	es := t.sorted(port)
	out := make([]Neighbour, len(es))
	for i, e := range es {
		out[i] = e.n
	}
	return out
}

// All gives the neighbours of all ports, by port and then in a stable order.
func (t *Table) All() []Neighbour {
	out := make([]Neighbour, 0, t.ages.Len())
	for _, e := range t.all() {
		out = append(out, e.n)
	}
	return out
}

// Counters gives a copy of the totals.
func (t *Table) Counters() Counters { return t.count }
