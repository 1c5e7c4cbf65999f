package wire

import "slices"

// TellsLoss tells whether the message says of a host that it is gone, or of a port that it
// failed: what others wait for.
func (u *Update) TellsLoss() bool {
	return slices.ContainsFunc(u.Faults, func(r FaultRecord) bool { return r.Op == Put || len(r.Addrs) > 0 }) ||
		slices.ContainsFunc(u.Hosts, func(r HostRecord) bool { return r.Op == Withdraw })
}

// FaultAddrs is how many addresses of a fault weigh as much as a record.
const FaultAddrs = 4

// weight is how much work the record is, in records.
func (f *FaultRecord) weight() int { return 1 + (len(f.Addrs)+len(f.Gone))/FaultAddrs }

// messageWeight is how much work a message is beside its records.
const messageWeight = 4

// Weight is how much work a message is, in records; at least 1.
func Weight(m Message) int {
	switch m := m.(type) {
	case *Update:
		n := messageWeight + len(m.Zones) + len(m.Hosts)
		for i := range m.Faults {
			n += m.Faults[i].weight()
		}
		return n
	case *EndOfSync: // all that its device has said is looked at
		return 16
	case *PathKeys:
		return 1 + len(m.Asked) + len(m.Keys)
	case *Bound: // every host is held against it
		return 16 + len(m.Prefixes) + len(m.NQNs)
	}
	return 1
}

// Cut divides a message into one of about so many records and the rest, nil if there is
// none. The order is that of a batch: hosts that go, faults, hosts that come, so that
// between two of them no host looks reachable that is not.
func (u *Update) Cut(records int) (first, rest *Update) {
	if len(u.Hosts)+len(u.Faults) <= records && Weight(u) <= records+messageWeight {
		return u, nil
	}
	head, tail := *u, *u
	head.Hosts, head.Faults = nil, nil
	tail.Settings, tail.Zones, tail.Anew = nil, nil, false
	slices.SortStableFunc(tail.Hosts, func(a, b HostRecord) int { return int(b.Op) - int(a.Op) })
	gone := 0
	for gone < len(tail.Hosts) && tail.Hosts[gone].Op == Withdraw {
		gone++
	}
	n := min(gone, records)
	head.Hosts, tail.Hosts = tail.Hosts[:n:n], tail.Hosts[n:]
	records -= n
	n = 0
	for n < len(tail.Faults) && records > 0 && gone == len(head.Hosts) {
		records -= tail.Faults[n].weight()
		n++
	}
	head.Faults, tail.Faults = tail.Faults[:n:n], tail.Faults[n:]
	if len(tail.Faults) == 0 && gone == len(head.Hosts) && records > 0 {
		n = min(len(tail.Hosts), records)
		head.Hosts, tail.Hosts = append(head.Hosts, tail.Hosts[:n]...), tail.Hosts[n:]
	}
	if len(tail.Hosts)+len(tail.Faults) == 0 {
		return u, nil
	}
	return &head, &tail
}
