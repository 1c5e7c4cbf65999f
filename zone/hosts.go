package zone

import (
	"cmp"
	"net/netip"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// PutHost makes an attachment known, or replaces what was known about it. Whose the
// address is says the rule in holder.go; all attachments of that host count.
func (d *Directory) PutHost(h Host) Changes {
	h.Addr, h.Device = h.Addr.Unmap(), h.Device.Unmap()
	if !isHostAddr(h.Addr) || !isDevice(h.Device) || !isPortName(h.HostKey.Port) {
		d.counters.HostsRejected++
		return nil
	}
	id, known := d.byAddr[h.Addr]
	if known {
		if i := d.attachmentAt(id, h.HostKey); i >= 0 {
			return d.replaceAttachment(id, i, h)
		}
		if len(d.hosts[id].atts) >= d.limits.PerAddress {
			d.counters.HostsOverLimit++
			return nil
		}
	}
	if d.attached >= d.limits.Attachments {
		d.counters.HostsOverLimit++
		return nil
	}
	if !known {
		id = d.intern(h.Addr)
	}
	d.touch(id)
	had := d.holderOf(id)
	a := d.attachmentOf(h)
	d.arrivals++
	a.order = d.arrivals
	d.attach(id, len(d.hosts[id].atts), a)
	if had.known && d.claimantOf(&a) != had {
		d.counters.Conflicts++
	}
	d.settleHolder(id, had)
	return d.commit(snsd.ReasonNone)
}

// replaceAttachment is PutHost for an attachment that is known already; most
// often nothing is new. Another machine (MAC address) on the port is a new claim.
func (d *Directory) replaceAttachment(id uint32, i int, h Host) Changes {
	now, was, at := d.attachmentOf(h), d.hosts[id].atts[i], i
	now.order = was.order
	if now == was {
		return nil
	}
	d.touch(id)
	if now.mac == was.mac && now.claim == was.claim && now.doubt == was.doubt && now.service.NQN == was.service.NQN && now.down.Why == was.down.Why {
		d.fault(&was, -1)
		d.fault(&now, +1)
		d.hosts[id].atts[i] = now // neither the holder nor the zones can differ
		return d.commit(snsd.ReasonNone)
	}
	had := d.holderOf(id)
	d.detach(id, i)
	if now.mac != was.mac {
		d.arrivals++
		now.order, at = d.arrivals, len(d.hosts[id].atts)
	}
	d.attach(id, at, now)
	d.settleHolder(id, had)
	return d.commit(snsd.ReasonNone)
}

// RemoveHost withdraws one attachment. When it was the last of its address, the
// address is gone for the reason why (0 is taken as aged out).
func (d *Directory) RemoveHost(k HostKey, why snsd.Reason) Changes {
	k.Addr, k.Device = k.Addr.Unmap(), k.Device.Unmap()
	id, ok := d.byAddr[k.Addr]
	if !ok {
		return nil
	}
	i := d.attachmentAt(id, k)
	if i < 0 {
		return nil
	}
	d.touch(id)
	if len(d.hosts[id].atts) == 1 {
		d.setZones(id, nil)
		d.detach(id, i)
	} else {
		had := d.holderOf(id)
		d.detach(id, i)
		d.settleHolder(id, had)
	}
	return d.commit(cmp.Or(why, snsd.ReasonAgedOut))
}

// isHostAddr refuses what no host can own network-wide. Loopback addresses are
// for the configuration to refuse: a lab has nothing else.
func isHostAddr(a netip.Addr) bool { return Rules{AllowLoopback: true}.CheckAddr(a) == nil }

func isDevice(a netip.Addr) bool { return a.IsValid() && a.Zone() == "" }

func isPortName(s string) bool { return s != "" && len(s) <= fabric.MaxPortName }
