package testbed

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// This file is the demo's own idea of who must be told what. It knows the fabric
// from the comments of labs/demo.clab.yml and is written without a look at the
// daemon's code: two independent answers are compared.

// demoAddr is one host address of the demo.
type demoAddr struct {
	addr  netip.Addr
	host  string // node
	port  string // the host's interface, and so its agent
	tor   string // access switch
	tport string // access port
	role  string // initiator, or both
}

func (a demoAddr) String() string { return a.host + " " + a.addr.String() }

// notice is one thing a host can be told; comparable.
type notice struct {
	Host    netip.Addr
	Subject netip.Addr
	State   string // active, inactive
	Reason  string // link-down, zone-changed, ...; not compared for active
}

func (n notice) key() notice {
	if n.State == "active" {
		n.Reason = ""
	}
	return n
}

func (n notice) String() string {
	s := fmt.Sprintf("%s told %s is %s", n.Host, n.Subject, n.State)
	if n.State != "active" {
		s += " (" + n.Reason + ")"
	}
	return s
}

// Names as they appear in notices.
const (
	active   = "active"
	inactive = "inactive"
	linkDown = "link-down"
	zoneGone = "zone-changed"
	agedOut  = "aged-out"
	bfdDown  = "bfd-down"
	packets  = "packet-error"
)

// truth is the table of truth: where every address is, which are reachable, and
// which zones they are in.
type truth struct {
	addrs []demoAddr
	zones map[string][]netip.Addr
	up    map[netip.Addr]bool
}

// newTruth describes labs/demo.clab.yml, nobody registered yet.
func newTruth() *truth {
	t := &truth{zones: make(map[string][]netip.Addr), up: make(map[netip.Addr]bool)}
	for i, h := range []struct {
		name, role string
		last       int
	}{{"i1", "initiator", 11}, {"i2", "initiator", 12}, {"t1", "both", 21}, {"t2", "both", 22}} {
		tport := fmt.Sprintf("eth%d", i+1)
		t.addrs = append(t.addrs,
			demoAddr{netip.AddrFrom4([4]byte{192, 0, 2, byte(h.last)}), h.name, "eth1", "tor1", tport, h.role},
			demoAddr{netip.AddrFrom4([4]byte{198, 51, 100, byte(h.last)}), h.name, "eth2", "tor2", tport, h.role})
	}
	t.zones["oltp"] = []netip.Addr{t.of("i1", "A"), t.of("i1", "B"), t.of("t1", "A"), t.of("t1", "B")}
	t.zones["analytics"] = []netip.Addr{t.of("i2", "A"), t.of("i2", "B"), t.of("t2", "A"), t.of("t2", "B")}
	t.zones["replication"] = []netip.Addr{t.of("t1", "A"), t.of("t2", "A")}
	return t
}

// of gives a host's address in a plane.
func (t *truth) of(host, plane string) netip.Addr {
	for _, a := range t.addrs {
		if a.host == host && (a.tor == "tor1") == (plane == "A") {
			return a.addr
		}
	}
	panic("no " + host + " in plane " + plane)
}

// info finds where an address is.
func (t *truth) info(addr netip.Addr) demoAddr {
	for _, a := range t.addrs {
		if a.addr == addr {
			return a
		}
	}
	return demoAddr{addr: addr, host: "?"}
}

func (t *truth) share(a, b netip.Addr) bool {
	for _, members := range t.zones {
		if slices.Contains(members, a) && slices.Contains(members, b) {
			return true
		}
	}
	return false
}

// concern tells whether two addresses that share a zone are told of each other: not two
// initiators.
func (t *truth) concern(a, b netip.Addr) bool {
	return t.info(a).role != "initiator" || t.info(b).role != "initiator"
}

// peers lists the reachable addresses that share a zone with a and concern it.
func (t *truth) peers(a netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, b := range t.addrs {
		if b.addr != a && t.up[b.addr] && t.share(a, b.addr) && t.concern(a, b.addr) {
			out = append(out, b.addr)
		}
	}
	return out
}

// expected is a set of notices.
type expected map[notice]bool

func (e expected) add(host, subject netip.Addr, state, reason string) {
	e[notice{host, subject, state, reason}.key()] = true
}

func (e expected) sorted() []notice { return slices.SortedFunc(maps.Keys(e), compareNotices) }

func compareNotices(a, b notice) int {
	return cmp.Or(a.Host.Compare(b.Host), a.Subject.Compare(b.Subject), cmp.Compare(a.State, b.State))
}

// goes makes addresses unreachable and says who must be told: everybody who is
// reachable and shares a zone. Addresses that go together do not tell each other.
func (t *truth) goes(reason string, addrs ...netip.Addr) expected {
	for _, a := range addrs {
		t.up[a] = false
	}
	e := expected{}
	for _, a := range addrs {
		for _, p := range t.peers(a) {
			e.add(p, a, inactive, reason)
		}
	}
	return e
}

// comes makes addresses reachable and says who must be told: their peers of them,
// and they themselves of all their peers.
func (t *truth) comes(addrs ...netip.Addr) expected {
	for _, a := range addrs {
		t.up[a] = true
	}
	e := expected{}
	for _, a := range addrs {
		for _, p := range t.peers(a) {
			e.add(p, a, active, "")
			e.add(a, p, active, "")
		}
	}
	return e
}

// pathDown cuts tor1 from tor2 and says who must be told: each end of every pair
// across it. Reachable over nothing else, they stay cut until pathUp.
func (t *truth) pathDown() expected { return t.across(inactive, bfdDown) }

// pathUp is the opposite of pathDown.
func (t *truth) pathUp() expected { return t.across(active, "") }

func (t *truth) across(state, reason string) expected {
	e := expected{}
	for _, a := range t.addrs {
		for _, p := range t.peers(a.addr) {
			if t.up[a.addr] && t.info(p).tor != a.tor {
				e.add(a.addr, p, state, reason)
			}
		}
	}
	return e
}

// join puts an address into a zone and says who must be told: both sides of each
// new pair.
func (t *truth) join(zone string, a netip.Addr) expected {
	before := t.peers(a)
	t.zones[zone] = append(slices.Clone(t.zones[zone]), a)
	e := expected{}
	for _, p := range t.peers(a) {
		if !slices.Contains(before, p) {
			e.add(p, a, active, "")
			e.add(a, p, active, "")
		}
	}
	return e
}

// leave is the opposite of join.
func (t *truth) leave(zone string, a netip.Addr) expected {
	before := t.peers(a)
	t.zones[zone] = slices.DeleteFunc(slices.Clone(t.zones[zone]), func(b netip.Addr) bool { return b == a })
	after := t.peers(a)
	e := expected{}
	for _, p := range before {
		if !slices.Contains(after, p) {
			e.add(p, a, inactive, zoneGone)
			e.add(a, p, inactive, zoneGone)
		}
	}
	return e
}

// silent says why an address that was told nothing was rightly told nothing about
// the subjects.
func (t *truth) silent(a netip.Addr, subjects []netip.Addr) string {
	switch {
	case slices.Contains(subjects, a):
		return "its own address"
	case !t.up[a]:
		return "not reachable"
	}
	for _, s := range subjects {
		if t.share(a, s) && !t.concern(a, s) {
			return "an initiator, as it is"
		}
		if t.share(a, s) {
			return "nothing new to it"
		}
	}
	return "no zone shared"
}
