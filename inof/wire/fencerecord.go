package wire

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// FenceRecord lists the hosts whose frames an array's switch keeps from one address of the array
// at one port: a pair that is listed must not be announced active. It replaces the one before of
// the same address and port. Without peers nothing is blocked there.
type FenceRecord struct {
	Device netip.Addr
	Port   string
	Array  netip.Addr  // an address behind the port
	Peers  []FencePeer // at most MaxFencePeers
}

// FencePeer is a host that is kept from an array.
type FencePeer struct {
	Host  netip.Addr      // invalid: all hosts, the port passes nothing
	Level snsd.FenceLevel // FenceNone: the block is not confirmed
	Since time.Time       // when the block began, by the clock of the device; for people
	Hold  time.Duration   // the block stands so long from then, whole seconds
	Took  time.Duration   // from the fault to the confirmation, whole milliseconds
}

// Fence is what agents are notified of.
func (p *FencePeer) Fence() snsd.Fence {
	if p.Level == snsd.FenceNone {
		return snsd.Fence{}
	}
	return snsd.Fence{Level: snsd.FenceNetwork, Way: snsd.FenceBySwitch, Hold: p.Hold, Took: p.Took}
}

const (
	// MaxFenceHold and MaxFenceTook are the greatest values that fit their fields.
	MaxFenceHold = 65535 * time.Second
	MaxFenceTook = 4294967295 * time.Millisecond

	fencePeerLen = 15 // without the address
)

// Key is that of the address.
func (r *FenceRecord) Key() zone.HostKey {
	return zone.HostKey{Addr: r.Array, Device: r.Device, Port: r.Port}
}

func (r *FenceRecord) append(b []byte) ([]byte, error) {
	if err := CheckAddr("Update.fence.device", r.Device); err != nil {
		return nil, err
	}
	if err := checkText("Update.fence.port", r.Port, 1, fabric.MaxPortName); err != nil {
		return nil, err
	}
	if err := CheckAddr("Update.fence.array", r.Array); err != nil {
		return nil, err
	}
	if len(r.Peers) > MaxFencePeers {
		return nil, &LimitError{What: "fenced hosts", Key: "array " + r.Array.String(), Limit: MaxFencePeers}
	}
	b, at := beginTLV(b, tlvUpdateFence)
	b = appendAddr(appendText(appendAddr(b, r.Device), r.Port), r.Array)
	for i := range r.Peers {
		p := &r.Peers[i]
		if p.Hold < 0 || p.Hold > MaxFenceHold || p.Took < 0 || p.Took > MaxFenceTook {
			return nil, Malformed("Update.fence", "hold %v, took %v, want 0..%v and 0..%v", p.Hold, p.Took, MaxFenceHold, MaxFenceTook)
		}
		if !p.Host.IsValid() {
			b = append(b, 0)
		} else if err := CheckAddr("Update.fence.host", p.Host); err != nil {
			return nil, err
		} else {
			b = appendAddr(b, p.Host)
		}
		b = binary.BigEndian.AppendUint16(appendTime(append(b, byte(p.Level)), p.Since), uint16(p.Hold/time.Second))
		b = binary.BigEndian.AppendUint32(b, uint32(p.Took/time.Millisecond))
	}
	return endTLV(b, at), nil
}

func decodeFence(r *reader) FenceRecord {
	f := FenceRecord{Device: r.addr("fence.device"), Port: r.portName("fence.port"), Array: r.addr("fence.array")}
	for r.err == nil && len(r.b) > 0 {
		if len(f.Peers) == MaxFencePeers {
			r.fail("fence.hosts", "more than %d", MaxFencePeers)
			break
		}
		var p FencePeer
		if r.b[0] == 0 {
			r.u8("fence.host")
		} else {
			p.Host = r.addr("fence.host")
		}
		p.Level = min(snsd.FenceLevel(r.u8("fence.level")), snsd.FenceNetwork) // a switch gives no more
		p.Since = r.time("fence.since")
		p.Hold = time.Duration(r.u16("fence.hold")) * time.Second
		p.Took = time.Duration(r.u32("fence.took")) * time.Millisecond
		f.Peers = append(f.Peers, p)
	}
	return f
}

// Size is the length of the record on the wire, in bytes, or a little more.
func (r *FenceRecord) Size() int {
	n := tlvHeaderLen + AddrLen(r.Device) + 1 + len(r.Port) + AddrLen(r.Array)
	for i := range r.Peers {
		n += max(1, AddrLen(r.Peers[i].Host)) + fencePeerLen
	}
	return n
}

// weight is how much work the record is, in records.
func (r *FenceRecord) weight() int { return 1 + len(r.Peers)/downAddrs }

// goes: that a fence stands comes with the losses, after them; that it stands no more comes before
// a host is announced reachable.
func (r *FenceRecord) goes() bool        { return len(r.Peers) > 0 }
func (r *FenceRecord) key() zone.HostKey { return r.Key() }
