package lldp

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// SetBeliefs changes what is believed of hosts. What neighbours said last is judged anew:
// hosts that may not be there are gone.
func (t *Table) SetBeliefs(x Beliefs, now time.Time) (out []Change) {
	t.beliefs = x
	for _, e := range t.all() {
		n, changed := t.reconsidered(e, &x, now)
		if !changed {
			continue
		}
		old := e.n
		t.take(e)
		e.n = n
		t.insert(e)
		ch := Change{Kind: Updated, Neighbour: n, Old: &old, Put: t.puts(e), At: now}
		t.settle(&ch, old.Known, snsd.ReasonAgedOut)
		out = append(out, ch)
	}
	return out
}

// Losing lists by port the hosts that would be refused if x were believed.
func (t *Table) Losing(x Beliefs) map[string][]netip.Addr {
	out := map[string][]netip.Addr{}
	for _, e := range t.all() {
		n, _ := t.reconsidered(e, &x, e.n.LastHeard)
		for _, h := range e.n.Known {
			if !announces(n.Known, h.Addr) {
				out[n.Port] = append(out[n.Port], h.Addr)
			}
		}
	}
	return out
}

// reconsidered gives a neighbour as it would be under other beliefs.
func (t *Table) reconsidered(e *entry, x *Beliefs, now time.Time) (Neighbour, bool) {
	n := e.n
	p, err := Parse(n.LLDPDU)
	if err != nil { // it was read before
		return n, false
	}
	is := newNeighbour(n.Port, n.MAC, p, n.LLDPDU, now)
	keepMachine(is.Known, n.Known)
	t.believe(x, &is)
	if cut := len(is.Known) + len(is.Refused) - len(n.Known) - len(n.Refused); cut > 0 { // a limit left some out
		is.Known = slices.DeleteFunc(is.Known, func(h HostInfo) bool {
			return !announces(n.Known, h.Addr) && !slices.ContainsFunc(n.Refused, func(r RefusedHost) bool { return r.Addr == h.Addr })
		})
	}
	keepSince(is.Known, n.Known)
	if slices.Equal(is.Known, n.Known) && slices.Equal(is.Refused, n.Refused) {
		return n, false
	}
	n.Known, n.Refused = is.Known, is.Refused
	return n, true
}

// Forget takes an address from the neighbours of a port that announce it with this MAC
// address, for the reason why: it has moved, or an operator wants it so. Who announces
// it again is learned again.
func (t *Table) Forget(port string, a netip.Addr, mac fabric.MAC, why snsd.Reason, now time.Time) []Change {
	var out []Change
	for _, e := range t.sorted(port) {
		switch h := e.host(a); {
		case h.Addr != a || h.MAC != mac:
		case len(e.n.Known) == 1:
			ch := t.drop(e, why, now)
			ch.Taken = true
			out = append(out, ch)
		default:
			old, n := e.n, e.n
			n.Known = slices.DeleteFunc(slices.Clone(old.Known), func(h HostInfo) bool { return h.Addr == a })
			t.take(e)
			e.n, e.cut = n, e.cut+1
			t.insert(e)
			ch := Change{Kind: Updated, Neighbour: n, Old: &old, At: now, Taken: true}
			t.settle(&ch, old.Known, why)
			out = append(out, ch)
		}
	}
	return out
}
