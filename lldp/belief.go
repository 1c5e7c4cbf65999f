package lldp

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// What an LLDPDU says is a claim: any host can send any. This file judges claims by where
// the frame came from: by the bindings of addresses, MAC addresses and NQNs to ports, and by
// whether the frame's source is the chassis id.

// SourcePolicy is what becomes of a host whose frames come from another MAC address than their
// chassis id, and that no binding names.
type SourcePolicy uint8

const (
	SourceDoubt    SourcePolicy = iota // it is taken, and takes no address that another claims
	SourceAny                          // it is taken
	SourceRequired                     // it is refused
)

// Binding says at which ports an address, a MAC address and an NQN may be. What is zero is
// not bound; the rest must all be true of a host, at one of the ports.
type Binding struct {
	Addrs netip.Prefix
	MAC   fabric.MAC // chassis id, or source of the frames
	NQN   string     // exact, or with * and ?
	Ports fabric.Names
}

// Beliefs are what is believed of hosts.
type Beliefs struct {
	Source   SourcePolicy
	Bindings []Binding
}

// RefusedHost is an address that a neighbour announces and that is not taken.
type RefusedHost struct {
	Addr netip.Addr `json:"addr"`
	Why  string     `json:"why"`
}

// accepts reports whether a host at a port is all that the binding says.
func (b *Binding) accepts(port string, src fabric.MAC, h *HostInfo) bool {
	return b.Ports.Match(port) && (!b.Addrs.IsValid() || b.Addrs.Contains(h.Addr)) &&
		(b.MAC.IsZero() || b.MAC == h.MAC || b.MAC == src) && (b.NQN == "" || snsd.MatchNQN(b.NQN, h.NQN))
}

// judge says why a host may not be at a port, and whether who says it is in doubt. Of each of
// its address, MAC addresses and NQN that is bound, one binding must accept it.
func (x *Beliefs) judge(port string, src fabric.MAC, h *HostInfo) (why string, doubt bool) {
	source := src == h.MAC
	for _, f := range [...]struct {
		what string
		is   func(*Binding) bool
	}{
		{"address " + h.Addr.String(), func(b *Binding) bool { return b.Addrs.IsValid() && b.Addrs.Contains(h.Addr) }},
		{"MAC address " + h.MAC.String(), func(b *Binding) bool { return !b.MAC.IsZero() && b.MAC == h.MAC }},
		{"MAC address " + src.String(), func(b *Binding) bool { return !b.MAC.IsZero() && b.MAC == src }},
		{"NQN " + h.NQN, func(b *Binding) bool { return b.NQN != "" && h.NQN != "" && snsd.MatchNQN(b.NQN, h.NQN) }},
	} {
		bound, fits := false, false
		for i := range x.Bindings {
			if b := &x.Bindings[i]; f.is(b) {
				bound = true
				if b.accepts(port, src, h) {
					fits = true
					source = source || b.MAC == src
				}
			}
		}
		if bound && !fits {
			return f.what + " is bound to other ports or hosts (hosts.bindings)", false
		}
	}
	switch {
	case source || x.Source == SourceAny:
		return "", false
	case x.Source == SourceRequired:
		return fmt.Sprintf("its frames come from %s, not from their chassis id %s, and no binding says that they may", src, h.MAC), false
	}
	return "", true
}

// believe takes from a neighbour the hosts that may not be there, and marks those in doubt.
func (x *Beliefs) believe(n *Neighbour) {
	kept := n.Known[:0]
	for _, h := range n.Known {
		why, doubt := x.judge(n.Port, n.MAC, &h)
		if why != "" {
			n.Refused = append(n.Refused, RefusedHost{h.Addr, why})
			continue
		}
		h.Doubt = doubt
		kept = append(kept, h)
	}
	n.Known = kept
}

// InDoubt reports whether a host of the neighbour is in doubt.
func (n *Neighbour) InDoubt() bool {
	return slices.ContainsFunc(n.Known, func(h HostInfo) bool { return h.Doubt })
}

// SetBeliefs changes what is believed of hosts. What neighbours said last is judged anew:
// hosts that may not be there are gone.
func (t *Table) SetBeliefs(x Beliefs, now time.Time) (out []Change) {
	t.beliefs = x
	for _, e := range t.all() {
		n, changed := t.rejudged(e, &x, now)
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
		n, _ := t.rejudged(e, &x, e.n.LastHeard)
		for _, h := range e.n.Known {
			if !announces(n.Known, h.Addr) {
				out[n.Port] = append(out[n.Port], h.Addr)
			}
		}
	}
	return out
}

// rejudged gives a neighbour as it would be under other beliefs.
func (t *Table) rejudged(e *entry, x *Beliefs, now time.Time) (Neighbour, bool) {
	n := e.n
	p, err := Parse(n.LLDPDU)
	if err != nil { // it was read before
		return n, false
	}
	is := newNeighbour(n.Port, n.MAC, p, n.LLDPDU, now)
	x.believe(&is)
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

// all gives the neighbours of all ports in a stable order.
func (t *Table) all() (list []*entry) {
	names := make([]string, 0, len(t.ports))
	for name := range t.ports {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		list = append(list, t.sorted(name)...)
	}
	return list
}
