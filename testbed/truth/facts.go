// Package truth is what hosts must be told, worked out from what was done to a fabric and
// without a look at the daemon's code: who may see whom (Zones, Doubt, Concern), what a notice is
// beside those before it (Said), the facts as they are (Facts), how they came about (History), and
// a Judge of what hosts were told.
//
// The demo, chaos and the lab with two reflectors use all of it, the simulation the first two.
// Facts, History and Judge are for labs, where an address has one place for the whole run and all
// that is known of a device is the wall clock of its hosts' agents: whatever was true since the
// last quiet moment may still be told. In the simulation hosts move, and several claim one address;
// but it knows what each device has heard and has on its disk when it sends a frame, and judges the
// frame by that. A judge that did both would allow the simulation what only labs need.
package truth

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Place is where an address is.
type Place struct {
	Addr   netip.Addr
	Node   string     // the host
	NIC    string     // its port
	Agent  string     // the process of the host that registers it
	Switch string     // access switch, a node
	Port   string     // access port
	Device netip.Addr // device id of the access switch
	Role   snsd.Role
	Like   bool // its agent has the habits of the existing one: see Judge.Hear
}

func (p Place) String() string { return p.Node + " " + p.Addr.String() }

// Concern reports whether hosts of two roles are told of each other.
func Concern(a, b snsd.Role) bool { return a != b || a != snsd.RoleInitiator && a != snsd.RoleTarget }

// What notices say.
const (
	Active   = "active"
	Inactive = "inactive"

	LinkDown = "link-down"
	ZoneGone = "zone-changed"
	AgedOut  = "aged-out"
	BFDDown  = "bfd-down"
	Damaged  = "packet-error"
)

// cause is one of the independent things that must be well for a subject to be
// active to a host.
type cause uint8

const (
	byZone  cause = iota // the two share a zone, and their roles concern each other
	byLink               // the subject's port has carrier
	byAgent              // the subject is registered
	byPath               // the two access devices reach each other
	byPort               // the subject's port is not shut because of damaged frames
	causes
)

// reasonOf is what a notice says when a cause makes a subject inactive.
var reasonOf = [causes]string{byZone: ZoneGone, byLink: LinkDown, byAgent: AgedOut, byPath: BFDDown, byPort: Damaged}

// cond tells for each cause whether it is bad.
type cond [causes]bool

func (c cond) active() bool { return c == cond{} }

// Pair is a host address and an address that it may be told of.
type Pair struct{ Host, Subject netip.Addr }

// Phase is how far a port is with damaged frames.
type Phase uint8

// The phases.
const (
	PortWell    Phase = iota
	PortDamaged       // they arrive: once they are found the others are told, and then the port is shut
	PortShut          // by its switch
	PortOpening       // it has no carrier yet
)

// Facts are how things are in a fabric.
type Facts struct {
	places []Place
	pairs  []Pair
	zones  Zones
	link   map[netip.Addr]bool    // false: the cable is pulled
	agent  map[netip.Addr]bool    // false: withdrawn
	paths  map[[2]netip.Addr]bool // true: bad
	ports  map[netip.Addr]Phase   // of the port of an address
}

// NewFacts begins with every cable plugged and nobody registered.
func NewFacts(places []Place, zones map[string][]netip.Addr) *Facts {
	f := &Facts{places: places, zones: Agree(false, zone.Set{}), link: map[netip.Addr]bool{}, agent: map[netip.Addr]bool{},
		paths: map[[2]netip.Addr]bool{}, ports: map[netip.Addr]Phase{}}
	for name, members := range zones {
		f.SetZone(name, members)
	}
	for _, p := range places {
		f.link[p.Addr] = true
		for _, q := range places {
			if p.Addr != q.Addr {
				f.pairs = append(f.pairs, Pair{p.Addr, q.Addr})
			}
		}
	}
	return f
}

// SetLink says that the cable of an address is plugged or pulled.
func (f *Facts) SetLink(addr netip.Addr, up bool) { f.link[addr] = up }

// SetAgent says that an address registers, or is withdrawn.
func (f *Facts) SetAgent(addr netip.Addr, here bool) { f.agent[addr] = here }

// SetPath says that two access devices reach each other, or not: then each one's
// hosts are unreachable (bfd-down) to the hosts of the other one.
func (f *Facts) SetPath(a, b netip.Addr, good bool) { f.paths[path(a, b)] = !good }

// SetPort says how far the port of an address is with damaged frames.
func (f *Facts) SetPort(addr netip.Addr, is Phase) { f.ports[addr] = is }

// SetReflectors says how many reflectors there are; each begins with the zones of the first.
func (f *Facts) SetReflectors(n int) { f.zones = Agree(false, slices.Repeat(f.zones.Sets[:1], n)...) }

// SetZone says who the members of a zone are, at these reflectors; at none of them: at all.
func (f *Facts) SetZone(name string, members []netip.Addr, at ...int) {
	z := zone.Zone{Name: name}
	for _, a := range members {
		z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: a})
	}
	sets := slices.Clone(f.zones.Sets)
	for i, s := range sets {
		if len(at) == 0 || slices.Contains(at, i) {
			others := slices.DeleteFunc(slices.Clone(s.Zones), func(o zone.Zone) bool { return o.Name == name })
			sets[i] = zone.Set{Zones: append(others, z)}.Canonical()
		}
	}
	f.zones = Agree(false, sets...)
}

// path names the path between two devices, whichever comes first.
func path(a, b netip.Addr) [2]netip.Addr {
	if b.Less(a) {
		a, b = b, a
	}
	return [2]netip.Addr{a, b}
}

// Places are all of them.
func (f *Facts) Places() []Place { return f.places }

// Members gives the members of a zone that are in force.
func (f *Facts) Members(name string) (out []netip.Addr) {
	z, _ := f.zones.InForce.Find(name)
	for _, m := range z.Members {
		out = append(out, m.First)
	}
	return out
}

// Place finds where an address is.
func (f *Facts) Place(addr netip.Addr) (Place, bool) {
	i := slices.IndexFunc(f.places, func(p Place) bool { return p.Addr == addr })
	if i < 0 {
		return Place{}, false
	}
	return f.places[i], true
}

// Share reports whether two addresses are in one zone.
func (f *Facts) Share(a, b netip.Addr) bool {
	return Common(f.zones.Of(Known{Addr: a}), f.zones.Of(Known{Addr: b}))
}

// Reachable reports whether a host can be told anything at an address.
func (f *Facts) Reachable(a netip.Addr) bool {
	return f.link[a] && f.agent[a] && f.ports[a] != PortShut && f.ports[a] != PortOpening
}

// of gives what is bad for a pair.
func (f *Facts) of(p Pair) cond {
	h, _ := f.Place(p.Host)
	s, _ := f.Place(p.Subject)
	is := f.ports[p.Subject]
	return cond{byZone: !f.Share(p.Host, p.Subject) || !Concern(h.Role, s.Role), byLink: !f.link[p.Subject] || is == PortOpening,
		byAgent: !f.agent[p.Subject], byPath: f.paths[path(h.Device, s.Device)], byPort: is == PortShut}
}

// Notice is one thing a host is told. Of an active subject the reason is empty.
type Notice struct {
	Host, Subject netip.Addr
	State, Reason string
}

// NoticeOf is a notice as it was heard.
func NoticeOf(host, subject netip.Addr, state, reason string) Notice {
	if state == Active {
		reason = ""
	}
	return Notice{host, subject, state, reason}
}

func (n Notice) String() string {
	s := n.Host.String() + " told " + n.Subject.String() + " is " + n.State
	if n.State != Active {
		s += " (" + n.Reason + ")"
	}
	return s
}

// Notices are what hosts are told after a change, each once.
type Notices map[Notice]bool

// Sorted lists them by host, subject and state.
func (n Notices) Sorted() []Notice {
	return slices.SortedFunc(maps.Keys(n), func(a, b Notice) int {
		return cmp.Or(a.Host.Compare(b.Host), a.Subject.Compare(b.Subject), cmp.Compare(a.State, b.State))
	})
}

// Change makes a change of the facts and gives what hosts must be told because of it: those
// that can be reached then, of what is another thing than before. A host that could not be
// reached before has forgotten all, and is told of everything that is active.
func (f *Facts) Change(do func()) Notices {
	before, could := map[Pair]cond{}, map[netip.Addr]bool{}
	for _, p := range f.pairs {
		before[p], could[p.Host] = f.of(p), f.Reachable(p.Host)
	}
	do()
	out := Notices{}
	for _, p := range f.pairs {
		was, is := before[p], f.of(p)
		knew := was.active() && could[p.Host]
		switch {
		case !f.Reachable(p.Host) || knew == is.active():
		case knew:
			for x := range is {
				if is[x] && !was[x] {
					out[NoticeOf(p.Host, p.Subject, Inactive, reasonOf[x])] = true
					break
				}
			}
		default:
			out[NoticeOf(p.Host, p.Subject, Active, "")] = true
		}
	}
	return out
}
