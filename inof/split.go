package inof

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/zone"
)

// Sizes of records on the wire, in bytes and never too small: they decide where an
// Update is split and how much its encoder allocates.
const (
	updateOverhead = 256 // header, tag, origin, stamp, times, settings, position, cluster and one device
	addrSize       = 17
)

func (z *ZoneRecord) size() int {
	n := tlvHeaderLen + 2 + len(z.Zone.Name)
	if z.Op == Put {
		for i := range z.Zone.Members {
			m := &z.Zone.Members[i]
			n += memberHeaderLen + (m.First.BitLen()+m.Last.BitLen())/8 + len(m.NQN) + addrLen(m.Device) + len(m.Port)
			if m.Kind == zone.MemberBound {
				n += 2 // kind of the place, length of the port's name
			}
		}
	}
	return n
}

func (h *HostRecord) size() int {
	k := &h.Host.HostKey
	n := tlvHeaderLen + 3 + addrLen(k.Addr) + addrLen(k.Device) + len(k.Port)
	if h.Op == Put {
		n += 20 + len(h.Host.NQN)
	}
	return n
}

func (f *FaultRecord) size() int {
	n := tlvHeaderLen + 11 + addrLen(f.Device) + len(f.Port)
	if f.Op == Change {
		n += 2
	}
	for _, a := range f.Addrs {
		n += addrLen(a)
	}
	for _, a := range f.Gone {
		n += addrLen(a)
	}
	return n
}

func addrLen(a netip.Addr) int {
	switch {
	case a.Is4():
		return 5
	case a.IsValid():
		return addrSize
	}
	return 0
}

func (u *Update) sizeHint() int {
	n := updateOverhead
	n += 40 * len(u.Devices)
	for i := range u.Zones {
		n += u.Zones[i].size()
	}
	for i := range u.Hosts {
		n += u.Hosts[i].size()
	}
	for i := range u.Faults {
		n += u.Faults[i].size()
	}
	return n
}

// batch collects records, one for a key, and cuts them into Updates of about
// SyncChunk bytes at record borders. Over all of them the order is settings, zones,
// hosts that go, faults, hosts that come: so that between two of them no
// host looks reachable that is not.
type batch struct {
	Settings *Settings
	Zones    []ZoneRecord
	Hosts    []HostRecord
	Faults   []FaultRecord
}

// stamps are what the Updates of a batch carry beside records.
type stamps struct {
	origin          netip.Addr
	epoch           uint64
	seq             func() uint64 // called once for each Update
	fault, sent, at time.Time     // FaultAt, SentAt, ReflectedAt
	decided, came   time.Time     // DecidedAt, ReflectorAt
	more            bool          // zones follow that are told together with those of the batch
}

func (s *stamps) update() *Update {
	return &Update{Origin: s.origin, Epoch: s.epoch, Seq: s.seq(), FaultAt: s.fault, SentAt: s.sent, ReflectedAt: s.at, DecidedAt: s.decided, ReflectorAt: s.came, More: s.more}
}

func (b *batch) empty() bool {
	return b.Settings == nil && len(b.Zones) == 0 && len(b.Hosts) == 0 && len(b.Faults) == 0
}

// updates gives no message for an empty batch. A record that is too large for any
// message is left out and counted.
func (b *batch) updates(s stamps, tooLarge *uint64) []*Update {
	var out []*Update
	var cur *Update
	room := 0
	next := func(size int) bool {
		if size > MaxMessage-updateOverhead {
			*tooLarge++
			return false
		}
		if cur == nil || (size > room && !cur.Empty()) {
			cur = s.update()
			out = append(out, cur)
			room = SyncChunk
		}
		room -= size
		return true
	}
	if b.Settings != nil && next(16) {
		cur.Settings = b.Settings
	}
	for i := range b.Zones {
		if next(b.Zones[i].size()) {
			cur.Zones = append(cur.Zones, b.Zones[i])
		}
	}
	for i, u := range out {
		u.More = s.more || i < len(out)-1
	}
	for i := range b.Hosts {
		if b.Hosts[i].Op == Withdraw && next(b.Hosts[i].size()) {
			cur.Hosts = append(cur.Hosts, b.Hosts[i])
		}
	}
	for i := range b.Faults {
		if next(b.Faults[i].size()) {
			cur.Faults = append(cur.Faults, b.Faults[i])
		}
	}
	for i := range b.Hosts {
		if b.Hosts[i].Op == Put && next(b.Hosts[i].size()) {
			cur.Hosts = append(cur.Hosts, b.Hosts[i])
		}
	}
	return out
}
