package zone

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/openinof/inof/snsd"
)

// Told is one thing that a host would be told of another one.
type Told struct {
	Host    netip.Addr  `json:"host"`
	Subject netip.Addr  `json:"subject"`
	State   snsd.State  `json:"state"`
	Reason  snsd.Reason `json:"reason"`
}

// Impact is what a change of zones would have hosts told.
type Impact struct {
	Active   int    `json:"active"`    // notices that somebody can be reached now
	Inactive int    `json:"inactive"`  // notices that somebody is to be left
	AtLeast  bool   `json:"at_least"`  // there are more: counting ended at MaxImpactPairs
	Told     []Told `json:"told"`      // the first of them
	MostTold int    `json:"most_told"` // notices of the host that gets most

	// Pairs are two hosts that may exchange traffic (MayExchange), counted once each.
	PairsBefore int `json:"pairs_before"` // at least, when they are more than MaxImpactPairs
	PairsGained int `json:"pairs_gained"`
	PairsLost   int `json:"pairs_lost"`
	LostActive  int `json:"lost_active"` // of those lost, pairs of which both can be reached now
	// CutOff are pairs of an initiator and a target's NQN without a path left, although there was
	// one.
	CutOff int        `json:"cut_off"`
	Gained []PathPair `json:"gained"` // the first of them
	Lost   []PathPair `json:"lost"`   // the first of them
	// Alone counts the hosts that had a partner and will have none; AloneHosts are the first of
	// them.
	Alone      int          `json:"alone"`
	AloneHosts []netip.Addr `json:"alone_hosts"`
	// IO says whether I/O runs between those who are lost; nothing here knows that yet.
	IO string `json:"io"`
}

// IOUnknown is what Impact.IO says while nothing counts what hosts exchange.
const IOUnknown = "unknown"

// PathPair is a pair of hosts that a change joins or takes apart.
type PathPair struct {
	Host   netip.Addr `json:"host"` // the initiator, where roles say which one that is
	Target netip.Addr `json:"target"`
	NQN    string     `json:"nqn,omitempty"` // of the target
	Active bool       `json:"active"`        // both can be reached now
	Paths  int        `json:"paths"`         // of the host to targets with this NQN, or to this address, afterwards; -1: not counted
}

// MaxImpactPairs bounds the pairs of hosts that ImpactOf looks at.
const MaxImpactPairs = 4 << 20

// ImpactOf says what hosts would be told if the zones before became those after, without
// any change to a Directory that is in use. Hosts and faults are those of the fabric;
// at most limit notices are named. Who is told is who wants notices; of whom, the hosts of
// another role (an initiator hears of targets), and of hosts without a role all.
func ImpactOf(before, after Set, hosts []Host, faults []Fault, limit int) Impact {
	x := impact{was: shadow(before, hosts, faults), is: shadow(after, hosts, faults), limit: limit}
	x.out.IO = IOUnknown
	x.countBefore()
	changed := make(map[netip.Addr]bool)
	var order []netip.Addr
	for a := range x.was.Addrs() {
		if !slices.Equal(x.was.ZonesOf(a), x.is.ZonesOf(a)) {
			changed[a] = true
			order = append(order, a)
		}
	}
	for _, a := range order {
		for _, side := range [...]*Directory{x.was, x.is} {
			for b := range side.Peers(a) {
				if changed[b] && b.Less(a) {
					continue // met when it was b's turn
				}
				if x.looked++; x.looked > MaxImpactPairs {
					x.out.AtLeast = true
					x.countAlone()
					return x.out
				}
				if x.was.MayExchange(a, b) != x.is.MayExchange(a, b) {
					x.path(a, b, side == x.is)
				}
				if x.was.Share(a, b) != x.is.Share(a, b) {
					x.pair(a, b, side == x.is)
					x.pair(b, a, side == x.is)
				}
			}
		}
	}
	x.countAlone()
	return x.out
}

type impact struct {
	was, is       *Directory
	limit, looked int
	spent         int
	paths         map[netip.Addr]map[string]int // of a host, by the NQN of the target, afterwards
	cut           map[string]bool               // host and NQN that were counted
	losing        map[netip.Addr]bool           // hosts that lose a pair
	told          map[netip.Addr]int            // notices of a host
	out           Impact
}

// countBefore counts the pairs that there are.
func (x *impact) countBefore() {
	looked := 0
	for a := range x.was.Addrs() {
		for b := range x.was.Peers(a) {
			if looked++; looked > 2*MaxImpactPairs {
				return
			}
			if a.Less(b) && x.was.MayExchange(a, b) {
				x.out.PairsBefore++
			}
		}
	}
}

// countAlone looks for hosts that have lost all their partners.
func (x *impact) countAlone() {
	for _, a := range slices.SortedFunc(maps.Keys(x.losing), netip.Addr.Compare) {
		partner := false
		for b := range x.is.Peers(a) {
			if partner = !x.spend() || x.is.MayExchange(a, b); partner {
				break
			}
		}
		if partner {
			continue
		}
		if x.out.Alone++; x.out.Alone <= x.limit {
			x.out.AloneHosts = append(x.out.AloneHosts, a)
		}
	}
}

// spend reports whether there is still time to look at another pair for what is left.
func (x *impact) spend() bool {
	if x.spent++; x.spent > 2*MaxImpactPairs {
		x.out.AtLeast = true
		return false
	}
	return true
}

// path adds a pair that is joined or taken apart.
func (x *impact) path(a, b netip.Addr, joined bool) {
	host, _ := x.is.Host(a)
	target, _ := x.is.Host(b)
	if host.Role == snsd.RoleTarget || target.Role == snsd.RoleInitiator {
		host, target = target, host
	}
	p := PathPair{Host: host.Addr, Target: target.Addr, NQN: target.NQN}
	sa, _ := x.is.State(a)
	sb, _ := x.is.State(b)
	p.Active = sa == snsd.Active && sb == snsd.Active
	left, counted := x.left(host.Addr)
	if p.Paths = left[service(target)]; !counted {
		p.Paths = -1
	}
	list := &x.out.Gained
	if joined {
		x.out.PairsGained++
	} else {
		list = &x.out.Lost
		x.out.PairsLost++
		if x.losing == nil {
			x.losing = map[netip.Addr]bool{}
		}
		x.losing[a], x.losing[b] = true, true
		if p.Active {
			x.out.LostActive++
		}
		if key := host.Addr.String() + " " + service(target); p.Paths == 0 && !x.cut[key] {
			if x.cut == nil {
				x.cut = map[string]bool{}
			}
			x.cut[key] = true
			x.out.CutOff++
		}
	}
	if len(*list) < x.limit {
		*list = append(*list, p)
	}
}

// service is what several addresses of one target have in common: the NQN, or the address where
// there is none.
func service(h Host) string {
	if h.NQN != "" {
		return h.NQN
	}
	return h.Addr.String()
}

// left counts the paths of a host afterwards; not counted: there was no time for it.
func (x *impact) left(a netip.Addr) (n map[string]int, counted bool) {
	if n, ok := x.paths[a]; ok {
		return n, true
	}
	n = map[string]int{}
	for b := range x.is.Peers(a) {
		if !x.spend() {
			return nil, false
		}
		if s, _ := x.is.State(b); s == snsd.Active && x.is.MayExchange(a, b) {
			t, _ := x.is.Host(b)
			n[service(t)]++
		}
	}
	if x.paths == nil {
		x.paths = map[netip.Addr]map[string]int{}
	}
	x.paths[a] = n
	return n, true
}

// pair adds what a would be told of b.
func (x *impact) pair(a, b netip.Addr, joined bool) {
	host, _ := x.is.Host(a)
	subject, _ := x.is.Host(b)
	if !host.Subscribes || host.MAC == subject.MAC || !host.Role.Meets(subject.Role) {
		return
	}
	state, reason := x.is.State(b)
	t := Told{Host: a, Subject: b, State: snsd.Active}
	switch {
	case joined && state != snsd.Active:
		return
	case joined:
		x.out.Active++
	case state != snsd.Active && reason.Disconnects():
		return // it has left already
	default:
		t.State, t.Reason = snsd.Inactive, snsd.ReasonZoneChanged
		x.out.Inactive++
	}
	if x.told == nil {
		x.told = map[netip.Addr]int{}
	}
	x.told[a]++
	x.out.MostTold = max(x.out.MostTold, x.told[a])
	if len(x.out.Told) < x.limit {
		x.out.Told = append(x.out.Told, t)
	}
}

// shadow is a table of its own of the same hosts.
func shadow(s Set, hosts []Host, faults []Fault) *Directory {
	d := NewDirectory(netip.Addr{})
	d.SetZones(s)
	for i := range hosts {
		d.PutHost(hosts[i])
	}
	for _, f := range faults {
		if f.Port == "" {
			d.SetDeviceFault(f.Device, f.Why)
		} else {
			d.SetDown(f.Device, f.Port, f.Addrs, Down{Why: f.Why})
		}
	}
	return d
}
