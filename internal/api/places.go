package api

import (
	"context"
	"net/netip"
)

// Places are where a host is, or was, attached: what happens there happens to it.
type Places map[place]bool

// place is a port of a device, of this one when device is empty.
type place struct{ device, port string }

// PlacesOf are the places of attachments.
func PlacesOf(attachments []Host) Places {
	p := Places{}
	for _, h := range attachments {
		at := place{port: h.Port}
		if h.Type != Local {
			at.device = h.Device.String()
		}
		p[at] = true
	}
	return p
}

// Concerns reports whether an event is of a fault, port or path at one of the places.
func (p Places) Concerns(e *Event) bool {
	switch e.Kind {
	case "fault", "port":
		return p[place{e.Device, e.Port}]
	case "path":
		for at := range p {
			if at.device == e.Device && at.device != "" {
				return true
			}
		}
	}
	return false
}

// learn adds the place where an event says that the host is.
func (p Places) learn(e *Event) {
	if e.Kind == "host" && e.Port != "" {
		p[place{e.Device, e.Port}] = true
	}
}

// eventMatch is EventQuery.Match where the query names a host: the faults and paths behind
// its places are asked for too.
func eventMatch(ctx context.Context, src EventSource, q EventQuery) (match func(*Event) bool, learn func(*Event)) {
	addr, err := netip.ParseAddr(q.Addr)
	if err != nil {
		return q.Match, func(*Event) {}
	}
	addr = addr.Unmap()
	q.Addr = addr.String() // as events have it
	hosts, err := src.HostsAt(ctx, addr)
	if err != nil {
		hosts = nil // the events tell, as far as they go back
	}
	places := PlacesOf(hosts)
	rest := q
	rest.Addr = ""
	return func(e *Event) bool { return q.Match(e) || rest.Match(e) && places.Concerns(e) }, func(e *Event) {
		if e.Addr == q.Addr {
			places.learn(e)
		}
	}
}
