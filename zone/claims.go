package zone

import (
	"net/netip"

	"github.com/openinof/inof/snsd"
)

// SetMultiPort says which attachments count as one host from now on.
func (d *Directory) SetMultiPort(m MultiPort) Changes {
	if d.multiPort == m {
		return nil
	}
	d.multiPort = m
	for id := range d.order.all() {
		if len(d.hosts[id].atts) > 1 {
			d.recontend(id)
			d.rematch(id)
		}
	}
	return d.commit(snsd.ReasonNone)
}

// SetAway says whether a device is not there: what it claims is dead beside a claim of a
// device that is.
func (d *Directory) SetAway(device netip.Addr, away bool) Changes {
	id, known := d.devID[device.Unmap()]
	if !known && !away || known && d.devs[id].away == away {
		return nil
	}
	v := &d.devs[d.device(device.Unmap())]
	v.away = away
	for id := range v.hosts.all() {
		d.recontend(id)
	}
	return d.commit(snsd.ReasonNone)
}

// Holds reports whether an attachment is of the host that has its address.
func (d *Directory) Holds(k HostKey) bool {
	holds, _ := d.ClaimOf(k)
	return holds
}

// ClaimOf reports whether an attachment is of the host that has its address, and what was
// said of it when it was put.
func (d *Directory) ClaimOf(k HostKey) (holds bool, said Claim) {
	id, ok := d.byAddr[k.Addr.Unmap()]
	if !ok {
		return false, ClaimOpen
	}
	i := d.attachmentAt(id, k)
	if i < 0 {
		return false, ClaimOpen
	}
	return d.counts(&d.hosts[id], i), d.hosts[id].atts[i].claim
}

// Alive reports whether an attachment is on a port without a fault of a device that is there.
func (d *Directory) Alive(k HostKey) bool {
	id, ok := d.byAddr[k.Addr.Unmap()]
	if !ok {
		return false
	}
	i := d.attachmentAt(id, k)
	return i >= 0 && d.alive(&d.hosts[id].atts[i])
}

// Moves counts how often an address has passed from one holder to another since it is known.
func (d *Directory) Moves(addr netip.Addr) uint32 {
	h, ok := d.lookup(addr)
	if !ok {
		return 0
	}
	return h.moves
}
