package zone

// Names tells whether a configured zone has a host as a member, or would have it if the
// host were known: by what h says, and by what is known of its address. The default
// zone does not count.
func (d *Directory) Names(h Host) bool {
	addr := h.Addr.Unmap()
	if id, known := d.byAddr[addr]; known {
		if zs := d.hosts[id].zones; len(zs) > 0 && zs[len(zs)-1] != defaultSlot {
			return true
		}
	}
	ids := d.match.addrs.appendTo(d.scratch[:0], addr)
	ids = d.match.spans.appendTo(ids, addr)
	if h.NQN != "" {
		ids = d.match.nqns.appendTo(ids, h.NQN)
	}
	ids = d.match.ports.appendTo(ids, portKey{h.Device.Unmap(), h.HostKey.Port})
	d.scratch = ids
	return len(ids) > 0
}
