package wire

import (
	"net/netip"
	"slices"
)

// A list of addresses here is sorted, each once. What is kept of a fault is replaced, never
// changed, so that a copy of it is the state before a change.

// SortedAddrs gives a list from any addresses.
func SortedAddrs(addrs []netip.Addr) []netip.Addr {
	if slices.IsSortedFunc(addrs, netip.Addr.Compare) {
		for i := 1; i < len(addrs); i++ {
			if addrs[i] == addrs[i-1] {
				return slices.Compact(slices.Clone(addrs))
			}
		}
		return addrs
	}
	addrs = slices.Clone(addrs)
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}

// Lists reports whether the fault has the address.
func (f *FaultRecord) Lists(a netip.Addr) bool {
	_, ok := slices.BinarySearchFunc(f.Addrs, a, netip.Addr.Compare)
	return ok
}

// few is how many addresses are looked for one by one.
const few = 4

// Less gives a list less the addresses of another.
func Less(list, by []netip.Addr) []netip.Addr {
	switch {
	case len(by) == 0:
		return list
	case len(by) <= few:
		out := slices.Clone(list)
		for _, a := range by {
			if i, ok := slices.BinarySearchFunc(out, a, netip.Addr.Compare); ok {
				out = slices.Delete(out, i, i+1)
			}
		}
		return out
	}
	var out []netip.Addr
	for _, a := range list {
		for len(by) > 0 && by[0].Less(a) {
			by = by[1:]
		}
		if len(by) == 0 || by[0] != a {
			out = append(out, a)
		}
	}
	return out
}

// Union gives the addresses of both lists.
func Union(a, b []netip.Addr) []netip.Addr {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	case len(b) <= few:
		out := slices.Clone(a)
		for _, addr := range b {
			if i, ok := slices.BinarySearchFunc(out, addr, netip.Addr.Compare); !ok {
				out = slices.Insert(out, i, addr)
			}
		}
		return out
	}
	out := make([]netip.Addr, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].Compare(b[0]); {
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		case c > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// Normal gives the record with lists that are sorted.
func (f FaultRecord) Normal() FaultRecord {
	f.Addrs = SortedAddrs(f.Addrs)
	f.Gone = Less(SortedAddrs(f.Gone), f.Addrs)
	return f
}

// Then gives what comes of a record, which may be that of nothing, when another one about
// the same port follows. Of a Change that leaves no address a Withdraw comes.
func (f *FaultRecord) Then(next FaultRecord) FaultRecord {
	next = next.Normal()
	if next.Op != Change {
		next.Gone = nil
		return next
	}
	out := next
	switch f.Op {
	case Change:
		out.Addrs = Union(Less(f.Addrs, next.Gone), next.Addrs)
		out.Gone = Union(Less(f.Gone, next.Addrs), next.Gone)
		if len(next.Addrs) == 0 && len(out.Addrs) > 0 {
			out.Why, out.Since = f.Why, f.Since
		}
		return out
	case Put:
		out.Addrs = Union(Less(f.Addrs, next.Gone), next.Addrs)
		if len(next.Addrs) == 0 {
			out.Why, out.Since = f.Why, f.Since
		}
	}
	out.Op, out.Gone = Put, nil
	if len(out.Addrs) == 0 {
		out = FaultRecord{Op: Withdraw, Device: next.Device, Port: next.Port, Why: next.Why}
	}
	return out
}

// Difference gives how a fault differs from what was said of it before, as the record to say now;
// ok is false where nothing does. Both are put; a nil one is no fault.
func Difference(before, now *FaultRecord) (rec FaultRecord, ok bool) {
	switch {
	case now == nil && before == nil:
		return rec, false
	case now == nil:
		return FaultRecord{Op: Withdraw, Device: before.Device, Port: before.Port}, true
	case before == nil, before.Why != now.Why, !before.Since.Equal(now.Since):
		rec = *now
		rec.Op, rec.Gone = Put, nil
		return rec, true
	}
	rec = *now
	rec.Op, rec.Addrs, rec.Gone = Change, Less(now.Addrs, before.Addrs), Less(before.Addrs, now.Addrs)
	n := len(rec.Addrs) + len(rec.Gone)
	if n >= len(now.Addrs) { // it is no longer
		rec = *now
		rec.Op, rec.Gone = Put, nil
	}
	return rec, n > 0
}
