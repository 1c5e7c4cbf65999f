package sim

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/snsd"
)

// cable is an access port with the cable in it.
type cable struct {
	w       *world
	dev     *device
	port    string
	index   int
	mac     fabric.MAC
	host    *host // at the other end of the cable, nil: nothing is plugged
	pulled  bool  // a host is there, but the light is out
	carrier bool
	seen    bool   // carrier as the device was told last
	gen     uint64 // of the cable: what was on its way before a change is lost
	up      time.Duration
	down    time.Duration
	taken   time.Duration                // when the process takes the next frame at the earliest
	told    time.Duration                // when it was last told that there is no carrier
	changes int                          // of carrier, as the machine counts them
	known   int                          // of these, as a process was told last; -1: of another boot
	parting map[netip.Addr]time.Duration // good-byes that have not taken effect, and when they came
}

func (l *cable) name() string { return l.dev.name + "/" + l.port }

// part notes a good-bye: it takes effect once no new registration came for lldp.Farewell. Until then
// the switch answers the host, and forgets that with it.
func (l *cable) part(addr netip.Addr) {
	w := l.w
	w.dropped(l.dev, addr)
	if l.parting == nil {
		l.parting = map[netip.Addr]time.Duration{}
	}
	at := w.now
	l.parting[addr] = at
	w.after(lldp.Farewell, func() {
		if l.parting[addr] == at {
			delete(l.parting, addr)
			w.dropped(l.dev, addr)
		}
	})
}

// lostParting notes that the port is down for hosts whose good-bye had not taken effect.
func (l *cable) lostParting() {
	for addr := range l.parting {
		l.w.fate(addr).down = l.w.now
	}
}

// refresh brings the carrier in line with what is plugged, and tells both ends a
// little later.
func (l *cable) refresh() {
	is := l.host != nil && !l.pulled && !l.dev.dark
	if is == l.carrier {
		return
	}
	w := l.w
	l.carrier = is
	l.changes++
	l.gen++
	w.tracef("%s carrier %v", l.name(), is)
	gen := l.gen
	w.after(w.short(5*time.Millisecond), func() {
		if l.gen == gen && l.dev.running {
			l.dev.portEvent(l, fabric.PortChanged)
			l.dev.settle()
		}
	})
	if h := l.host; h != nil {
		h.stir() // its switch may know before it does
		w.after(w.short(5*time.Millisecond), func() {
			if l.gen == gen && h.link == l {
				h.carrier(is)
			}
		})
	}
}

// proved is called at the start of a process: if the port has lost its carrier while none
// ran, its host is told everything again, as after a blink that was seen.
func (l *cable) proved() {
	if l.carrier && l.host != nil && l.changes != l.known {
		l.told = l.w.now
	}
}

// toHost carries a frame of the switch.
func (l *cable) toHost(frame []byte) {
	sent := l.w.now
	l.carry(&l.down, func(h *host) { h.frame(frame, sent) })
}

// toDevice carries a frame of the host. Now and then the process is busy and takes
// it later, behind what the port itself had to tell meanwhile.
func (l *cable) toDevice(f *hostFrame) {
	w := l.w
	l.carry(&l.up, func(*host) {
		arrived := w.now
		if w.rough && w.chance(0.1) {
			l.taken = max(l.taken, w.now+w.short(20*time.Millisecond))
		}
		if l.taken <= w.now {
			l.dev.frame(l, f, arrived)
			return
		}
		l.taken++
		w.at(l.taken, func() { l.dev.frame(l, f, arrived) })
	})
}

// carry delivers something in order after a short while, unless the cable was
// touched meanwhile; now and then not at all, or twice.
func (l *cable) carry(last *time.Duration, arrive func(h *host)) {
	w := l.w
	h := l.host
	if !l.carrier || h == nil || w.chance(w.lossy) {
		return
	}
	gen := l.gen
	for n := 1; n > 0; n-- {
		*last = max(*last, w.now+10*time.Microsecond+w.short(time.Millisecond)) + 1
		w.at(*last, func() {
			if l.gen == gen {
				arrive(h)
			}
		})
		if w.chance(w.lossy / 2) {
			n++
		}
	}
}

// hostFrame is a frame of a host with what the simulator itself read from it.
type hostFrame struct {
	host    *host
	bytes   []byte
	reg     *registration
	queries []netip.Addr
	acks    []snsd.Ack
	answer  bool // to a question who has an address
}

// registration is what a naive reader takes from a host's LLDPDU.
type registration struct {
	key  string // chassis and port id
	mac  fabric.MAC
	ttl  time.Duration
	addr netip.Addr
	svc  snsd.Service
}

func (f *hostFrame) String() string {
	switch {
	case f.reg != nil:
		return fmt.Sprintf("registration of %s by %s, TTL %v", f.reg.addr, f.host.name, f.reg.ttl)
	case len(f.queries) > 0:
		return fmt.Sprintf("zone query for %v by %s", f.queries, f.host.name)
	}
	if f.answer {
		return "answer of " + f.host.name
	}
	return "acks of " + f.host.name
}

// readFrame reads what a host sends. The agent registers its addresses in their
// order, so the n-th registration is that of the n-th address.
func readFrame(h *host, b []byte, nth *int) *hostFrame {
	f := &hostFrame{host: h, bytes: b}
	switch binary.BigEndian.Uint16(b[12:]) {
	case fabric.EtherTypeLLDP:
		r := registration{mac: h.mac, svc: h.svc}
		for p := b[14:]; len(p) >= 2; {
			head := binary.BigEndian.Uint16(p)
			n := int(head & 0x1ff)
			switch v := p[2 : 2+n]; head >> 9 {
			case 1, 2:
				r.key += string(p[:2+n])
			case 3:
				r.ttl = time.Duration(binary.BigEndian.Uint16(v)) * time.Second
			}
			p = p[2+n:]
		}
		if r.ttl > 0 {
			r.addr = h.addrs[*nth]
			*nth++
		}
		f.reg = &r
	case fabric.EtherTypeNTS:
		if p, err := snsd.ParsePacket(b[14:]); err == nil {
			f.queries, f.acks = p.Queries, p.Acks
		}
	}
	return f
}
