package hardzone

import (
	"net/netip"
	"slices"
	"time"
)

// Told is what is known of a host's notice about a host that it is to leave.
type Told uint8

// The values of Told.
const (
	NotTold Told = iota // nobody tells it, or nothing is to be told
	Waiting             // its ack is out
	Acked
)

// maxSettle is how many pairs one Settle looks at, so that no fault waits for it.
const maxSettle = 1024

// Settle closes those of the pairs that are to be closed whose notices are acked by all hosts
// here that are told; told says it of a host here and the other one. The next Work has the steps.
func (p *Policy) Settle(told func(host, subject netip.Addr) Told, now time.Time) {
	looked := 0
	for k := range p.closing { // in another order each time
		if looked++; looked > maxSettle {
			return
		}
		acked, waiting := false, false
		for _, ends := range [2][2]*host{{p.byNum[k.Low], p.byNum[k.High]}, {p.byNum[k.High], p.byNum[k.Low]}} {
			if len(ends[0].Ports) == 0 {
				continue
			}
			switch told(ends[0].Addr, ends[1].Addr) {
			case Acked:
				acked = true
			case Waiting:
				waiting = true
			}
		}
		if acked && !waiting {
			p.closeAt(k, now)
		}
	}
}

// CloseNow has the next Work close all that waits to be closed.
func (p *Policy) CloseNow(now time.Time) {
	for k := range p.closing {
		p.closeAt(k, now)
	}
}

// Verdict is what the rows say of two hosts.
type Verdict struct {
	A, B    *Host     // their rows; nil: an address has none
	Open    bool      // the pair has a row
	Closing time.Time // when it is closed at the latest; zero: it is not being closed
	NoRoom  bool      // permitted, and there is no room for its row
}

// Between gives the rows of two hosts.
func (p *Policy) Between(a, b netip.Addr) (v Verdict) {
	x, y := p.hosts[a.Unmap()], p.hosts[b.Unmap()]
	for _, end := range [...]struct {
		h   *host
		row **Host
	}{{x, &v.A}, {y, &v.B}} {
		if end.h != nil && end.h.shown {
			row := end.h.row()
			*end.row = &row
		}
	}
	if x == nil || y == nil {
		return v
	}
	k := KeyOf(x.Number, y.Number)
	_, v.Open = x.open[y.Number]
	v.Closing, v.NoRoom = p.closing[k], p.refused[k]
	return v
}

// State is how many rows there are, and what is not as it should be.
type State struct {
	Hosts, Local, Pairs int
	Closing             int // pairs that wait for an ack, or for their time
	NoRoom              int // pairs that are permitted, and have no row for want of room
	Noted               int // addresses that are to be looked at
	Adopted             int // hosts of before the start that nobody has named yet
}

// State gives the numbers.
func (p *Policy) State() State {
	s := State{Hosts: len(p.hosts), Local: len(p.local), Pairs: p.pairs, Closing: len(p.closing), NoRoom: len(p.refused), Noted: len(p.queue)}
	if !p.until.IsZero() {
		for _, h := range p.hosts {
			if h.adopted {
				s.Adopted++
			}
		}
	}
	return s
}

// Zones gives the names of the zones by their counters; [0] stands for all others.
func (p *Policy) Zones() []string { return slices.Clone(p.zones.names) }
