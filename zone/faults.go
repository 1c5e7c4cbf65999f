package zone

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/snsd"
)

// SetFault replaces the fault of one access port: the attachments of addrs there
// cannot be reached, for the reason why. No addrs, or reason 0, clears it. A fault
// may name addresses that are not known yet; it holds for them once they are.
func (d *Directory) SetFault(device netip.Addr, port string, addrs []netip.Addr, why snsd.Reason) Changes {
	device = device.Unmap()
	if !isDevice(device) || !isPortName(port) {
		d.counters.FaultsRejected++
		return nil
	}
	now := &fault{why: why}
	if why != snsd.ReasonNone {
		now.addrs = make([]netip.Addr, len(addrs))
		for i, a := range addrs {
			now.addrs[i] = a.Unmap()
		}
		now.addrs = sortUnique(now.addrs, netip.Addr.Compare)
	}
	key := portKey{device, port}
	was := d.faults[key]
	if was == nil {
		was = &fault{}
	}
	if len(now.addrs) > 0 {
		d.faults[key] = now
	} else {
		delete(d.faults, key)
	}
	// Of a fault that stays what it is only those who join or leave it are looked at.
	same := was.why == now.why
	eachOf(was.addrs, now.addrs, func(a netip.Addr, both bool) {
		if !both || !same {
			d.refault(a, device, port)
		}
	})
	return d.commit(snsd.ReasonNone)
}

// eachOf goes through the addresses of two sorted lists, each once.
func eachOf(a, b []netip.Addr, f func(addr netip.Addr, both bool)) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Less(b[0]):
			f(a[0], false)
			a = a[1:]
		case len(a) == 0 || b[0].Less(a[0]):
			f(b[0], false)
			b = b[1:]
		default:
			f(a[0], true)
			a, b = a[1:], b[1:]
		}
	}
}

// refault reads the fault of one attachment anew.
func (d *Directory) refault(addr, device netip.Addr, port string) {
	id, ok := d.byAddr[addr]
	if !ok {
		return
	}
	k := HostKey{Addr: addr, Device: device, Port: port}
	i := d.attachmentAt(id, k)
	if i < 0 {
		return
	}
	if a, f := &d.hosts[id].atts[i], d.faultOf(k); a.fault != f {
		d.touch(id)
		a.fault = f
		d.recontend(id)
		d.restate(id)
	}
}

// SetDeviceFault says that nothing behind a device can be reached from here, for
// the reason why; 0 clears it.
func (d *Directory) SetDeviceFault(device netip.Addr, why snsd.Reason) Changes {
	device = device.Unmap()
	if !isDevice(device) {
		d.counters.FaultsRejected++
		return nil
	}
	v := &d.devs[d.device(device)]
	if v.fault == why {
		return nil
	}
	v.fault = why
	for id := range v.hosts.all() {
		d.touch(id)
		d.restate(id)
	}
	return d.commit(snsd.ReasonNone)
}

// Faults lists the faults by device and port; a device's own comes before those
// of its ports.
func (d *Directory) Faults() []Fault {
	var out []Fault
	for k, f := range d.faults {
		out = append(out, Fault{Device: k.device, Port: k.port, Why: f.why, Addrs: slices.Clone(f.addrs)})
	}
	for i := range d.devs {
		if v := &d.devs[i]; v.fault != snsd.ReasonNone {
			out = append(out, Fault{Device: v.addr, Why: v.fault})
		}
	}
	slices.SortFunc(out, func(a, b Fault) int {
		return cmp.Or(a.Device.Compare(b.Device), strings.Compare(a.Port, b.Port))
	})
	return out
}

// faultOf gives the reason why an attachment's port cannot reach it, 0 for none.
func (d *Directory) faultOf(k HostKey) snsd.Reason {
	f, ok := d.faults[portKey{k.Device, k.Port}]
	if !ok {
		return snsd.ReasonNone
	}
	if _, listed := slices.BinarySearchFunc(f.addrs, k.Addr, netip.Addr.Compare); !listed {
		return snsd.ReasonNone
	}
	return f.why
}

// restate computes the state of a host: active when one attachment of its owner
// can be reached, else inactive for the smallest reason, the most physical one.
func (d *Directory) restate(id uint32) {
	h := &d.hosts[id]
	h.state, h.reason = snsd.Inactive, snsd.ReasonNone
	for i := range h.atts {
		if !d.counts(h, i) {
			continue
		}
		a := &h.atts[i]
		why := worse(a.fault, d.devs[a.dev].fault)
		if why == snsd.ReasonNone {
			h.state, h.reason = snsd.Active, snsd.ReasonNone
			return
		}
		h.reason = worse(h.reason, why)
	}
}

// worse gives the smaller of two reasons that is not 0.
func worse(a, b snsd.Reason) snsd.Reason {
	if a == snsd.ReasonNone || b != snsd.ReasonNone && b < a {
		return b
	}
	return a
}
