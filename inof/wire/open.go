package wire

import (
	"encoding/binary"
	"slices"
	"time"
)

// TLV types of an Open (docs/protocol.md, "Open").
const (
	tlvOpenDevice    uint8 = 1  // address
	tlvOpenVersions  uint8 = 2  // least u8, greatest u8
	tlvOpenRoles     uint8 = 3  // u8
	tlvOpenCaps      uint8 = 4  // u64
	tlvOpenTimers    uint8 = 5  // hold ms u32, keepalive ms u32
	tlvOpenNonce     uint8 = 6  // 32 bytes
	tlvOpenEpoch     uint8 = 7  // u64
	tlvOpenAuth      uint8 = 8  // u8
	tlvOpenResume    uint8 = 9  // epoch u64, sequence u64; optional
	tlvOpenZones     uint8 = 10 // 16 bytes; only with the resume
	openRequired           = 1<<tlvOpenDevice | 1<<tlvOpenVersions | 1<<tlvOpenRoles | 1<<tlvOpenTimers | 1<<tlvOpenNonce | 1<<tlvOpenEpoch | 1<<tlvOpenAuth
	maxTimerMillisec       = int64(MaxHold / time.Millisecond)
)

func (o *Open) appendBody(b []byte) ([]byte, error) {
	if err := CheckAddr("Open.device", o.Device); err != nil {
		return nil, err
	}
	for _, d := range [...]time.Duration{o.Hold, o.Keepalive} {
		if ms := d.Milliseconds(); ms < 0 || ms > maxTimerMillisec {
			return nil, Malformed("Open.timers", "%v, want 0..%v", d, MaxHold)
		}
	}
	b, at := beginTLV(slices.Grow(b, 160), tlvOpenDevice)
	b = endTLV(appendAddr(b, o.Device), at)
	b, at = beginTLV(b, tlvOpenVersions)
	b = endTLV(append(b, o.MinVersion, o.MaxVersion), at)
	b, at = beginTLV(b, tlvOpenRoles)
	b = endTLV(append(b, byte(o.Roles)), at)
	b, at = beginTLV(b, tlvOpenCaps)
	b = endTLV(binary.BigEndian.AppendUint64(b, uint64(o.Caps)), at)
	b, at = beginTLV(b, tlvOpenTimers)
	b = binary.BigEndian.AppendUint32(b, uint32(o.Hold.Milliseconds()))
	b = endTLV(binary.BigEndian.AppendUint32(b, uint32(o.Keepalive.Milliseconds())), at)
	b, at = beginTLV(b, tlvOpenNonce)
	b = endTLV(append(b, o.Nonce[:]...), at)
	b, at = beginTLV(b, tlvOpenEpoch)
	b = endTLV(binary.BigEndian.AppendUint64(b, o.Epoch), at)
	b, at = beginTLV(b, tlvOpenAuth)
	b = endTLV(append(b, byte(o.Auth)), at)
	if o.Resume != nil {
		b, at = beginTLV(b, tlvOpenResume)
		b = binary.BigEndian.AppendUint64(b, o.Resume.Epoch)
		b = endTLV(binary.BigEndian.AppendUint64(b, o.Resume.Seq), at)
		if o.Resume.Zones.Known() {
			b, at = beginTLV(b, tlvOpenZones)
			b = endTLV(append(b, o.Resume.Zones[:]...), at)
		}
	}
	return b, nil
}

func decodeOpen(body []byte) (*Open, error) {
	var o Open
	var zones ZoneDigest
	var seen tlvSet
	err := eachTLV("Open", body, func(typ uint8, r *reader) bool {
		if typ <= tlvOpenZones && seen.again(typ, r) {
			return true
		}
		switch typ {
		case tlvOpenDevice:
			o.Device = r.addr("device")
		case tlvOpenVersions:
			o.MinVersion, o.MaxVersion = r.u8("versions"), r.u8("versions")
		case tlvOpenRoles:
			o.Roles = Roles(r.u8("roles"))
		case tlvOpenCaps:
			o.Caps = Capabilities(r.u64("capabilities"))
		case tlvOpenTimers:
			o.Hold = time.Duration(r.u32("hold")) * time.Millisecond
			o.Keepalive = time.Duration(r.u32("keepalive")) * time.Millisecond
			if o.Hold > MaxHold || o.Keepalive > MaxHold {
				r.fail("timers", "hold %v, keepalive %v, want at most %v", o.Hold, o.Keepalive, MaxHold)
			}
		case tlvOpenNonce:
			copy(o.Nonce[:], r.take("nonce", NonceLen))
		case tlvOpenEpoch:
			o.Epoch = r.u64("epoch")
		case tlvOpenAuth:
			o.Auth = AuthMode(r.u8("auth"))
		case tlvOpenResume:
			o.Resume = &Resume{Epoch: r.u64("resume"), Seq: r.u64("resume")}
		case tlvOpenZones:
			copy(zones[:], r.take("zones", len(zones)))
		default:
			return false
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if missing := openRequired &^ seen; missing != 0 {
		for typ := tlvOpenDevice; typ <= tlvOpenResume; typ++ {
			if missing.has(typ) {
				return nil, Malformed("Open", "TLV type %d is missing", typ)
			}
		}
	}
	switch {
	case o.Resume != nil:
		o.Resume.Zones = zones
	case zones.Known():
		return nil, Malformed("Open.zones", "TLV type %d without TLV type %d", tlvOpenZones, tlvOpenResume)
	}
	return &o, nil
}
