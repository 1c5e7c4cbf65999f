package inof

import "encoding/binary"

// refusalAgain is the flag of Refusal.Again.
const refusalAgain uint8 = 1 << 0

// append writes hosts, limit, flags, how many are outside, and the addresses of these.
func (r *Refusal) append(b []byte) ([]byte, error) {
	const where = "Update.refused"
	if len(r.Named) > MaxOutsideNamed {
		return nil, malformed(where, "%d addresses, want at most %d", len(r.Named), MaxOutsideNamed)
	}
	b = binary.BigEndian.AppendUint32(b, r.Hosts)
	b = binary.BigEndian.AppendUint32(b, r.Limit)
	var flags uint8
	if r.Again {
		flags |= refusalAgain
	}
	b = binary.BigEndian.AppendUint32(append(b, flags), r.Outside)
	for _, a := range r.Named {
		if err := checkAddr(where+".address", a); err != nil {
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
