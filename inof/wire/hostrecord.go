package wire

import (
	"encoding/binary"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Flags of a host record.
const (
	hostSubscribes uint8 = 1 << 0
	hostRival      uint8 = 1 << 1 // another claim has the address, as the sender knows
	hostDoubt      uint8 = 1 << 2 // its access device has seen that it may be another host
	hostDown       uint8 = 1 << 3 // the last two fields are there
)

// HostRecord puts or withdraws one attachment; its key is Host.HostKey. Of a
// withdrawn record only the key and Why travel.
type HostRecord struct {
	Op   Op
	Host zone.Host
	Why  snsd.Reason // of a withdrawal: 4 zone changed, 5 moved or replaced, 6 aged out
}

func (h *HostRecord) append(b []byte) ([]byte, error) {
	k := h.Host.HostKey
	if err := checkOp("Update.host", h.Op); err != nil {
		return nil, err
	}
	if err := CheckAddr("Update.host.address", k.Addr); err != nil {
		return nil, err
	}
	if err := CheckAddr("Update.host.device", k.Device); err != nil {
		return nil, err
	}
	if err := checkText("Update.host.port", k.Port, 1, fabric.MaxPortName); err != nil {
		return nil, err
	}
	b, at := beginTLV(b, tlvUpdateHost)
	b = append(b, byte(h.Op), byte(h.Why))
	b = appendAddr(appendAddr(b, k.Addr), k.Device)
	b = appendText(b, k.Port)
	if h.Op == Put {
		s := &h.Host.Service
		if err := checkText("Update.host.nqn", s.NQN, 0, snsd.MaxNQN); err != nil {
			return nil, err
		}
		var flags uint8
		if h.Host.Subscribes {
			flags |= hostSubscribes
		}
		if h.Host.Claim == zone.ClaimRival {
			flags |= hostRival
		}
		if h.Host.Doubt {
			flags |= hostDoubt
		}
		if h.Host.Down.Is() {
			flags |= hostDown
		}
		b = append(b, h.Host.MAC[:]...)
		b = append(b, flags, byte(s.Role), byte(s.Protocol))
		b = binary.BigEndian.AppendUint16(b, s.Port)
		b = appendTime(b, h.Host.Since)
		b = appendText(b, s.NQN)
		if h.Host.Down.Is() {
			b = appendDown(b, h.Host.Down)
		}
	}
	return endTLV(b, at), nil
}

func decodeHost(r *reader) HostRecord {
	h := HostRecord{Op: r.op("host")}
	h.Why = snsd.Reason(r.u8("host.reason"))
	h.Host.Addr = r.addr("host.address")
	h.Host.Device = r.addr("host.device")
	h.Host.HostKey.Port = r.portName("host.port")
	if h.Op != Put {
		return h
	}
	copy(h.Host.MAC[:], r.take("host.mac", 6))
	flags := r.u8("host.flags")
	h.Host.Subscribes = flags&hostSubscribes != 0
	if flags&hostRival != 0 {
		h.Host.Claim = zone.ClaimRival
	}
	h.Host.Doubt = flags&hostDoubt != 0
	h.Host.Role = snsd.Role(r.u8("host.role"))
	h.Host.Protocol = snsd.Protocol(r.u8("host.protocol"))
	h.Host.Service.Port = r.u16("host.service port")
	h.Host.Since = r.time("host.since")
	h.Host.NQN = r.text("host.nqn", 0, snsd.MaxNQN)
	if flags&hostDown != 0 {
		h.Host.Down = decodeDown(r, "host.down")
	}
	return h
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

func (h *HostRecord) weight() int       { return 1 }
func (h *HostRecord) goes() bool        { return h.Op == Withdraw }
func (h *HostRecord) key() zone.HostKey { return h.Host.HostKey }
