package zone

// Says reports whether an attachment is known to say an NQN.
func (d *Directory) Says(k HostKey, nqn string) bool {
	id, ok := d.byAddr[k.Addr.Unmap()]
	if !ok {
		return false
	}
	i := d.attachmentAt(id, k)
	return i >= 0 && d.hosts[id].atts[i].service.NQN == nqn
}

// OtherByNQN gives another known machine, by its MAC address, that says the NQN of h. Ports
// and planes of one host are such too. Of more than 64 addresses that say it, it looks at 64.
func (d *Directory) OtherByNQN(h Host) (Host, bool) {
	if h.NQN == "" {
		return Host{}, false
	}
	var one [1]uint32
	ids := d.byNQN.view(h.NQN, &one)
	for _, id := range ids[:min(len(ids), mostAlike)] {
		o := &d.hosts[id]
		for i := range o.atts {
			if a := &o.atts[i]; a.service.NQN == h.NQN && a.mac != h.MAC {
				return d.hostOf(o.addr, a), true
			}
		}
	}
	return Host{}, false
}

// BoundElsewhere reports whether zones bind the NQN of h to places, of which h is at none.
func (d *Directory) BoundElsewhere(h Host) bool {
	if d.match.bound.names[h.NQN] == 0 {
		return false
	}
	return len(d.match.bound.appendTo(nil, h.NQN, h.Addr.Unmap(), portKey{h.Device.Unmap(), h.HostKey.Port})) == 0
}
