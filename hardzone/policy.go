package hardzone

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/zone"
)

// MaxHostPorts is on how many ports of this switch one address may be: of a bond, say. It may
// not send from the others.
const MaxHostPorts = 8

// Policy is the table of rows of one switch. It follows a zone.Directory: who changes that says
// so by Note, and Work gives the steps. It is not safe for concurrent use.
type Policy struct {
	dir *zone.Directory
	cfg Config

	hosts map[netip.Addr]*host
	byNum map[uint32]*host
	local map[netip.Addr]*host // those of hosts with a port here
	last  uint32               // number of the newest host
	pairs int                  // with a row
	zones slots

	noted   map[netip.Addr]bool
	queue   []netip.Addr          // what is noted, in order
	closing map[PairKey]time.Time // permitted no more, and when they are closed at the latest
	due     time.Time             // of the first of them; zero: there is none
	refused map[PairKey]bool      // permitted, and there is no room for them
	until   time.Time             // when adopted rows go that nobody has named, see Adopt
	orphans []PairKey             // adopted rows of pairs without a host

	steps []Step // of the Work under way
}

// host is an address with a row, or one that has a row before the Work under way is over.
type host struct {
	Host
	shown   bool              // it has a row
	known   bool              // it is in the table of hosts, as of the last look
	adopted bool              // it was found in the dataplane, and has not been in the table of hosts
	open    map[uint32]uint32 // the zones of its rows of pairs, by the number of the other one
}

// New makes the policy of the device whose table of hosts dir is; nothing is noted yet.
func New(dir *zone.Directory, cfg Config) *Policy {
	return &Policy{
		dir: dir, cfg: cfg, hosts: make(map[netip.Addr]*host), byNum: make(map[uint32]*host), local: make(map[netip.Addr]*host),
		zones: newSlots(), noted: make(map[netip.Addr]bool), closing: make(map[PairKey]time.Time), refused: make(map[PairKey]bool),
	}
}

// SetConfig changes how long pairs stay open from now on, and how many there may be.
func (p *Policy) SetConfig(cfg Config) { p.cfg = cfg }

// Note has a Work to come look at an address: its zones, its role or its places may differ.
func (p *Policy) Note(addr netip.Addr) {
	if addr = addr.Unmap(); !p.noted[addr] {
		p.noted[addr] = true
		p.queue = append(p.queue, addr)
	}
}

// NoteAll has Works to come look at all that there is.
func (p *Policy) NoteAll() {
	for a := range p.dir.Addrs() {
		p.Note(a)
	}
	for a := range p.hosts {
		p.Note(a)
	}
}

// Waiting is how many addresses are noted.
func (p *Policy) Waiting() int { return len(p.queue) }

// Work looks at up to limit of the noted addresses and at what is due. The steps that it
// returns are the receiver's.
func (p *Policy) Work(limit int, now time.Time) []Step {
	p.steps = nil
	for n := min(limit, len(p.queue)); n > 0; n-- {
		a := p.queue[0]
		p.queue = p.queue[1:]
		delete(p.noted, a)
		p.look(a, now)
	}
	if len(p.queue) == 0 {
		p.queue = nil
	}
	if !p.until.IsZero() && !now.Before(p.until) {
		p.until = time.Time{}
		for _, h := range p.hosts {
			if h.adopted {
				h.adopted = false
				p.Note(h.Addr)
			}
		}
	}
	p.closeDue(now)
	for _, k := range p.orphans {
		p.steps = append(p.steps, Step{Op: DeletePair, Pair: Pair{Key: k}})
	}
	p.orphans = nil
	p.retryRefused()
	slices.SortStableFunc(p.steps, func(a, b Step) int { return cmp.Compare(a.Op, b.Op) })
	return p.steps
}

// Next is when Work has something to do; zero: after the next Note.
func (p *Policy) Next(now time.Time) time.Time {
	if len(p.queue) > 0 {
		return now
	}
	if p.until.IsZero() || !p.due.IsZero() && p.due.Before(p.until) {
		return p.due
	}
	return p.until
}

// closeDue closes what has waited long enough, or is not to wait.
func (p *Policy) closeDue(now time.Time) {
	if p.due.IsZero() || now.Before(p.due) {
		return
	}
	p.due = time.Time{}
	for k, due := range p.closing {
		switch {
		case !now.Before(due):
			p.close(k)
		case p.due.IsZero() || due.Before(p.due):
			p.due = due
		}
	}
}

// closeAt says when a pair is closed at the latest.
func (p *Policy) closeAt(k PairKey, due time.Time) {
	p.closing[k] = due
	if p.due.IsZero() || due.Before(p.due) {
		p.due = due
	}
}

// NoRoom is how many pairs may talk and have no row for want of room.
func (p *Policy) NoRoom() int { return len(p.refused) }

// Closing is how many pairs wait to be closed.
func (p *Policy) Closing() int { return len(p.closing) }

// look compares the rows of an address with what is true.
func (p *Policy) look(addr netip.Addr, now time.Time) {
	h, known := p.hosts[addr], p.dir.Known(addr)
	switch {
	case h == nil && !known, h != nil && h.adopted && !known:
		return
	case h == nil:
		h = p.intern(addr)
	}
	h.known = known
	if !known { // while its pairs are being closed it is where it was
		p.settle(h, nil, now)
		p.forget(h)
		return
	}
	h.adopted = false
	ports := p.dir.PortsAt(addr, p.dir.Self())
	h.Ports, ports = ports[:min(len(ports), MaxHostPorts)], h.Ports
	p.place(h)
	p.settle(h, p.partners(h), now)
	p.show(h, p.dir.FirstZone(addr), !slices.Equal(ports, h.Ports))
}

// intern makes the record of an address.
func (p *Policy) intern(addr netip.Addr) *host {
	p.last++
	h := &host{Host: Host{Addr: addr, Number: p.last}, open: make(map[uint32]uint32)}
	p.hosts[addr], p.byNum[h.Number] = h, h
	return h
}

// place keeps the list of local hosts.
func (p *Policy) place(h *host) {
	if len(h.Ports) > 0 {
		p.local[h.Addr] = h
	} else {
		delete(p.local, h.Addr)
	}
}

// partners are the hosts that one may talk with, as far as this switch is between them.
func (p *Policy) partners(h *host) (list []netip.Addr) {
	if len(h.Ports) > 0 {
		for o := range p.dir.Peers(h.Addr) {
			list = append(list, o)
		}
	} else {
		for o := range p.local {
			list = append(list, o)
		}
		slices.SortFunc(list, netip.Addr.Compare)
	}
	return slices.DeleteFunc(list, func(o netip.Addr) bool { return !p.dir.MayExchange(h.Addr, o) })
}

// settle opens a host's pairs with its partners, and begins to close its others. What is
// adopted stays as it is.
func (p *Policy) settle(h *host, partners []netip.Addr, now time.Time) {
	wanted := make(map[uint32]bool, len(partners))
	for _, a := range partners {
		o := p.hosts[a]
		if o == nil {
			o = p.intern(a)
			p.Note(a)
		}
		wanted[o.Number] = true
		p.open(h, o)
	}
	for n := range h.open {
		if !wanted[n] && !p.byNum[n].adopted {
			p.beginClose(KeyOf(h.Number, n), now)
		}
	}
	for k := range p.refused {
		if k.Low == h.Number && !wanted[k.High] || k.High == h.Number && !wanted[k.Low] {
			delete(p.refused, k)
		}
	}
}

// open gives a permitted pair a row, if it has none.
func (p *Policy) open(a, b *host) {
	k := KeyOf(a.Number, b.Number)
	delete(p.closing, k)
	was, there := a.open[b.Number]
	if !there && p.pairs >= p.cfg.MaxPairs {
		p.refused[k] = true
		return
	}
	delete(p.refused, k)
	name := p.dir.SharedZone(a.Addr, b.Addr)
	if there && p.zones.is(was, name) {
		return
	}
	slot := p.takeZone(name)
	if there {
		p.zones.drop(was)
	} else {
		p.pairs++
	}
	a.open[b.Number], b.open[a.Number] = slot, slot
	p.steps = append(p.steps, Step{Op: PutPair, Pair: Pair{k, slot}})
}

// beginClose has a pair closed when its notice is acked, or when its time is over.
func (p *Policy) beginClose(k PairKey, now time.Time) {
	if _, closing := p.closing[k]; !closing {
		p.closeAt(k, now.Add(p.cfg.CloseAfter))
	}
}

// close takes the row of a pair away.
func (p *Policy) close(k PairKey) {
	delete(p.closing, k)
	a, b := p.byNum[k.Low], p.byNum[k.High]
	p.zones.drop(a.open[k.High])
	delete(a.open, k.High)
	delete(b.open, k.Low)
	p.pairs--
	p.steps = append(p.steps, Step{Op: DeletePair, Pair: Pair{Key: k}})
	p.forget(a)
	p.forget(b)
}

// show gives a host its row.
func (p *Policy) show(h *host, zoneName string, moved bool) {
	if h.shown && !moved && p.zones.is(h.Zone, zoneName) {
		return
	}
	slot := p.takeZone(zoneName)
	p.zones.drop(h.Zone)
	h.Zone, h.shown = slot, true
	p.steps = append(p.steps, Step{Op: PutHost, Host: h.row()})
}

func (h *host) row() Host {
	row := h.Host
	row.Ports = slices.Clone(h.Ports)
	return row
}

// forget drops a host that is not known any more once its last pair is closed.
func (p *Policy) forget(h *host) {
	if h.known || h.adopted || len(h.open) > 0 {
		return
	}
	delete(p.hosts, h.Addr)
	delete(p.byNum, h.Number)
	delete(p.local, h.Addr)
	if h.shown {
		p.zones.drop(h.Zone)
		p.steps = append(p.steps, Step{Op: DeleteHost, Host: Host{Addr: h.Addr, Number: h.Number}})
	}
}

// retryRefused looks again at hosts whose pairs had no room, when there is some.
func (p *Policy) retryRefused() {
	room := p.cfg.MaxPairs - p.pairs
	for k := range p.refused {
		if room <= 0 {
			return
		}
		room--
		if h := p.byNum[k.Low]; h != nil {
			p.Note(h.Addr)
		}
	}
}

// takeZone gives a zone's counter, a new one when it has none.
func (p *Policy) takeZone(name string) uint32 {
	slot, fresh := p.zones.take(name)
	if fresh {
		p.steps = append(p.steps, Step{Op: ClearZone, Pair: Pair{Zone: slot}})
	}
	return slot
}
