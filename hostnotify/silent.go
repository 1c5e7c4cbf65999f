package hostnotify

import (
	"net/netip"
	"time"
)

// Silent is a host that leaves its notices unacked.
type Silent struct {
	Host    netip.Addr
	Port    string // over which it is told
	Notices int    // sent and not acked
	Since   time.Time
}

// Silent are the hosts with notices under way that have acked nothing for longer than
// that, in the order in which they registered. A host whose port is down has its cable to
// blame, and is not among them.
func (n *Notifier) Silent(longer time.Duration, now time.Time) (list []Silent) {
	n.touch(now)
	for _, s := range n.order {
		if s.inFlight > 0 && s.out != nil && n.now-s.heard > stamp(longer) {
			list = append(list, Silent{Host: s.addr, Port: s.out.port.name, Notices: s.inFlight, Since: n.time(s.heard)})
		}
	}
	return list
}
