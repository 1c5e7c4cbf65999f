package wire

import (
	"net/netip"
)

// Sizes of records on the wire, in bytes and never too small: they decide where an
// Update is split and how much its encoder allocates.
const (
	updateOverhead = 256 // header, tag, origin, stamp, times, settings, position, cluster and one device
	addrSize       = 17
)

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

// Empty reports whether there is no record.
func (b *Batch) Empty() bool {
	for i := range kinds {
		if kinds[i].waiting(b) > 0 {
			return false
		}
	}
	return b.Settings == nil
}

// Updates gives the records in Updates that are like one without records; none for an empty
// batch. They are cut into messages of about SyncChunk bytes at record borders. Over all of them
// the order is settings, zones, hosts that go, hosts that are down, hosts that come: so that
// between two of them no host looks reachable that is not. A record that is too large for any
// message is left out and counted.
func (b *Batch) Updates(like *Update, tooLarge *uint64) []*Update {
	p := packing{like: like, tooLarge: tooLarge}
	if b.Settings != nil {
		p.next(16).Settings = b.Settings
	}
	zones.pack(b, false, &p)
	for i, u := range p.out {
		u.More = like.More || i < len(p.out)-1
	}
	for i := range kinds {
		kinds[i].pack(b, true, &p)
	}
	for i := len(kinds) - 1; i > 0; i-- { // but for zones
		kinds[i].pack(b, false, &p)
	}
	return p.out
}

// packing is a batch on its way into messages.
type packing struct {
	like     *Update
	out      []*Update
	room     int // in the last of out, in bytes
	tooLarge *uint64
}

// next gives the message for a record of a size; nil: none can hold it.
func (p *packing) next(size int) *Update {
	if size > MaxMessage-updateOverhead {
		*p.tooLarge++
		return nil
	}
	if len(p.out) == 0 || size > p.room {
		u := *p.like
		p.out = append(p.out, &u)
		p.room = SyncChunk
	}
	p.room -= size
	return p.out[len(p.out)-1]
}

// Sort orders the records of each kind by their keys.
func (b *Batch) Sort() {
	for i := range kinds {
		kinds[i].sort(b)
	}
}

// Op tells what is done with a record.
type Op uint8

const (
	Put      Op = 1 // add the record, or replace the one with its key
	Withdraw Op = 2 // remove the record with its key
)

func (o Op) String() string {
	switch o {
	case Put:
		return "put"
	case Withdraw:
		return "withdraw"
	}
	return "unknown"
}

func checkOp(where string, o Op) error {
	if o != Put && o != Withdraw {
		return Malformed(where, "operation %d, want %d (put) or %d (withdraw)", o, Put, Withdraw)
	}
	return nil
}

func (r *reader) op(field string) Op {
	o := Op(r.u8(field))
	if r.err == nil && o != Put && o != Withdraw {
		r.fail(field, "operation %d, want %d (put) or %d (withdraw)", o, Put, Withdraw)
	}
	return o
}
