package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/openinof/inof/inof/wire"
)

// Peers routes deliveries to sessions by device id. It belongs to one goroutine.
// The zero value is ready.
type Peers struct {
	m       map[netip.Addr]*Peer
	touched []*Peer
	buf     []byte // for a message that one peer gets and nobody keeps; at most 2*maxBatch bytes
}

// Handle keeps the routes: call it with every PeerUp and PeerDown event. It tells
// whether the event concerns the present session of the device.
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

// Deliver hands messages to the sessions of their receivers; those without a session are
// passed over. Each message is encoded once for all its receivers, and all for one peer
// leave in as few writes as possible. The error joins those of messages that could not be
// encoded.
func (ps *Peers) Deliver(ds []wire.Delivery) error {
	var errs []error
	for i := range ds {
		if err := ps.send(&ds[i], len(ds) == 1); err != nil {
			errs = append(errs, fmt.Errorf("%v for %d devices: %w", ds[i].Msg.Type(), len(ds[i].To), err))
		}
	}
	for i, p := range ps.touched {
		p.c.out.kick()
		ps.touched[i] = nil
	}
	ps.touched = ps.touched[:0]
	return errors.Join(errs...)
}

// send queues a message at the sessions of its receivers, and starts it if now is true. A
// session that has ended, or is cut by it, tells so by its Down event.
func (ps *Peers) send(d *wire.Delivery, now bool) error {
	var e, plain *wire.Encoded
	for _, to := range d.To {
		p := ps.m[to]
		if p == nil {
			continue
		}
		if n, ok := d.Msg.(*wire.Notification); ok {
			p.Close(n.Code, n.Text)
			continue
		}
		if without := p.c.sess.Peer().Caps.For(d.Msg); without != d.Msg {
			if plain == nil {
				var err error
				if plain, err = wire.Encode(without); err != nil {
					return err
				}
			}
			if p.c.out.send(plain, without, now) == nil && !now {
				ps.touched = append(ps.touched, p)
			}
			continue
		}
		if d.Form != nil && d.Form.Done != nil {
			return ps.sendOnce(p, d)
		}
		if e == nil {
			var err error
			if e, err = d.Encode(); err != nil {
				return err
			}
		}
		if p.c.out.send(e, d.Msg, now) == nil && !now {
			ps.touched = append(ps.touched, p)
		}
	}
	return nil
}

// sendOnce sends what is for one peer alone. Where the socket takes it at once, as that of a peer
// does which asks for it a message at a time, its memory serves the next such message.
func (ps *Peers) sendOnce(p *Peer, d *wire.Delivery) error {
	e, err := d.EncodeOnce(ps.buf)
	if err != nil {
		return err
	}
	ps.buf = nil
	if p.c.out.send(e, d.Msg, true) == nil && p.c.out.sealed() {
		if b := e.Body(); cap(b) <= 2*maxBatch {
			ps.buf = b
		}
		d.Form.Done()
	}
	return nil
}

// Devices are those with a session, in no order.
func (ps *Peers) Devices() (list []netip.Addr) {
	for dev := range ps.m {
		list = append(list, dev)
	}
	return list
}
