package hardzone

import "time"

// otherZone is the counter of adopted rows: of a zone that only the last process knew.
const otherZone = ^uint32(0)

// Adopt takes over the rows that a dataplane had before this process. They stay as they are
// until their hosts are in the table of hosts: then that counts. What it has not named by
// until is closed: that a host was not heard of since the start does not yet mean that it
// is gone. It is called once, before anything else is.
func (p *Policy) Adopt(hosts []Host, pairs []PairKey, until time.Time) {
	for _, row := range hosts {
		if p.hosts[row.Addr] != nil || p.byNum[row.Number] != nil || row.Number == 0 {
			continue // no dataplane of ours had that
		}
		h := &host{Host: row, shown: true, adopted: true, open: make(map[uint32]uint32)}
		h.Zone = otherZone
		p.hosts[h.Addr], p.byNum[h.Number] = h, h
		p.last = max(p.last, h.Number)
		p.place(h)
	}
	for _, k := range pairs {
		p.last = max(p.last, k.Low, k.High)
		a, b := p.byNum[k.Low], p.byNum[k.High]
		if a == nil || b == nil || a == b {
			p.orphans = append(p.orphans, k)
			continue
		}
		a.open[k.High], b.open[k.Low] = otherZone, otherZone
		p.pairs++
	}
	p.until = until
}
