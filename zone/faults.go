package zone

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/snsd"
)

// SetDown says of hosts at one access port that they cannot be reached, or can again. Those that
// are not known are passed over: a host is put with the state that it has.
func (d *Directory) SetDown(device netip.Addr, port string, addrs []netip.Addr, down Down) Changes {
	for _, addr := range addrs {
		k := HostKey{Addr: addr.Unmap(), Device: device.Unmap(), Port: port}
		id, ok := d.byAddr[k.Addr]
		if !ok {
			continue
		}
		i := d.attachmentAt(id, k)
		if i < 0 || d.hosts[id].atts[i].down.Same(down) {
			continue
		}
		a := &d.hosts[id].atts[i]
		d.fault(a, -1)
		differs := a.down.Why != down.Why
		a.down = down
		d.fault(a, +1)
		if differs {
			d.touch(id)
			d.recontend(id)
			d.restate(id)
		}
	}
	return d.commit(snsd.ReasonNone)
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

// Faults lists the ports with hosts that are down, once for each reason, by device and port; a
// device's own fault comes before those of its ports.
func (d *Directory) Faults() []Fault {
	var out []Fault
	for k := range d.faulty {
		by := map[snsd.Reason][]netip.Addr{}
		for _, id := range d.byPort.appendTo(nil, k) {
			h := &d.hosts[id]
			if i := d.attachmentAt(id, HostKey{Addr: h.addr, Device: k.device, Port: k.port}); i >= 0 && h.atts[i].down.Is() {
				by[h.atts[i].down.Why] = append(by[h.atts[i].down.Why], h.addr)
			}
		}
		for why, addrs := range by {
			slices.SortFunc(addrs, netip.Addr.Compare)
			out = append(out, Fault{Device: k.device, Port: k.port, Why: why, Addrs: addrs})
		}
	}
	for i := range d.devs {
		if v := &d.devs[i]; v.fault != snsd.ReasonNone {
			out = append(out, Fault{Device: v.addr, Why: v.fault})
		}
	}
	slices.SortFunc(out, func(a, b Fault) int {
		return cmp.Or(a.Device.Compare(b.Device), strings.Compare(a.Port, b.Port), cmp.Compare(a.Why, b.Why))
	})
	return out
}
