package device

import (
	"net/netip"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/snsd"
)

// Declaration is a host that registers nothing. It is a host while exactly one of its ports has
// carrier and answers for the address.
type Declaration struct {
	Addr    netip.Addr
	Ports   fabric.Names
	Service snsd.Service
}

// DeclaredCounters count what is asked of declared hosts, and what they answer.
type DeclaredCounters struct {
	presence.Counters
	Misplaced uint64 `json:"misplaced"`  // answers on ports that the declaration does not name
	TwoPorts  uint64 `json:"two_ports"`  // answers on a second port, while the first one answers too
	OtherMACs uint64 `json:"other_macs"` // answers from another machine on the port, while the first one answers too
	Moved     uint64 `json:"moved"`      // hosts that moved to another of their ports
	Refused   uint64 `json:"refused"`    // answers and declarations that were not taken, see the events
	Unasked   uint64 `json:"unasked"`    // times that an address was not asked for at a port, because there are too many
}

// declared are the hosts that are declared, and what is known of them.
type declared struct {
	asker    *presence.Asker
	all      map[netip.Addr]*declaredHost
	restored []Declaration // what the last process had found; until all reflectors were heard
	count    DeclaredCounters
	// What changed and is to be looked at when the input is through.
	stale bool            // the declarations
	ports map[string]bool // whether it was down
	addrs map[netip.Addr]bool
}

// declaredHost is a declared host. The first port that answers has it.
type declaredHost struct {
	Declaration
	port     string     // where it is a host; empty: nowhere
	mac      fabric.MAC // of it there
	quiet    bool       // it left the last questions there unanswered, or the port was down since
	second   string     // another of its ports that answered, from other
	other    fabric.MAC
	twice    bool   // both answer
	stray    string // the port that answered last and is not one of its own
	register bool   // it registers itself
}

// at is the host at a port.
func (d *declaredHost) at(port string) presence.Key { return presence.Key{Port: port, Addr: d.Addr} }

// changed reports whether something is to be looked at.
func (d *declared) changed() bool { return d.stale || len(d.ports)+len(d.addrs) > 0 }

// followPort notes that a port is not what it was.
func (d *declared) followPort(name string, up bool) {
	if len(d.all) > 0 {
		d.ports[name] = d.ports[name] || !up
	}
}

// follow notes that neighbours of a port changed: a declared host may have gone, or register itself.
func (d *declared) follow(ch *lldp.Change) {
	if len(d.all) == 0 || ch.Kind == lldp.Refreshed {
		return
	}
	for _, n := range []*lldp.Neighbour{&ch.Neighbour, ch.Old} {
		if n == nil || n.Registration == nil {
			continue
		}
		h := d.all[n.Registration.Addr]
		if h == nil {
			continue
		}
		if n.Declared() && n.Port == h.port && (ch.Kind == lldp.Removed || len(ch.Neighbour.Known) == 0) {
			h.port, h.twice = "", false
		}
		d.addrs[h.Addr] = true
	}
}
