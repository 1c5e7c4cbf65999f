package inof

import (
	"errors"
	"net/netip"
)

// Peer is one established session. Its methods are safe for concurrent use.
type Peer struct {
	c      *conn
	device netip.Addr
	due    share
}

// Device is the peer's device id.
func (p *Peer) Device() netip.Addr { return p.device }

// Send hands a message over and never blocks. What waits for a slow peer becomes the
// latest state of each record; a peer for which that is too much still is cut
// and ErrQueueFull returned; ErrClosed when the session has ended.
func (p *Peer) Send(m Message) error {
	if n, ok := m.(*Notification); ok {
		p.Close(n.Code, n.Text)
		return nil
	}
	e, err := Encode(m)
	if err != nil {
		return err
	}
	return p.c.out.send(e, m, true)
}

// SendEncoded is Send for a message that several peers get: encoded once by Encode.
func (p *Peer) SendEncoded(e *Encoded) error { return p.c.out.send(e, nil, true) }

// WhenDrained tells whether nothing waits for the peer. If something does, a PeerDrained
// comes as soon as that has changed, or the Down.
func (p *Peer) WhenDrained() bool { return p.c.out.whenDrained() }

// Close ends the session with a Notification. What waits in the queue is dropped.
func (p *Peer) Close(code Code, text string) {
	p.c.out.shut(&ProtocolError{Code: code, Detail: text})
}

// Info is the session as operators see it.
func (p *Peer) Info() PeerInfo { return p.c.info() }

// Peers routes deliveries to sessions by device id. It belongs to one goroutine.
// The zero value is ready.
type Peers struct {
	m       map[netip.Addr]*Peer
	waiting []Delivery
	touched []*Peer
	dues    []due
}

// Handle keeps the routes: call it with every PeerUp and PeerDown event. It tells
// whether the event concerns the present session of the device. What waits must have
// been flushed before: it is not for a session that comes.
func (ps *Peers) Handle(ev PeerEvent) bool {
	dev := ev.Peer.Device()
	switch ev.Kind {
	case PeerUp:
		if ps.m == nil {
			ps.m = map[netip.Addr]*Peer{}
		}
		ps.m[dev] = ev.Peer
	case PeerDown:
		if ps.m[dev] != ev.Peer {
			return false
		}
		delete(ps.m, dev)
	default:
		return ps.m[dev] == ev.Peer
	}
	return true
}

// Get gives the session of a device, nil if there is none.
func (ps *Peers) Get(dev netip.Addr) *Peer { return ps.m[dev] }

// Deliver hands messages to the sessions of their receivers; those without a session
// are passed over. The error joins those of messages that could not be encoded.
func (ps *Peers) Deliver(ds []Delivery) error {
	ps.Queue(ds)
	return ps.Flush()
}

// Queue lets messages wait for Flush.
func (ps *Peers) Queue(ds []Delivery) { ps.waiting = append(ps.waiting, ds...) }

// Waiting is how many messages wait for Flush.
func (ps *Peers) Waiting() int { return len(ps.waiting) }

// Flush hands what waits to the sessions. Each message is encoded once for all its
// receivers, all for one peer leave in as few writes as possible, and of many
// Updates that many peers get in common only the outcome is told.
func (ps *Peers) Flush() error {
	var errs []error
	for ds := ps.waiting; len(ds) > 0; {
		o := outbox{peers: ps, single: len(ps.waiting) == 1}
		o.ds, ds = cutDeliveries(ds)
		if o.mergeable() {
			o.merge()
		} else {
			for i := range o.ds {
				o.send(i)
			}
		}
		errs = append(errs, o.errs...)
	}
	for i, p := range ps.touched {
		p.c.out.kick()
		ps.touched[i] = nil
	}
	ps.touched = ps.touched[:0]
	clear(ps.waiting)
	if ps.waiting = ps.waiting[:0]; cap(ps.waiting) > 1024 {
		ps.waiting = nil
	}
	return errors.Join(errs...)
}
