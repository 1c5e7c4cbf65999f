package wire

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/zone"
)

// Sizes of records on the wire, in bytes and never too small: they decide where an
// Update is split and how much its encoder allocates.
const (
	updateOverhead = 256 // header, tag, origin, stamp, times, settings, position, cluster and one device
	addrSize       = 17
)

// Size is the length of the record on the wire, in bytes, or a little more.
func (z *ZoneRecord) Size() int {
	n := tlvHeaderLen + 2 + len(z.Zone.Name)
	if z.Op == Put {
		n += len(z.Packed)
		for i := range z.Zone.Members {
			m := &z.Zone.Members[i]
			n += memberHeaderLen + (m.First.BitLen()+m.Last.BitLen())/8 + len(m.NQN) + AddrLen(m.Device) + len(m.Port)
			if m.Kind == zone.MemberBound {
				n += 2 // kind of the place, length of the port's name
			}
		}
	}
	return n
}

// Size is the length of the record on the wire, in bytes, or a little more.
func (h *HostRecord) Size() int {
	k := &h.Host.HostKey
	n := tlvHeaderLen + 3 + AddrLen(k.Addr) + AddrLen(k.Device) + len(k.Port)
	if h.Op == Put {
		n += 29 + len(h.Host.NQN)
	}
	return n
}

// Size is the length of the record on the wire, in bytes, or a little more.
func (d *DownRecord) Size() int {
	n := tlvHeaderLen + 10 + AddrLen(d.Device) + len(d.Port)
	for _, a := range d.Addrs {
		n += AddrLen(a)
	}
	return n
}

// AddrLen is the length of an address on the wire, in bytes, or a little more.
func AddrLen(a netip.Addr) int {
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
		n += u.Zones[i].Size()
	}
	for i := range u.Hosts {
		n += u.Hosts[i].Size()
	}
	for i := range u.Downs {
		n += u.Downs[i].Size()
	}
	return n
}

// Batch collects records, one for a key, and cuts them into Updates of about
// SyncChunk bytes at record borders. Over all of them the order is settings, zones,
// hosts that go, hosts that are down, hosts that come: so that between two of them no
// host looks reachable that is not.
type Batch struct {
	Settings *Settings
	Zones    []ZoneRecord
	Hosts    []HostRecord
	Downs    []DownRecord
}

// Empty reports whether there is no record.
func (b *Batch) Empty() bool {
	return b.Settings == nil && len(b.Zones) == 0 && len(b.Hosts) == 0 && len(b.Downs) == 0
}

// Updates gives the records in Updates that are like one without records; none for an empty
// batch. A record that is too large for any message is left out and counted.
func (b *Batch) Updates(like *Update, tooLarge *uint64) []*Update {
	var out []*Update
	var cur *Update
	room := 0
	next := func(size int) bool {
		if size > MaxMessage-updateOverhead {
			*tooLarge++
			return false
		}
		if cur == nil || (size > room && !cur.Empty()) {
			u := *like
			cur = &u
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
		if next(b.Zones[i].Size()) {
			cur.Zones = extend(cur.Zones, b.Zones, i)
		}
	}
	for i, u := range out {
		u.More = like.More || i < len(out)-1
	}
	for i := range b.Hosts {
		if b.Hosts[i].Op == Withdraw && next(b.Hosts[i].Size()) {
			cur.Hosts = extend(cur.Hosts, b.Hosts, i)
		}
	}
	for i := range b.Downs {
		if next(b.Downs[i].Size()) {
			cur.Downs = extend(cur.Downs, b.Downs, i)
		}
	}
	for i := range b.Hosts {
		if b.Hosts[i].Op == Put && next(b.Hosts[i].Size()) {
			cur.Hosts = extend(cur.Hosts, b.Hosts, i)
		}
	}
	return out
}

// extend adds record i of all to those of a message, which stay a part of all where they follow
// each other there: none is copied then.
func extend[T any](some, all []T, i int) []T {
	if n := len(some); n == 0 || n <= i && &some[0] == &all[i-n] {
		return all[i-n : i+1 : i+1]
	}
	return append(some, all[i])
}

// Sort orders the records of each kind by their keys.
func (b *Batch) Sort() {
	slices.SortFunc(b.Zones, func(x, y ZoneRecord) int { return strings.Compare(x.Zone.Name, y.Zone.Name) })
	slices.SortFunc(b.Hosts, func(x, y HostRecord) int { return zone.CompareKeys(x.Host.HostKey, y.Host.HostKey) })
	slices.SortStableFunc(b.Downs, func(x, y DownRecord) int {
		return cmp.Or(x.Device.Compare(y.Device), strings.Compare(x.Port, y.Port))
	})
}

// FitsMessage refuses a zone that no message can hold: the error wraps ErrTooLarge.
func FitsMessage(z *zone.Zone) error {
	rec := ZoneRecord{Op: Put, Zone: *z}
	if n := rec.Size(); n > MaxMessage-updateOverhead {
		return fmt.Errorf("zone %q has %d members in %d bytes: %w; name ranges instead of single addresses", z.Name, len(z.Members), n, ErrTooLarge)
	}
	return nil
}
