package inof

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/zone"
)

// A host is down because its port has a fault that lists it. What a change of hosts, zones
// or faults means is worked out host by host, for those that it touches: a port with
// thousands of hosts costs no more than one with a few.

// faultOf is the present fault of a port, nil if it has none.
func (r *Reflector) faultOf(pk portKey) *FaultRecord {
	if d := r.devices[pk.device]; d != nil {
		if e := d.faults[pk.port]; e != nil {
			return &e.rec
		}
	}
	return nil
}

// faultWas is the fault of a port before the change.
func (r *Reflector) faultWas(t *change, pk portKey) *FaultRecord {
	if f, touched := t.faults[pk]; touched {
		return f
	}
	return r.faultOf(pk)
}

// anew tells whether a fault is to be told as a whole: it is new, over, or another one.
func (t *change) anew(pk portKey, before, now *FaultRecord) bool {
	if before == nil || now == nil || before.Why != now.Why || !before.Since.Equal(now.Since) {
		return true
	}
	_, touched := t.faults[pk]
	return touched && t.repeat
}

// listFaults works out which addresses of the faults that changed may look different.
func (r *Reflector) listFaults(t *change) {
	t.listed = make(map[portKey][]netip.Addr, len(t.faults))
	for pk, before := range t.faults {
		now := r.faultOf(pk)
		switch {
		case before == nil && now == nil:
		case before == nil:
			t.listed[pk] = now.Addrs
		case now == nil:
			t.listed[pk] = before.Addrs
		case t.anew(pk, before, now):
			t.listed[pk] = union(before.Addrs, now.Addrs)
		default:
			t.listed[pk] = union(less(before.Addrs, now.Addrs), less(now.Addrs, before.Addrs))
		}
	}
}

// tellDown works out whether a device sees the address at a port fail in another way than
// before the change.
func (w *watched) tellDown(r *Reflector, t *change, dev netip.Addr, pk portKey, knew, knows bool) {
	before, now := r.faultWas(t, pk), r.faultOf(pk)
	was := knew && before != nil && before.lists(w.addr) && w.old.hasAtt(w.addr, pk.device, pk.port)
	is := knows && now != nil && now.lists(w.addr) && w.now.hasAtt(w.addr, pk.device, pk.port)
	anew := t.anew(pk, before, now)
	if was == is && !(is && anew) {
		return
	}
	// Each host has news of its own, whatever is told of the port: who sees others of its
	// hosts sees another fault.
	n := news{feedKey: feedKey{keyDown, zone.HostKey{Addr: w.addr, Device: pk.device, Port: pk.port}}, gone: !is}
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
				if d := r.devices[dev]; d != nil && d.follows() && dev != pk.device {
					w.tellDown(r, t, dev, pk, r.knew(t, dev, addr), r.interest.knows(dev, addr))
				}
			}
		}
	}
}

func comparePorts(a, b portKey) int {
	return cmp.Or(a.device.Compare(b.device), strings.Compare(a.port, b.port))
}
