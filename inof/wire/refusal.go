package wire

import (
	"encoding/binary"
	"net/netip"
)

// Refusal tells a device which of its hosts the reflector refuses.
type Refusal struct {
	Hosts uint32 // for which there is no room
	Limit uint32 // of hosts of one device, or of all
	Again bool   // what was refused may be taken now: everything is to be said again
	// Outside is how many hosts are outside of what the reflector binds the device to, Named
	// are up to MaxOutsideNamed of their addresses, sorted.
	Outside uint32
	Named   []netip.Addr
}

// Empty reports whether nothing is refused.
func (r *Refusal) Empty() bool { return r.Hosts == 0 && r.Outside == 0 }

// MaxOutsideNamed is how many hosts outside of its binding a device is told by address.
const MaxOutsideNamed = 64

// MaxSyncShort is how many devices an End-of-Sync names of whose hosts some may be missing.
const MaxSyncShort = DefaultMaxClients

// refusalAgain is the flag of Refusal.Again.
const refusalAgain uint8 = 1 << 0

// append writes hosts, limit, flags, how many are outside, and the addresses of these.
func (r *Refusal) append(b []byte) ([]byte, error) {
	const where = "Update.refused"
	if len(r.Named) > MaxOutsideNamed {
		return nil, Malformed(where, "%d addresses, want at most %d", len(r.Named), MaxOutsideNamed)
	}
	b = binary.BigEndian.AppendUint32(b, r.Hosts)
	b = binary.BigEndian.AppendUint32(b, r.Limit)
	var flags uint8
	if r.Again {
		flags |= refusalAgain
	}
	b = binary.BigEndian.AppendUint32(append(b, flags), r.Outside)
	for _, a := range r.Named {
		if err := CheckAddr(where+".address", a); err != nil {
			return nil, err
		}
		b = appendAddr(b, a)
	}
	return b, nil
}

func decodeRefusal(r *reader) *Refusal {
	x := &Refusal{Hosts: r.u32("refused.hosts"), Limit: r.u32("refused.limit")}
	x.Again = r.u8("refused.flags")&refusalAgain != 0
	x.Outside = r.u32("refused.outside")
	for r.err == nil && len(r.b) > 0 {
		if len(x.Named) == MaxOutsideNamed {
			r.fail("refused.address", "more than %d", MaxOutsideNamed)
			break
		}
		x.Named = append(x.Named, r.addr("refused.address"))
	}
	return x
}
