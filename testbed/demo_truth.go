package testbed

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/truth"
)

// This file is the demo's own idea of who must be told what. It knows the fabric
// from the comments of labs/demo.clab.yml and is written without a look at the
// daemon's code: two independent answers are compared.

// demoTruth describes labs/demo.clab.yml.
type demoTruth struct{ *truth.Facts }

var demoDevice = map[string]netip.Addr{"tor1": netip.MustParseAddr("10.255.0.1"), "tor2": netip.MustParseAddr("10.255.0.2")}

// newDemoTruth begins with nobody registered.
func newDemoTruth() demoTruth {
	var places []truth.Place
	for i, h := range []struct {
		name string
		role snsd.Role
		last byte
	}{{"i1", snsd.RoleInitiator, 11}, {"i2", snsd.RoleInitiator, 12}, {"t1", snsd.RoleBoth, 21}, {"t2", snsd.RoleBoth, 22}} {
		for k, addr := range []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, h.last}), netip.AddrFrom4([4]byte{198, 51, 100, h.last})} {
			nic, tor := fmt.Sprintf("eth%d", k+1), fmt.Sprintf("tor%d", k+1)
			places = append(places, truth.Place{Addr: addr, Node: h.name, NIC: nic, Agent: "snsd-" + nic,
				Switch: tor, Port: fmt.Sprintf("eth%d", i+1), Device: demoDevice[tor], Role: h.role})
		}
	}
	t := demoTruth{truth.NewFacts(places, nil)}
	t.SetZone("oltp", []netip.Addr{t.of("i1", "A"), t.of("i1", "B"), t.of("t1", "A"), t.of("t1", "B")})
	t.SetZone("analytics", []netip.Addr{t.of("i2", "A"), t.of("i2", "B"), t.of("t2", "A"), t.of("t2", "B")})
	t.SetZone("replication", []netip.Addr{t.of("t1", "A"), t.of("t2", "A")})
	return t
}

// of gives a host's address in a plane.
func (t demoTruth) of(host, plane string) netip.Addr {
	for _, a := range t.Places() {
		if a.Node == host && (a.Switch == "tor1") == (plane == "A") {
			return a.Addr
		}
	}
	panic("no " + host + " in plane " + plane)
}

// info finds where an address is.
func (t demoTruth) info(addr netip.Addr) truth.Place {
	if a, ok := t.Place(addr); ok {
		return a
	}
	return truth.Place{Addr: addr, Node: "?"}
}

// goes makes addresses unreachable and says who must be told.
func (t demoTruth) goes(reason string, addrs ...netip.Addr) truth.Notices {
	return t.Change(func() {
		for _, a := range addrs {
			switch reason {
			case truth.LinkDown:
				t.SetLink(a, false)
			case truth.AgedOut:
				t.SetAgent(a, false)
			case truth.Damaged:
				t.SetPort(a, truth.PortShut)
			}
		}
	})
}

// comes makes addresses reachable and says who must be told: their peers of them,
// and they themselves of all their peers.
func (t demoTruth) comes(addrs ...netip.Addr) truth.Notices {
	return t.Change(func() {
		for _, a := range addrs {
			t.SetLink(a, true)
			t.SetAgent(a, true)
			t.SetPort(a, truth.PortWell)
		}
	})
}

// path cuts tor1 from tor2, or joins them, and says who must be told.
func (t demoTruth) path(good bool) truth.Notices {
	return t.Change(func() { t.SetPath(demoDevice["tor1"], demoDevice["tor2"], good) })
}

// join puts an address into a zone and says who must be told.
func (t demoTruth) join(zone string, a netip.Addr) truth.Notices {
	return t.Change(func() { t.SetZone(zone, append(t.Members(zone), a)) })
}

// leave is the opposite of join.
func (t demoTruth) leave(zone string, a netip.Addr) truth.Notices {
	return t.Change(func() {
		t.SetZone(zone, slices.DeleteFunc(t.Members(zone), func(b netip.Addr) bool { return b == a }))
	})
}

// silent says why an address that was told nothing was rightly told nothing about
// the subjects.
func (t demoTruth) silent(a netip.Addr, subjects []netip.Addr) string {
	switch {
	case slices.Contains(subjects, a):
		return "its own address"
	case !t.Reachable(a):
		return "not reachable"
	}
	for _, s := range subjects {
		if t.Share(a, s) && !truth.Concern(t.info(a).Role, t.info(s).Role) {
			return "an initiator, as it is"
		}
		if t.Share(a, s) {
			return "nothing new to it"
		}
	}
	return "no zone shared"
}
