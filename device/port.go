package device

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// port is one access port.
type port struct {
	fabric.Port
	present bool
	fault   portFault
	told    []netip.Addr  // of the fault: whom the reflectors were told of
	kept    errdown.Saved // of its faults, as its row has it
	lost    time.Time     // when the carrier was last lost
	// draining: it is drained and not shut yet; nil: it is not.
	draining *draining
	leaves   time.Time     // when its hosts leave, because the configuration does not name it; zero: it does
	losses   uint32        // how often it was
	changes  uint64        // of carrier, as the last event had it
	closed   bool          // blocked as a whole
	was      *restoredPort // until its first event after a restart
	// pretend: it seems to be shut while the device observes; real is what it is (observe.go).
	pretend bool
	real    fabric.Port
}

// isUp reports whether the port is there, named by the configuration, and up.
func (p *port) isUp() bool { return p != nil && p.present && p.Up() && p.leaves.IsZero() }

// blinked reports whether the port, up before and after the event, was down in between: too shortly
// for an event of its own, but its hosts may have seen it and forgotten what they were told.
func (p *port) blinked(ev *fabric.Event) bool {
	return p.present && p.Up() && ev.Port.Up() && p.changes > 0 && ev.Changes > p.changes+1
}

// late reports whether a frame was received before the port lost its carrier, although
// that was told first: it is no evidence of what is behind the port now.
func (p *port) late(at time.Time) bool {
	return !at.IsZero() && at.Before(p.lost) && p.lost.Sub(at) < mostLate
}

// downAt is what the fault of a port says of a host there.
func (p *port) downAt(addr netip.Addr) zone.Down {
	if _, listed := slices.BinarySearchFunc(p.fault.addrs, addr, netip.Addr.Compare); listed {
		return p.fault.down()
	}
	return zone.Down{}
}

// mostLate bounds how late a frame may be taken to be, so that a clock that is set
// back does not make the switch deaf.
const mostLate = time.Second

// forget drops a port that is gone once no host is known behind it any more.
func (c *Core) forget(p *port) {
	if !p.present && !c.restoring && c.table.Count(p.Name) == 0 {
		c.faults.Forget(p.Name)
		c.notify.PortGone(p.Name)
		delete(c.ports, p.Name)
		c.portRow(p)
	}
}

// portFault is the fault record of a port as this device tells it to the others.
//
// While a cause is active every address learned on the port is listed. When the
// last cause has gone, an address stays listed until its host is heard from again
// (only carrier loss makes a host unheard), because "reachable" needs evidence.
type portFault struct {
	active bool
	why    snsd.Reason
	cause  errdown.Cause
	since  time.Time
	addrs  []netip.Addr // sorted
}

// down is what the fault says of a host that it lists.
func (f *portFault) down() zone.Down { return zone.Down{Why: f.why, Since: f.since.Round(0)} }
