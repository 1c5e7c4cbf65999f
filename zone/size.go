package zone

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrTooLarge is a zone that no message to a device can hold.
var ErrTooLarge = errors.New("does not fit into a message")

// Lengths of what stands before a zone and before a member where they are told, in bytes
// (docs/protocol.md, "Zone record").
const (
	recordHead = 4 + 1 + 1 // TLV, put or withdraw, length of the name
	memberHead = 1 + 2     // kind, length
	placeHead  = 1 + 1     // kind of the place, length of the port's name
)

// Size is how many bytes a zone takes where a device is told of it, or a few more.
func (z *Zone) Size() int {
	n := recordHead + len(z.Name)
	for i := range z.Members {
		n += z.Members[i].size()
	}
	return n
}

func (m *Member) size() int {
	n := memberHead + (m.First.BitLen()+m.Last.BitLen())/8 + len(m.NQN) + addrSize(m.Device) + len(m.Port)
	if m.Kind == MemberBound {
		n += placeHead
	}
	return n
}

// addrSize is that of an address with its length before it; one that is not there takes none.
func addrSize(a netip.Addr) int {
	if !a.IsValid() {
		return 0
	}
	return 1 + a.BitLen()/8
}

// checkSize refuses a zone that takes more than that. It is told in canonical form.
func (z *Zone) checkSize(most int) error {
	if z.Size() <= most {
		return nil
	}
	is := z.Canonical()
	if n := is.Size(); n > most {
		return fmt.Errorf("%w: %d members in %d bytes, at most %d; name ranges instead of single addresses", ErrTooLarge, len(is.Members), n, most)
	}
	return nil
}
