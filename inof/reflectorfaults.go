package inof

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func (r *Reflector) takeFault(t *change, d *device, f *FaultRecord) {
	t.touchFault(d, f.Port)
	if f.Op == Withdraw {
		delete(d.faults, f.Port)
	} else {
		rec := *f
		rec.Addrs = slices.Clone(f.Addrs)
		slices.SortFunc(rec.Addrs, netip.Addr.Compare)
		rec.Addrs = slices.Compact(rec.Addrs)
		if d.faults == nil {
			d.faults = map[string]*faultEntry{}
		}
		d.faults[f.Port] = &faultEntry{rec: rec, gen: d.gen}
	}
	r.noteFault(d, f.Port)
}

// unfault takes a host that its device has said since it forgot what it knew out of a
// fault that it has not: it hears the host.
func (r *Reflector) unfault(t *change, d *device, k zone.HostKey) {
	e := d.faults[k.Port]
	if e == nil || e.gen >= d.forgot {
		return
	}
	i, listed := slices.BinarySearchFunc(e.rec.Addrs, k.Addr, netip.Addr.Compare)
	if !listed {
		return
	}
	t.touchFault(d, k.Port)
	if len(e.rec.Addrs) == 1 {
		delete(d.faults, k.Port)
	} else {
		rest := *e
		rest.rec.Addrs = slices.Delete(slices.Clone(e.rec.Addrs), i, i+1)
		d.faults[k.Port] = &rest
	}
	r.noteFault(d, k.Port)
}

// noteFault keeps the Directory, which only answers questions, in step.
func (r *Reflector) noteFault(d *device, port string) {
	if e := d.faults[port]; e != nil {
		r.dir.SetFault(d.id, port, e.rec.Addrs, e.rec.Why)
	} else {
		r.dir.SetFault(d.id, port, nil, snsd.ReasonNone)
	}
}
