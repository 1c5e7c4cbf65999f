package lldp

import (
	"fmt"
	"net/netip"
	"slices"

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

// own is what belongs to switches, and no host may claim.
type own struct {
	addrs []netip.Addr
	macs  map[string]fabric.MAC // by port
}

// SetOwnAddrs names addresses that no host may have: the device id, and those of reflectors.
func (t *Table) SetOwnAddrs(list []netip.Addr) { t.own.addrs = list }

// SetOwnMAC names the MAC address of a port of this device.
func (t *Table) SetOwnMAC(port string, mac fabric.MAC) {
	if t.own.macs == nil {
		t.own.macs = map[string]fabric.MAC{}
	}
	t.own.macs[port] = mac
}

// has says why a host can be none.
func (o *own) has(src fabric.MAC, h *HostInfo) string {
	if slices.Contains(o.addrs, h.Addr) {
		return "the address is that of a switch: its device id"
	}
	for _, mac := range [...]fabric.MAC{h.MAC, src} {
		if !mac.IsHost() {
			return "MAC address " + mac.String() + " is that of a group, or zero"
		}
		for port, is := range o.macs {
			if is == mac {
				return "MAC address " + mac.String() + " is that of port " + port + " of this switch"
			}
		}
	}
	return ""
}

// believe takes from a neighbour the hosts that may not be there, and marks those in doubt.
func (t *Table) believe(x *Beliefs, n *Neighbour) {
	kept := n.Known[:0]
	for _, h := range n.Known {
		why, doubt := t.own.has(n.MAC, &h), false
		if why == "" {
			why, doubt = x.judge(n.Port, n.MAC, &h)
		}
		if why != "" {
			n.Refused = append(n.Refused, RefusedHost{h.Addr, why})
			continue
		}
		h.Doubt = doubt
		kept = append(kept, h)
	}
	n.Known = kept
}
