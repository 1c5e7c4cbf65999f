package zone

import (
	"net/netip"

	"github.com/openinof/inof/snsd"
)

// HoldDefault keeps an address out of the default zone (on), or lets it in again
// when it is in no configured zone. A client gets only the zones its hosts are
// members of, so of a host that was just learned it cannot know whether it is in
// none: until its reflector has placed the host, it must not share the default zone.
func (d *Directory) HoldDefault(addr netip.Addr, on bool) Changes {
	addr = addr.Unmap()
	if on == d.isHeld(addr) {
		return nil
	}
	if on {
		if d.held == nil {
			d.held = make(map[netip.Addr]struct{})
		}
		d.held[addr] = struct{}{}
	} else {
		delete(d.held, addr)
	}
	if id, known := d.byAddr[addr]; known {
		d.settle(id)
	}
	return d.commit(snsd.ReasonNone)
}

func (d *Directory) isHeld(addr netip.Addr) bool {
	_, held := d.held[addr]
	return held
}
