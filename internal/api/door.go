package api

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
)

// Door is where somebody comes in over a network: a listener of HTTP, gNMI or NETCONF. Who may come
// is known by the gate, which all doors share.
type Door struct {
	*Gate
	// Refused is told of each log-in that fails, at most so many as are answered, and of who may
	// not do what was asked for.
	Refused func(from netip.Addr, why string)
	// Denied is told, to be kept, of somebody known who may not change what they wanted to.
	Denied func(v Visitor, what string, err error)

	letIn, noLogin, notAllowed, tooMany, handshakes, full atomic.Uint64
}

// DoorCounters count who came to a door.
type DoorCounters struct {
	LetIn      uint64 `json:"let_in"`      // requests; of NETCONF: operations
	NoLogin    uint64 `json:"no_login"`    // nothing was shown, or nothing that is known
	NotAllowed uint64 `json:"not_allowed"` // the role may not do that
	TooMany    uint64 `json:"too_many"`    // after five log-ins that failed within a minute
	Handshakes uint64 `json:"handshakes"`  // connections that ended before a request could be read; of NETCONF: before a log-in
	Full       uint64 `json:"full"`        // connections that were closed to make room for others
}

// Counters returns what was counted.
func (d *Door) Counters() DoorCounters {
	return DoorCounters{d.letIn.Load(), d.noLogin.Load(), d.notAllowed.Load(), d.tooMany.Load(), d.handshakes.Load(), d.full.Load()}
}

// Enter lets in who shows something for what takes a role. The errors are those of Gate.Enter and
// ErrRefused.
func (d *Door) Enter(s Shown, need Role, what string) (Visitor, error) {
	v, err := d.Gate.Enter(s)
	if err != nil {
		d.TurnAway(s.From, err)
		return Visitor{}, err
	}
	return v, d.Pass(v, need, what)
}

// Pass lets somebody who is known do what takes a role. The error is ErrRefused.
func (d *Door) Pass(v Visitor, need Role, what string) error {
	err := v.May(need, what)
	if err == nil {
		d.letIn.Add(1)
		return nil
	}
	d.notAllowed.Add(1)
	if d.Refused != nil {
		from, _ := netip.ParseAddr(v.From) // a visitor has one
		d.Refused(from, err.Error())
	}
	if d.Denied != nil {
		d.Denied(v, what, err)
	}
	return err
}

// May refuses what takes a higher role.
func (v Visitor) May(need Role, what string) error {
	if v.Role < need {
		return fmt.Errorf("%w: %s is %s, and %s takes %s", ErrRefused, v.Name, v.Role, what, need)
	}
	return nil
}

// TurnAway counts and tells of a log-in that came to nothing.
func (d *Door) TurnAway(from netip.Addr, err error) {
	switch {
	case errors.Is(err, ErrTooMany):
		d.tooMany.Add(1)
		return
	case errors.Is(err, ErrNobody):
		d.noLogin.Add(1)
	}
	if d.Refused != nil {
		d.Refused(from, err.Error())
	}
}
