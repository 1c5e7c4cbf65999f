package hostnotify

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// port is a switch port with the hosts that are registered on it.
type port struct {
	name string
	mac  fabric.MAC
	mtu  int // longest payload of a frame; 0: not known
	up   bool
	// isDown: it was said to be down; after a start neither may have been said yet.
	isDown bool
	subs   []*subscriber // with a link to this port
	rings  [classes]ring // the hosts whose turn it is, by class
	pace   pacer
	// leaving: it is about to be shut in order.
	leaving bool
}

// agentKey names a host as a machine: its addresses share one queue there.
type agentKey struct {
	port string
	mac  fabric.MAC
}

// link is one port on which an address registered.
type link struct {
	port  *port
	mac   fabric.MAC
	agent *agent
	// moved: the port lost its carrier while the process was away, and the host has not been
	// told everything, nor acked anything over it, since.
	moved bool
}

// subscriber is one local host address that wants notices.
type subscriber struct {
	addr  netip.Addr
	role  snsd.Role  // of the host, as far as it is known
	mac   fabric.MAC // of the machine that holds the address; links with another one are rivals
	links []*link
	// claims are the ports on which it is registered while another claim has the address.
	claims []string
	out    *link // the one notices go through; nil while there is none

	pairs map[netip.Addr]*pair // by subject
	list  []*pair              // the same, in an order that does not depend on the map

	waiting  [classes]pairList
	turns    [classes]bool // it is in that ring of its port
	inFlight int           // notices sent and not acked
	// heard is when it acked last, or its notices under way began to wait for that.
	heard stamp

	asked    stamp  // what it was told before it may have forgotten: its last zone query, or its link came back
	answered stamp  // when the last zone query was answered
	queryDue stamp  // when a deferred one will be
	restored bool   // not registered since Restore
	until    stamp  // when it is forgotten if it has not registered; never: it has
	early    bool   // see SubscribeAs
	unkept   bool   // its row has changed
	life     uint32 // counts when it came to have no usable port, and one again
	rotated  stamp  // when it was chosen last over which port to repeat things
	inTurns  stamp  // when what waits was last ordered by the turns of devices
	// owed: its last link went down since it was told everything, or another claim had the
	// address. The host agent may forget then, and its query may be lost, or others tell it
	// things: it is told all again once the link, or the address, is back.
	owed bool
}

func (s *subscriber) link(p *port) *link {
	for _, l := range s.links {
		if l.port == p {
			return l
		}
	}
	return nil
}

// holds reports whether a link with this MAC is left.
func (s *subscriber) holds(mac fabric.MAC) bool {
	return slices.ContainsFunc(s.links, func(l *link) bool { return l.mac == mac })
}

// isCutOff reports whether all ports of the host are down, or were while the process was away.
func (s *subscriber) isCutOff() bool {
	return !slices.ContainsFunc(s.links, func(l *link) bool { return !l.port.isDown && !l.moved && l.mac == s.mac })
}

// hasLost reports whether a port of the machine is down. One that registers on another port then
// was moved: what it heard, and asked, may be lost, also where a cable of before is used by others.
func (s *subscriber) hasLost(mac fabric.MAC) bool {
	return slices.ContainsFunc(s.links, func(l *link) bool { return l.port.isDown && l.mac == mac })
}

// isNowhere reports whether it is registered on no port.
func (s *subscriber) isNowhere() bool { return len(s.links)+len(s.claims) == 0 }

// isAwaited reports whether it is not registered, and may be there: it was withdrawn, or restored.
func (s *subscriber) isAwaited() bool { return s.until != never }

// yields reports whether another claim has the address, see Yield.
func (s *subscriber) yields() bool { return len(s.links) == 0 && !s.restored }

func (s *subscriber) usable(l *link) bool { return l.port.up && l.mac == s.mac }

// prefers reports whether notices rather go through l than through o: not over a port that
// is about to be shut, and where they go now.
func (s *subscriber) prefers(l, o *link) bool {
	if l.port.leaving != o.port.leaving {
		return o.port.leaving
	}
	return l == s.out
}

// leaving reports whether all ports of a host are about to be shut.
func (s *subscriber) leaving() bool {
	return len(s.links) > 0 && !slices.ContainsFunc(s.links, func(l *link) bool { return !l.port.leaving })
}
