package zone

import (
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
	Active   int    `json:"active"`   // notices that somebody can be reached now
	Inactive int    `json:"inactive"` // notices that somebody is to be left
	AtLeast  bool   `json:"at_least"` // there are more: counting ended at MaxImpactPairs
	Told     []Told `json:"told"`     // the first of them
}

// MaxImpactPairs bounds the pairs of hosts that ImpactOf looks at.
const MaxImpactPairs = 4 << 20

// ImpactOf says what hosts would be told if the zones before became those after, without
// any change to a Directory that is in use. Hosts and faults are those of the fabric;
// at most limit notices are named. Who is told is who wants notices; of whom, the hosts of
// another role (an initiator hears of targets), and of hosts without a role all.
func ImpactOf(before, after Set, hosts []Host, faults []Fault, limit int) Impact {
	x := impact{was: shadow(before, hosts, faults), is: shadow(after, hosts, faults), limit: limit}
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
					return x.out
				}
				if x.was.Share(a, b) != x.is.Share(a, b) {
					x.pair(a, b, side == x.is)
					x.pair(b, a, side == x.is)
				}
			}
		}
	}
	return x.out
}

type impact struct {
	was, is       *Directory
	limit, looked int
	out           Impact
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
			d.SetFault(f.Device, f.Port, f.Addrs, f.Why)
		}
	}
	return d
}
