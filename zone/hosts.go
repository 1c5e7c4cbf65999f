package zone

import (
	"cmp"
	"net/netip"
	"slices"

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

// holderOf is the claimant that has an address; none when nobody does.
func (d *Directory) holderOf(id uint32) claimant {
	if atts := d.hosts[id].atts; len(atts) > 0 {
		return d.claimantOf(&atts[0])
	}
	return claimant{}
}

// settleHolder follows a change of the attachments of an address.
func (d *Directory) settleHolder(id uint32, had claimant) {
	d.contend(&d.hosts[id], had)
	d.rematch(id)
	d.restate(id)
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

// attachmentOf turns a Host into what is stored of it.
func (d *Directory) attachmentOf(h Host) attachment {
	return attachment{
		dev: d.device(h.Device), down: h.Down, subscribes: h.Subscribes,
		mac: h.MAC, port: h.HostKey.Port, service: h.Service, since: h.Since, claim: h.Claim, doubt: h.Doubt,
	}
}

// hostOf is the inverse.
func (d *Directory) hostOf(addr netip.Addr, a *attachment) Host {
	return Host{
		HostKey: HostKey{Addr: addr, Device: d.devs[a.dev].addr, Port: a.port},
		MAC:     a.mac, Subscribes: a.subscribes, Service: a.service, Since: a.since, Claim: a.claim, Doubt: a.doubt, Down: a.down,
	}
}

// attachmentAt finds the attachment k of a host, -1 when there is none.
func (d *Directory) attachmentAt(id uint32, k HostKey) int {
	dev, ok := d.devID[k.Device]
	if !ok {
		return -1
	}
	return slices.IndexFunc(d.hosts[id].atts, func(a attachment) bool { return a.dev == dev && a.port == k.Port })
}

// intern makes the record of an address; it has no attachment yet.
func (d *Directory) intern(a netip.Addr) uint32 {
	var id uint32
	if n := len(d.freeHosts); n > 0 {
		id = d.freeHosts[n-1]
		d.freeHosts = d.freeHosts[:n-1]
	} else {
		id = uint32(len(d.hosts))
		d.hosts = append(d.hosts, host{})
	}
	d.hosts[id] = host{addr: a}
	d.byAddr[a] = id
	d.order.add(id, d.at)
	return id
}

// forget frees the record of an address that has no attachment left.
func (d *Directory) forget(id uint32) {
	d.order.remove(id, d.at)
	delete(d.byAddr, d.hosts[id].addr)
	d.hosts[id] = host{}
	d.freeHosts = append(d.freeHosts, id)
}

// attach puts an attachment at place i of its address.
func (d *Directory) attach(id uint32, i int, a attachment) {
	h := &d.hosts[id]
	if h.atts == nil {
		h.atts = make([]attachment, 0, 1)
	}
	h.atts = slices.Insert(h.atts, i, a)
	d.attached++
	d.fault(&a, +1)
	d.arrived(a.dev, id)
	d.byPort.add(portKey{d.devs[a.dev].addr, a.port}, id)
	if a.service.NQN != "" {
		d.byNQN.add(a.service.NQN, id)
	}
	for _, z := range h.zones {
		d.count(z, a.dev, 1)
	}
}

func (d *Directory) detach(id uint32, i int) {
	h := &d.hosts[id]
	a := h.atts[i]
	h.atts = slices.Delete(h.atts, i, i+1)
	d.attached--
	d.fault(&a, -1)
	d.byPort.remove(portKey{d.devs[a.dev].addr, a.port}, id)
	if !slices.ContainsFunc(h.atts, func(o attachment) bool { return o.dev == a.dev }) {
		d.departed(a.dev, id)
	}
	if n := a.service.NQN; n != "" && !slices.ContainsFunc(h.atts, func(o attachment) bool { return o.service.NQN == n }) {
		d.byNQN.remove(n, id)
	}
	for _, z := range h.zones {
		d.count(z, a.dev, -1)
	}
}

// rematch finds the zones of a host anew, from its address and the attachments
// of its owner.
func (d *Directory) rematch(id uint32) {
	h := &d.hosts[id]
	ids := d.matching(&d.match, d.scratch[:0], h)
	if !slices.IsSorted(ids) {
		slices.Sort(ids)
	}
	ids = slices.Compact(ids)
	d.scratch = ids
	if len(ids) == 0 && d.autoJoin && !d.barred(id) {
		ids = append(ids, defaultSlot)
	}
	d.setZones(id, ids)
}

// setZones moves a host from the zones it is in to the sorted list want.
func (d *Directory) setZones(id uint32, want []uint32) {
	if slices.Equal(d.hosts[id].zones, want) {
		return
	}
	gone, came := difference(d.hosts[id].zones, want, cmp.Compare[uint32])
	d.touchZones(id)
	h := &d.hosts[id]
	h.zones = append(make([]uint32, 0, len(want)), want...)
	for _, z := range gone {
		d.slots[z].hosts.remove(id, d.at)
	}
	for _, z := range came {
		d.slots[z].hosts.add(id, d.at)
	}
	for i := range h.atts {
		for _, z := range gone {
			d.count(z, h.atts[i].dev, -1)
		}
		for _, z := range came {
			d.count(z, h.atts[i].dev, 1)
		}
	}
}

// isHostAddr refuses what no host can own network-wide. Loopback addresses are
// for the configuration to refuse: a lab has nothing else.
func isHostAddr(a netip.Addr) bool { return Rules{AllowLoopback: true}.CheckAddr(a) == nil }

func isDevice(a netip.Addr) bool { return a.IsValid() && a.Zone() == "" }

func isPortName(s string) bool { return s != "" && len(s) <= fabric.MaxPortName }
