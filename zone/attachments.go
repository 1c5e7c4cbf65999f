package zone

import (
	"net/netip"
	"slices"
)

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

// holderOf is the claimant that has an address; none when nobody does.
func (d *Directory) holderOf(id uint32) claimant {
	if atts := d.hosts[id].atts; len(atts) > 0 {
		return d.claimantOf(&atts[0])
	}
	return claimant{}
}

// fault counts an attachment that is down at its port.
func (d *Directory) fault(a *attachment, by int) {
	if !a.down.Is() {
		return
	}
	k := portKey{d.devs[a.dev].addr, a.port}
	if d.faulty[k] += by; d.faulty[k] == 0 {
		delete(d.faulty, k)
	}
}
