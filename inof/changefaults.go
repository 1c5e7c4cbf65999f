package inof

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/snsd"
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
	if was != is || is && t.anew(pk, before, now) {
		t.downs = append(t.downs, down{dev, pk, w.addr, is})
	}
}

// planFaults tells the devices of hosts that fail, or fail no more.
func (r *Reflector) planFaults(t *change) {
	var devs []netip.Addr
	for pk, list := range t.listed {
		for _, addr := range list {
			w := watched{addr: addr, old: r.was(t, addr), now: r.interest.addrs[addr]}
			devs = r.audience(t, devs, addr)
			for _, dev := range devs {
				if d := r.devices[dev]; d != nil && d.follows() && dev != pk.device {
					w.tellDown(r, t, dev, pk, r.knew(t, dev, addr), r.interest.knows(dev, addr))
				}
			}
		}
	}
	slices.SortFunc(t.downs, func(a, b down) int {
		return cmp.Or(a.port.device.Compare(b.port.device), strings.Compare(a.port.port, b.port.port), a.dev.Compare(b.dev), a.addr.Compare(b.addr))
	})
	first := 0 // of the records about the present port
	for at, list := 0, slices.Compact(t.downs); at < len(list); {
		c := list[at]
		if at == 0 || list[at-1].port != c.port {
			first = len(t.records.Faults)
		}
		var joined, left []netip.Addr
		for ; at < len(list) && list[at].port == c.port && list[at].dev == c.dev; at++ {
			if list[at].is {
				joined = append(joined, list[at].addr)
			} else {
				left = append(left, list[at].addr)
			}
		}
		r.planFault(t, c.dev, r.faultRecord(t, c.port, joined, left), first)
	}
}

// faultRecord is what a device is told of a port where it sees some hosts fail, and some
// fail no more.
func (r *Reflector) faultRecord(t *change, pk portKey, joined, left []netip.Addr) FaultRecord {
	before, now := r.faultWas(t, pk), r.faultOf(pk)
	rec := FaultRecord{Op: Withdraw, Device: pk.device, Port: pk.port}
	if now == nil {
		return rec
	}
	switch anew := t.anew(pk, before, now); {
	case anew && len(joined) == 0: // it is not over, it only concerns the device no more
		rec.Why = snsd.ReasonZoneChanged
	case anew:
		rec.Op, rec.Why, rec.Since, rec.Addrs = Put, now.Why, now.Since, joined
	case len(joined) == 0:
		rec.Op, rec.Why, rec.Since, rec.Gone = Change, snsd.ReasonZoneChanged, now.Since, left
	default:
		rec.Op, rec.Why, rec.Since, rec.Addrs, rec.Gone = Change, now.Why, now.Since, joined, left
	}
	return rec
}

// planFault gives a record to a device, the same one to all that see the same.
func (r *Reflector) planFault(t *change, dev netip.Addr, rec FaultRecord, first int) {
	for i := first; i < len(t.records.Faults); i++ {
		if f := &t.records.Faults[i]; f.Op == rec.Op && sameFault(f, &rec) && slices.Equal(f.Gone, rec.Gone) {
			r.plan(t, dev, numFault|uint32(i))
			return
		}
	}
	r.plan(t, dev, numFault|uint32(len(t.records.Faults)))
	t.records.Faults = append(t.records.Faults, rec)
}
