package reflector

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/snsd"
)

// news is a key that has changed.
type news struct {
	feedKey
	gone bool // it goes, or is over, for those who hear of it
	// again: it has changed so often of late that it need not be told at once.
	again bool
	why   snsd.Reason // it is gone; where it still exists it has left their zones
	by    *cause      // why it waits, in a backlog
}

// rank is the order in which keys of a backlog are told. Losses overtake everything; what is
// down, and zones, come before the hosts that come.
type rank uint8

const (
	rankGone rank = iota
	rankDown
	rankAgain // losses of what changes too often
	rankSettings
	rankZone
	rankDumpZones // of a full sync
	rankHost
	rankDumpHosts
	rankRest
	ranks
)

// loss reports whether the news are that a host is gone or cannot be reached: what others wait
// for.
func (n *news) loss() bool {
	is := keyKinds[n.kind].loss
	return !n.again && is != nil && is(n)
}

func (n *news) rank() rank {
	r := keyKinds[n.kind].rank
	if n.gone {
		r = keyKinds[n.kind].gone
	}
	if n.again {
		r = max(r, rankAgain)
	}
	return r
}

// cause is the change behind keys: by whom, and when it happened on its way so far.
type cause struct {
	origin                     netip.Addr
	epoch, seq                 uint64    // of the origin; of the reflector itself: what was told last
	fault, decided, sent, came time.Time // FaultAt, DecidedAt, SentAt, ReflectorAt
}

// receivers are the devices that a post is for. Both lists are sorted and may be shared.
type receivers struct {
	list []*device
	not  []*device // of list
}

func (x receivers) has(d *device) bool { return hasDevice(x.list, d) && !hasDevice(x.not, d) }

// each goes through those who are there to hear of it.
func (x receivers) each(f func(d *device)) {
	not := x.not
	for _, d := range x.list {
		for len(not) > 0 && not[0] != d && compareDevices(not[0], d) < 0 {
			not = not[1:]
		}
		if d.hears() && (len(not) == 0 || not[0] != d) {
			f(d)
		}
	}
}

func (r *Reflector) ownCause() *cause { return &cause{origin: r.self} }

// eventCause is ownCause of a change that is itself an event: the zones were changed, the
// grace time of a device ended.
func (r *Reflector) eventCause(at, now time.Time) *cause {
	return &cause{origin: r.self, fault: at, decided: now}
}
