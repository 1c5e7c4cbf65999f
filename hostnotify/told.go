package hostnotify

import (
	"net/netip"

	"github.com/openinof/inof/snsd"
)

// Told is what a host was told last of a subject, for operators.
type Told struct {
	Subscribes bool // the host registered here; else the rest means nothing
	Usable     bool // there is a port it can be told over
	Said       bool // false: nothing was told, and State and Reason mean nothing
	State      snsd.State
	Reason     snsd.Reason
	Acked      bool
	Waiting    bool // something newer waits to be sent
	Retries    int  // of the notice, while it is under way
}

// Told looks up what a host was told of a subject.
func (n *Notifier) Told(host, subject netip.Addr) Told {
	s := n.subs[host.Unmap()]
	if s == nil {
		return Told{}
	}
	t := Told{Subscribes: true, Usable: s.out != nil}
	p := s.pairs[subject.Unmap()]
	if p == nil {
		return t
	}
	t.Said, t.State, t.Reason = !p.told.none(), p.told.state, p.told.reason
	t.Acked, t.Waiting = p.told.acked, p.waits.class != idle && p.waits.class.isNew()
	if p.flight.on {
		t.Retries = int(p.flight.tries)
	}
	return t
}

// Awaits reports whether an ack answers what is under way to a host on the port. The host alone
// was sent the number.
func (n *Notifier) Awaits(port string, a snsd.Ack) bool {
	s := n.subs[a.Host.Unmap()]
	if s == nil || s.link(n.ports[port]) == nil {
		return false
	}
	p := s.pairs[a.Subject.Unmap()]
	return p != nil && p.flight.on && p.told.seq == a.Seq
}
