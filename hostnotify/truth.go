package hostnotify

import (
	"net/netip"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

var active = verdict{said: true, state: snsd.Active}

func inactive(r snsd.Reason) verdict { return verdict{said: true, state: snsd.Inactive, reason: r} }

// keepAlive reports whether the host agent answers this reason by keep-alive commands
// only, leaving the controller in place.
func keepAlive(r snsd.Reason) bool { return !r.Disconnects() }

// escalates reports whether a host that was told inactive for the reason was must be
// told is as well (see the package comment).
func escalates(was, is snsd.Reason) bool {
	return keepAlive(was) && (is == snsd.ReasonZoneChanged || is == snsd.ReasonIPChanged)
}

// view is what the Directory says about a subject.
type view struct {
	addr   netip.Addr
	known  bool
	state  snsd.State
	reason snsd.Reason
	device netip.Addr // where it is attached
	mac    fabric.MAC
	svc    snsd.Service
	moves  uint32
}

func (n *Notifier) look(addr netip.Addr) view {
	h, ok := n.dir.Host(addr)
	if !ok {
		return view{addr: addr}
	}
	v := view{addr: addr, known: true, device: h.Device, mac: h.MAC, svc: h.Service, moves: n.dir.Moves(addr)}
	v.state, v.reason = n.dir.State(addr)
	return v
}

// own reports whether the address belongs to the subscriber's own machine.
func (v *view) own(s *subscriber) bool {
	return v.addr == s.addr || (v.known && v.mac == s.mac && !v.mac.IsZero())
}

// concerns reports whether a host is to be told of a subject that shares a zone with it:
// not of one of its own role, since neither connects to the other.
func (n *Notifier) concerns(s *subscriber, v *view) bool {
	return n.cfg.AllRoles || s.role.Meets(v.svc.Role)
}

// removes reports whether the host agent removes the controller for what it was told.
func removes(v verdict) bool { return v.said && v.state == snsd.Inactive && v.reason.Disconnects() }

// truth is what is true between one host and one subject.
type truth struct {
	// open: it is not known yet, since the subject may not have been learned. What is decided
	// stays.
	open bool
	verdict
	fence snsd.Fence // of a fault
	// over: the subject is gone or shares no zone any more: nothing follows the verdict.
	over bool
}

func gone(why snsd.Reason) truth { return truth{verdict: inactive(why), over: true} }

// truth finds it; share: the two share a zone.
func (n *Notifier) truth(s *subscriber, subj *subject, v *view, share bool) truth {
	switch {
	case !share && (s.early || s.isAwaited()): // its peers may have been taken from here meanwhile
		return truth{open: true}
	case !v.known && subj.why != snsd.ReasonNone:
		return gone(subj.why)
	case n.recall && v.known && (v.state == snsd.Active || v.own(s) || !n.concerns(s, v)):
		return truth{open: true} // of before the start: only a fault that is seen now is a loss
	case v.known && v.own(s):
		return gone(snsd.ReasonIPChanged)
	case !share && (!n.synced || !n.dir.Known(s.addr)):
		return truth{open: true} // a host that is itself not there is about to be unsubscribed
	case !v.known:
		return gone(snsd.ReasonAgedOut)
	case !share:
		return gone(snsd.ReasonZoneChanged)
	case !n.concerns(s, v):
		return gone(snsd.ReasonIPChanged)
	case s.leaving():
		return truth{verdict: inactive(snsd.ReasonAgedOut)}
	}
	fence, blocked := n.between(s, v.addr)
	switch {
	case v.state != snsd.Active:
		return truth{verdict: inactive(v.reason), fence: fence}
	case blocked:
		return truth{verdict: inactive(snsd.ReasonBFDDown), fence: fence}
	}
	return truth{verdict: active}
}
