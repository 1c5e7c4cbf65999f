package reflector

import (
	"net/netip"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// takeFault takes what a device says of one of its ports.
func (r *Reflector) takeFault(t *change, d *device, f *wire.FaultRecord) {
	t.touchFault(d, f.Port)
	if f.Op == wire.Withdraw {
		delete(d.faults, f.Port)
	} else {
		if d.faults == nil {
			d.faults = map[string]*faultEntry{}
		}
		d.faults[f.Port] = &faultEntry{rec: *f, gen: d.gen}
	}
	r.noteFault(t, d, f.Port)
}

// faultAfter gives what the fault of a device's port is after a record, as a whole.
func (d *device) faultAfter(f *wire.FaultRecord) wire.FaultRecord {
	var said wire.FaultRecord
	if e := d.faults[f.Port]; e != nil {
		said = e.rec
	}
	return said.Then(*f)
}

// unfault takes a host that its device has said since it forgot what it knew out of a
// fault that it has not: it hears the host.
func (r *Reflector) unfault(t *change, d *device, k zone.HostKey) {
	e := d.faults[k.Port]
	if e == nil || e.gen >= d.forgot {
		return
	}
	if !e.rec.Lists(k.Addr) {
		return
	}
	t.touchFault(d, k.Port)
	if len(e.rec.Addrs) == 1 {
		delete(d.faults, k.Port)
	} else {
		rest := *e
		rest.rec.Addrs = wire.Less(e.rec.Addrs, []netip.Addr{k.Addr})
		d.faults[k.Port] = &rest
	}
	r.noteFault(t, d, k.Port)
}

// noteFault keeps the Directory in step. An address with another claim may pass to that.
func (r *Reflector) noteFault(t *change, d *device, port string) {
	var addrs []netip.Addr
	why := snsd.ReasonNone
	if e := d.faults[port]; e != nil {
		addrs, why = e.rec.Addrs, e.rec.Why
	}
	r.touchContested(t, r.dir.SetFault(d.id, port, addrs, why))
}

// faultFits tells whether a device may have one more port with a fault.
func (d *device) faultFits(f *wire.FaultRecord) error {
	if f.Op != wire.Put || d.faults[f.Port] != nil || len(d.faults) < wire.MaxFaultPorts {
		return nil
	}
	return &wire.LimitError{What: "ports with a fault", Key: "fault of port " + f.Port, Limit: wire.MaxFaultPorts}
}
