package wire

import "slices"

// TellsLoss reports whether the message says of a host that it is gone, or that
// it cannot be reached: what others wait for.
func (u *Update) TellsLoss() bool {
	return u.LosesHost() || slices.ContainsFunc(u.Downs, func(r DownRecord) bool { return r.Is() })
}

// LosesHost reports whether it says so of a host by itself, not of a port.
func (u *Update) LosesHost() bool {
	return slices.ContainsFunc(u.Hosts, func(r HostRecord) bool { return r.Op == Withdraw || r.Host.Down.Is() })
}

// messageWeight is how much work a message is beside its records.
const messageWeight = 4

// Weight is how much work a message is, in records; at least 1.
func Weight(m Message) int {
	switch m := m.(type) {
	case *Update:
		n := messageWeight
		for i := range kinds {
			n += kinds[i].weight(m)
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

// Order puts the hosts that go before those that come, as a Batch has them.
func (u *Update) Order() {
	byOp := func(a, b HostRecord) int { return int(b.Op) - int(a.Op) }
	if !slices.IsSortedFunc(u.Hosts, byOp) {
		slices.SortStableFunc(u.Hosts, byOp)
	}
}

// Cut divides a message that is in order into one of about so many records and the rest, nil if
// there is none; also what one record says of many hosts is divided. The order is that of a batch:
// hosts that go, hosts that are down, hosts that come, so that between two of them no host looks
// reachable that is not.
func (u *Update) Cut(records int) (first, rest *Update) {
	if len(u.Hosts)+len(u.Downs) <= records && Weight(u) <= records+messageWeight {
		return u, nil
	}
	head, tail := *u, *u
	head.Hosts, head.Downs = nil, nil
	tail.Settings, tail.Anew = nil, false
	for i := range kinds {
		kinds[i].drop(&tail)
	}
	tail.Hosts, tail.Downs = u.Hosts, u.Downs
	gone := 0
	for gone < len(tail.Hosts) && tail.Hosts[gone].Op == Withdraw {
		gone++
	}
	n := min(gone, records)
	head.Hosts, tail.Hosts = tail.Hosts[:n:n], tail.Hosts[n:]
	records -= n
	n = 0
	for n < len(tail.Downs) && records > 0 && gone == len(head.Hosts) {
		if d := tail.Downs[n]; d.weight() > max(records, 1) {
			tail.Downs = slices.Clone(tail.Downs)
			tail.Downs[n].Addrs = d.Addrs[:records*downAddrs]
			d.Addrs = d.Addrs[records*downAddrs:]
			tail.Downs = slices.Insert(tail.Downs, n+1, d)
		}
		records -= tail.Downs[n].weight()
		n++
	}
	head.Downs, tail.Downs = tail.Downs[:n:n], tail.Downs[n:]
	if len(tail.Downs) == 0 && gone == len(head.Hosts) && records > 0 {
		n = min(len(tail.Hosts), records)
		head.Hosts, tail.Hosts = append(head.Hosts, tail.Hosts[:n]...), tail.Hosts[n:]
	}
	if len(tail.Hosts)+len(tail.Downs) == 0 {
		return u, nil
	}
	return &head, &tail
}
