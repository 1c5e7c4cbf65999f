package reflector

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/inof/wire"
)

// takeDown takes what a device says of hosts of its own at one port: that they cannot be reached,
// or can again. Those that are not known here take no room: they are put with their state. An
// address with another claim may pass to that.
func (r *Reflector) takeDown(t *change, d *device, rec *wire.DownRecord) {
	for _, addr := range rec.Addrs {
		e := r.interest.at(addr)
		i, found := findAtt(e.atts, rec.Key(addr))
		if !found || e.atts[i].Down.Same(rec.Down) && !t.repeat {
			continue
		}
		r.touch(t, addr)
		e.atts = slices.Clone(e.atts)
		e.atts[i].Down = rec.Down
		r.interest.put(addr, e)
	}
	r.touchContested(t, r.dir.SetDown(d.id, rec.Port, rec.Addrs, rec.Down))
}

// tellDown lets a device hear whether a host that it knows is down now, if that is new to it.
func (w *watched) tellDown(r *Reflector, t *change, dev netip.Addr, i int) {
	h := &w.now.atts[i]
	if j, was := findAtt(w.old.atts, h.HostKey); was && !h.Down.Same(w.old.atts[j].Down) {
		r.plan(t, dev, t.number(&w.downs[i], news{feedKey: feedKey{keyDown, h.HostKey}, gone: !h.Down.Is()}))
	}
}
