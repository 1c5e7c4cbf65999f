package inof

import (
	"fmt"
	"net/netip"
	"slices"
)

const (
	// Updates are merged where at least mergePeers peers get the same mergeMessages
	// or more: otherwise it costs more than it saves.
	mergeMessages = 4
	mergePeers    = 4
	// mergeMost is how many deliveries, messages times receivers, are looked at
	// together: 8 MiB.
	mergeMost = 1 << 20
)

// due is one message for a peer, and the one before it in the list of all such.
type due struct{ msg, before int32 }

// share is what a peer gets of what waits in Peers, whose goroutine it belongs to.
type share struct {
	last int32  // its last message is dues[last-1]; 0: none
	n    int32  // messages
	hash uint64 // of all of them
}

// outbox is one Flush of Peers, or a part of it.
type outbox struct {
	peers   *Peers
	ds      []Delivery
	single  bool       // it is all of one message
	encoded []*Encoded // of ds
	bad     []bool
	errs    []error
}

// encode gives the wire form of a message, nil if it has none.
func (o *outbox) encode(i int) *Encoded {
	if o.encoded == nil {
		o.encoded, o.bad = make([]*Encoded, len(o.ds)), make([]bool, len(o.ds))
	}
	if o.encoded[i] == nil && !o.bad[i] {
		e, err := Encode(o.ds[i].Msg)
		if err != nil {
			o.bad[i] = true
			o.errs = append(o.errs, fmt.Errorf("%v for %d devices: %w", o.ds[i].Msg.Type(), len(o.ds[i].To), err))
		}
		o.encoded[i] = e
	}
	return o.encoded[i]
}

// send hands a message to all its receivers.
func (o *outbox) send(i int) {
	d := &o.ds[i]
	for _, to := range d.To {
		p := o.peers.m[to]
		if p == nil {
			continue
		}
		if n, ok := d.Msg.(*Notification); ok {
			p.Close(n.Code, n.Text)
			continue
		}
		e := o.encode(i)
		if e == nil {
			return
		}
		o.hand(p, e, d.Msg, o.single)
	}
}

// hand queues a message at a session, and starts it if now is true. A session that
// has ended, or is cut by it, tells so by its Down event.
func (o *outbox) hand(p *Peer, e *Encoded, m Message, now bool) {
	if p.c.out.send(e, m, now) == nil && !now {
		o.peers.touched = append(o.peers.touched, p)
	}
}

// cutDeliveries gives the first of some messages, which are not too many, and the rest.
func cutDeliveries(ds []Delivery) (first, rest []Delivery) {
	n := 0
	for i := range ds {
		if n += len(ds[i].To); n > mergeMost && i > 0 {
			return ds[:i], ds[i:]
		}
	}
	return ds, nil
}

// mergeable tells whether there is enough to be merged, and nothing else between.
func (o *outbox) mergeable() bool {
	if len(o.ds) < mergeMessages {
		return false
	}
	most := 0
	for i := range o.ds {
		if _, ok := o.ds[i].Msg.(*Notification); ok {
			return false
		}
		most = max(most, len(o.ds[i].To))
	}
	return most >= mergePeers
}

// merge sorts the receivers by what they get, and gives those who get the same many
// Updates their outcome.
func (o *outbox) merge() {
	var all []*Peer
	dues := o.peers.dues[:0]
	routes := map[*netip.Addr][]*Peer{} // by list of receivers: many messages have the same
	for i := range o.ds {
		if len(o.ds[i].To) == 0 {
			continue
		}
		route := routes[&o.ds[i].To[0]]
		if len(route) != len(o.ds[i].To) {
			route = o.route(o.ds[i].To)
			routes[&o.ds[i].To[0]] = route
		}
		for _, p := range route {
			if p == nil {
				continue
			}
			if p.due.n == 0 {
				all = append(all, p)
				p.due.hash = 14695981039346656037 // FNV-1a, a number at a time
			}
			dues = append(dues, due{int32(i), p.due.last})
			p.due.last, p.due.n = int32(len(dues)), p.due.n+1
			p.due.hash = (p.due.hash ^ uint64(i)) * 1099511628211
		}
	}
	o.peers.dues = dues
	// By the hash first; what has the same hash may still differ.
	groups := map[uint64][][]*Peer{}
	var order []uint64
	for _, p := range all {
		same := groups[p.due.hash]
		if same == nil {
			order = append(order, p.due.hash)
		}
		k := slices.IndexFunc(same, func(g []*Peer) bool { return sameDue(dues, g[0].due, p.due) })
		if k < 0 {
			groups[p.due.hash] = append(same, []*Peer{p})
		} else {
			same[k] = append(same[k], p)
		}
	}
	var list []int32
	for _, h := range order {
		for _, g := range groups[h] {
			list = list[:0]
			for at := g[0].due.last; at != 0; at = dues[at-1].before {
				list = append(list, dues[at-1].msg)
			}
			slices.Reverse(list)
			o.give(g, list)
		}
	}
	for _, p := range all {
		p.due = share{}
	}
	if cap(dues) > 64<<10 {
		o.peers.dues = nil
	}
}

// route gives the sessions of some devices, nil where there is none.
func (o *outbox) route(to []netip.Addr) []*Peer {
	out := make([]*Peer, len(to))
	for i, dev := range to {
		out[i] = o.peers.m[dev]
	}
	return out
}

func sameDue(dues []due, a, b share) bool {
	if a.n != b.n {
		return false
	}
	for x, y := a.last, b.last; x != 0; x, y = dues[x-1].before, dues[y-1].before {
		if dues[x-1].msg != dues[y-1].msg {
			return false
		}
	}
	return true
}

// give hands the same messages to some peers, merged where that pays.
func (o *outbox) give(to []*Peer, list []int32) {
	for len(list) > 0 {
		n := 0 // Updates in a row
		for n < len(list) && o.ds[list[n]].Msg.Type() == TypeUpdate {
			n++
		}
		if n >= mergeMessages && len(to) >= mergePeers {
			o.outcome(to, list[:n])
		} else {
			n = max(n, 1)
			for _, i := range list[:n] {
				if e := o.encode(int(i)); e != nil {
					for _, p := range to {
						o.hand(p, e, o.ds[i].Msg, false)
					}
				}
			}
		}
		list = list[n:]
	}
}

// outcome tells some peers what comes of several Updates.
func (o *outbox) outcome(to []*Peer, list []int32) {
	var c coalescer
	for _, i := range list {
		c.add(o.ds[i].Msg.(*Update))
	}
	for _, u := range c.take() {
		e, err := Encode(u)
		if err != nil {
			o.errs = append(o.errs, fmt.Errorf("%v for %d devices: %w", u.Type(), len(to), err))
			continue
		}
		for _, p := range to {
			o.hand(p, e, u, false)
		}
	}
}
