package reflector

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// A host is down because its port has a fault that lists it. What a change of hosts, zones
// or faults means is worked out host by host, for those that it touches: a port with
// thousands of hosts costs no more than one with a few.

// faultOf is the present fault of a port, nil if it has none.
func (r *Reflector) faultOf(pk wire.PortKey) *wire.FaultRecord {
	if d := r.devices[pk.Device]; d != nil {
		if e := d.faults[pk.Port]; e != nil {
			return &e.rec
		}
	}
	return nil
}

// faultWas is the fault of a port before the change.
func (r *Reflector) faultWas(t *change, pk wire.PortKey) *wire.FaultRecord {
	if f, touched := t.faults[pk]; touched {
		return f
	}
	return r.faultOf(pk)
}

// anew tells whether a fault is to be told as a whole: it is new, over, or another one.
func (t *change) anew(pk wire.PortKey, before, now *wire.FaultRecord) bool {
	if before == nil || now == nil || before.Why != now.Why || !before.Since.Equal(now.Since) {
		return true
	}
	_, touched := t.faults[pk]
	return touched && t.repeat
}

// listFaults works out which addresses of the faults that changed may look different.
func (r *Reflector) listFaults(t *change) {
	t.listed = make(map[wire.PortKey][]netip.Addr, len(t.faults))
	for pk, before := range t.faults {
		now := r.faultOf(pk)
		switch {
		case before == nil && now == nil:
		case before == nil:
			t.listed[pk] = now.Addrs
		case now == nil:
			t.listed[pk] = before.Addrs
		case t.anew(pk, before, now):
			t.listed[pk] = wire.Union(before.Addrs, now.Addrs)
		default:
			t.listed[pk] = wire.Union(wire.Less(before.Addrs, now.Addrs), wire.Less(now.Addrs, before.Addrs))
		}
	}
}

// tellDown works out whether a device sees the address at a port fail in another way than
// before the change.
func (w *watched) tellDown(r *Reflector, t *change, dev netip.Addr, pk wire.PortKey, knew, knows bool) {
	before, now := r.faultWas(t, pk), r.faultOf(pk)
	was := knew && before != nil && before.Lists(w.addr) && w.old.hasAtt(w.addr, pk.Device, pk.Port)
	is := knows && now != nil && now.Lists(w.addr) && w.now.hasAtt(w.addr, pk.Device, pk.Port)
	anew := t.anew(pk, before, now)
	if was == is && !(is && anew) {
		return
	}
	// Each host has news of its own, whatever is told of the port: who sees others of its
	// hosts sees another fault.
	n := news{feedKey: feedKey{keyDown, zone.HostKey{Addr: w.addr, Device: pk.Device, Port: pk.Port}}, gone: !is}
	if anew {
		n.kind = keyPort
	}
	num := t.downs[n]
	r.plan(t, dev, t.number(&num, n))
	if t.downs == nil {
		t.downs = map[news]uint32{}
	}
	t.downs[n] = num
}

// planFaults tells the devices of hosts that fail, or fail no more.
func (r *Reflector) planFaults(t *change) {
	var devs []netip.Addr
	for _, pk := range slices.SortedFunc(maps.Keys(t.listed), comparePorts) {
		for _, addr := range t.listed[pk] {
			w := watched{addr: addr, old: r.was(t, addr), now: r.interest.addrs[addr]}
			devs = r.audience(t, devs, addr)
			for _, dev := range devs {
				if d := r.devices[dev]; d != nil && d.follows() && dev != pk.Device {
					w.tellDown(r, t, dev, pk, r.knew(t, dev, addr), r.interest.knows(dev, addr))
				}
			}
		}
	}
}

func comparePorts(a, b wire.PortKey) int {
	return cmp.Or(a.Device.Compare(b.Device), strings.Compare(a.Port, b.Port))
}
