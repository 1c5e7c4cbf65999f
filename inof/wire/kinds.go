package wire

import (
	"sort"

	"github.com/openinof/inof/zone"
)

// record is one that an Update carries in any number: a pointer to it.
type record[R any] interface {
	*R
	// append writes its TLV.
	append(b []byte) ([]byte, error)
	// Size is the length on the wire, in bytes, or a little more.
	Size() int
	// weight is how much work it is: that of a host is 1.
	weight() int
	// goes reports whether it withdraws a host that others must not take for reachable.
	goes() bool
	// key is what it is about: the last record with a key counts. Its Device is whose state it
	// is; zero: that of no device.
	key() zone.HostKey
}

// kind is a kind of record: what is done with all that a message or batch has of it.
type kind struct {
	tlv     uint8
	held    func(*Update) int // how many
	drop    func(*Update)
	append  func(*Update, []byte) ([]byte, error)
	decode  func(*Update, *reader)
	size    func(*Update) int
	weight  func(*Update) int
	devices func(*Update, *stamper)

	waiting func(*Batch) int
	pack    func(b *Batch, going bool, into *packing) // those that go, or the others
	sort    func(*Batch)                              // by their keys
	wait    func(*Coalescer, *Update)                 // the last of each key
}

// kinds are those there are, in the order in which they stand in a message and are applied.
var kinds = [...]kind{zones, hosts, downs, fences}

var (
	zones  = kindOf(tlvUpdateZone, decodeZone, func(u *Update) *[]ZoneRecord { return &u.Zones }, func(b *Batch) *[]ZoneRecord { return &b.Zones })
	hosts  = kindOf(tlvUpdateHost, decodeHost, func(u *Update) *[]HostRecord { return &u.Hosts }, func(b *Batch) *[]HostRecord { return &b.Hosts })
	downs  = kindOf(tlvUpdateDown, decodeDownRecord, func(u *Update) *[]DownRecord { return &u.Downs }, func(b *Batch) *[]DownRecord { return &b.Downs })
	fences = kindOf(tlvUpdateFence, decodeFence, func(u *Update) *[]FenceRecord { return &u.Fences }, func(b *Batch) *[]FenceRecord { return &b.Fences })
)

func kindOf[R any, P record[R]](tlv uint8, decode func(*reader) R, of func(*Update) *[]R, in func(*Batch) *[]R) kind {
	return kind{
		tlv:  tlv,
		held: func(u *Update) int { return len(*of(u)) },
		drop: func(u *Update) { *of(u) = nil },
		append: func(u *Update, b []byte) (_ []byte, err error) {
			list := *of(u)
			for i := range list {
				if b, err = P(&list[i]).append(b); err != nil {
					return nil, err
				}
			}
			return b, nil
		},
		decode: func(u *Update, r *reader) {
			list := of(u)
			if *list == nil {
				*list = make([]R, 0, 1+r.following(tlv))
			}
			*list = append(*list, decode(r))
		},
		size:   func(u *Update) int { return sum(*of(u), P.Size) },
		weight: func(u *Update) int { return sum(*of(u), P.weight) },
		devices: func(u *Update, s *stamper) {
			list := *of(u)
			for i := range list {
				if d := P(&list[i]).key().Device; d.IsValid() {
					s.add(u, d)
				}
			}
		},
		waiting: func(b *Batch) int { return len(*in(b)) },
		pack: func(b *Batch, going bool, into *packing) {
			all := *in(b)
			for i := range all {
				p := P(&all[i])
				if p.goes() != going {
					continue
				}
				if u := into.next(p.Size()); u != nil {
					list := of(u)
					*list = extend(*list, all, i)
				}
			}
		},
		sort: func(b *Batch) {
			if list := *in(b); len(list) > 1 {
				sort.Stable(byKey[R, P](list))
			}
		},
		wait: func(c *Coalescer, u *Update) {
			list, said := *of(u), in(&c.said)
			for i := range list {
				p := P(&list[i])
				k := waitKey{tlv, p.key()}
				at, had := c.at[k]
				if had {
					c.size -= P(&(*said)[at]).Size()
					(*said)[at] = list[i]
				} else {
					c.at[k] = len(*said)
					*said = append(*said, list[i])
				}
				c.size += p.Size()
				c.note(u, k.key.Device)
			}
		},
	}
}

// byKey sorts records.
type byKey[R any, P record[R]] []R

func (l byKey[R, P]) Len() int           { return len(l) }
func (l byKey[R, P]) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l byKey[R, P]) Less(i, j int) bool { return zone.CompareKeys(P(&l[i]).key(), P(&l[j]).key()) < 0 }

func sum[R any, P record[R]](list []R, f func(P) int) (n int) {
	for i := range list {
		n += f(&list[i])
	}
	return n
}

// Records is how many records it carries, beside the settings.
func (u *Update) Records() (n int) {
	for i := range kinds {
		n += kinds[i].held(u)
	}
	return n
}

// sizeHint is the length of the message, in bytes, or a little more.
func (u *Update) sizeHint() int {
	n := updateOverhead + 40*len(u.Devices)
	for i := range kinds {
		n += kinds[i].size(u)
	}
	return n
}

// extend adds record i of all to those of a message, which stay a part of all where they follow
// each other there: none is copied then.
func extend[T any](some, all []T, i int) []T {
	if n := len(some); n == 0 || n <= i && &some[0] == &all[i-n] {
		return all[i-n : i+1 : i+1]
	}
	return append(some, all[i])
}
