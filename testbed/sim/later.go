package sim

import (
	"encoding/binary"
	"slices"

	"github.com/openinof/inof/inof/wire"
)

// This file makes half of the devices speak 2.1, a version that nobody has written: what
// docs/protocol.md, "Versions", lets a later one add is in all that they say. A device that is
// started again has been upgraded, or has gone back.

const (
	laterTLV   = 0x60   // which no version 2 knows
	laterFlags = 0x00fe // all that are to be ignored
	laterField = 0xa5   // behind the last of a value of fixed size
)

// fixed are the values of fixed size, by the message they are in.
var fixed = map[wire.MsgType][]byte{
	wire.TypeOpen:      {2, 3, 4, 5, 7, 8}, // versions, roles, capabilities, timers, epoch, mode
	wire.TypeUpdate:    {2, 4, 9, 12},      // stamp, settings, position, cluster
	wire.TypeEndOfSync: {2, 12},            // stamp, cluster
}

// later reports whether the process of a device speaks 2.1.
func (d *device) later() bool {
	id := d.id.As16()
	return d.w.cfg.Later && (uint64(id[15])+d.life)%2 == 0
}

// asLater is a message without a tag as 2.1 would send it.
func asLater(m []byte) []byte {
	h, body := slices.Clone(m[:wire.HeaderLen]), m[wire.HeaderLen:]
	t := wire.MsgType(h[5])
	binary.BigEndian.PutUint16(h[6:], binary.BigEndian.Uint16(h[6:])|laterFlags)
	out := append(h, laterTLV, 0, 0, 1, laterField)
	for len(body) > 0 {
		n := 4 + int(body[1])<<16 + int(body[2])<<8 + int(body[3])
		tlv := slices.Clone(body[:n])
		switch body = body[n:]; {
		case t == wire.TypeOpen && tlv[0] == 2:
			tlv[5]++ // it speaks version 3 as well
		case t == wire.TypeOpen && tlv[0] == 4:
			tlv[4] |= 0x80 // a capability
		}
		if slices.Contains(fixed[t], tlv[0]) {
			tlv = append(tlv, laterField)
			n++
			tlv[1], tlv[2], tlv[3] = byte((n-4)>>16), byte((n-4)>>8), byte(n-4)
		}
		out = append(out, tlv...)
	}
	binary.BigEndian.PutUint32(out, uint32(len(out)))
	return out
}
