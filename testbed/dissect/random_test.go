package dissect

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// source makes messages at random, the same ones each time.
type source struct{ *rand.Rand }

func newSource(seed uint64) source { return source{rand.New(rand.NewPCG(seed, 1))} }

func (r source) addr() netip.Addr {
	if r.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + r.IntN(250))})
	}
	a := netip.MustParseAddr("2001:db8::").As16()
	a[7], a[15] = byte(r.IntN(256)), byte(1+r.IntN(250))
	return netip.AddrFrom16(a)
}

func (r source) name(most int) string {
	const letters = "abcdefgh0123456789.:-/ äß€𝄞"
	var b strings.Builder
	for n := 1 + r.IntN(most); ; {
		c := []rune(letters)[r.IntN(len([]rune(letters)))]
		if c == ' ' && b.Len() == 0 || b.Len()+len(string(c)) > n {
			break
		}
		b.WriteRune(c)
	}
	return b.String() + "x"
}

func (r source) time() time.Time {
	if r.IntN(4) == 0 {
		return time.Time{}
	}
	return time.Unix(1_700_000_000+r.Int64N(100_000_000), r.Int64N(1_000_000_000))
}

func (r source) op() wire.Op { return wire.Op(1 + r.IntN(2)) }

func (r source) service() snsd.Service {
	s := snsd.Service{Role: snsd.Role(r.IntN(4)), Protocol: snsd.Protocol(r.IntN(4)), Port: uint16(r.IntN(65536))}
	if r.IntN(3) > 0 {
		s.NQN = "nqn.2026-01.org.example:" + r.name(60)
	}
	return s
}

func (r source) member() zone.Member {
	switch zone.MemberKind(1 + r.IntN(5)) {
	case zone.MemberAddr:
		return zone.Member{Kind: zone.MemberAddr, First: r.addr()}
	case zone.MemberRange:
		a := r.addr()
		return zone.Member{Kind: zone.MemberRange, First: a, Last: a.Next()}
	case zone.MemberNQN:
		return zone.Member{Kind: zone.MemberNQN, NQN: r.name(200)}
	case zone.MemberBound:
		m := zone.Member{Kind: zone.MemberBound, NQN: r.name(200)}
		switch a := r.addr(); r.IntN(3) {
		case 0:
			p, _ := a.Prefix(r.IntN(a.BitLen() + 1))
			m.First, m.Last = zone.PrefixEnds(p)
		case 1:
			m.Device = a
		case 2:
			m.Device, m.Port = a, r.name(60)
		}
		return m
	}
	return zone.Member{Kind: zone.MemberPort, Device: r.addr(), Port: r.name(60)}
}

func (r source) host() wire.HostRecord {
	h := wire.HostRecord{Op: r.op(), Why: snsd.Reason(r.IntN(8))}
	h.Host.Addr, h.Host.Device, h.Host.HostKey.Port = r.addr(), r.addr(), r.name(60)
	if h.Op == wire.Put {
		for i := range h.Host.MAC {
			h.Host.MAC[i] = byte(r.IntN(256))
		}
		h.Host.Subscribes, h.Host.Since, h.Host.Service, h.Host.Down = r.IntN(2) == 0, r.time(), r.service(), r.down()
	}
	return h
}

func (r source) down() (d zone.Down) {
	if why := snsd.Reason(r.IntN(8)); why != snsd.ReasonNone {
		d = zone.Down{Why: why, Since: r.time()}
	}
	return d
}

func (r source) downs() wire.DownRecord {
	d := wire.DownRecord{Device: r.addr(), Port: r.name(60), Down: r.down()}
	for range r.IntN(5) {
		d.Addrs = append(d.Addrs, r.addr())
	}
	return d
}

func (r source) fence() wire.FenceRecord {
	f := wire.FenceRecord{Device: r.addr(), Port: r.name(60), Array: r.addr()}
	for range r.IntN(4) {
		p := wire.FencePeer{Level: snsd.FenceLevel(r.IntN(2)), Since: r.time(), Hold: time.Duration(r.IntN(65536)) * time.Second, Took: time.Duration(r.Uint32()) * time.Millisecond}
		if r.IntN(3) > 0 {
			p.Host = r.addr()
		}
		f.Peers = append(f.Peers, p)
	}
	return f
}

func (r source) stamp() wire.Stamp { return wire.Stamp{Epoch: r.Uint64(), Seq: r.Uint64()} }

func (r source) update() *wire.Update {
	u := &wire.Update{Origin: r.addr(), Epoch: r.Uint64(), Seq: r.Uint64(), FaultAt: r.time(), SentAt: r.time(), ReflectedAt: r.time()}
	if r.IntN(3) == 0 {
		u.Settings = &wire.Settings{Halt: wire.Halt{On: r.IntN(2) == 0, OpenZoning: r.IntN(2) == 0}, AutoJoin: r.IntN(2) == 0, Hard: r.IntN(2) == 0,
			BFD: wire.BFDSettings{Enabled: r.IntN(2) == 0, MeshAll: r.IntN(2) == 0, Interval: time.Duration(r.IntN(60_000_000)) * time.Microsecond, DetectMult: uint8(r.IntN(256))}}
	}
	for range r.IntN(3) {
		u.Devices = append(u.Devices, wire.DeviceStamp{Device: r.addr(), Stamp: r.stamp()})
	}
	if r.IntN(2) == 0 {
		u.Pos = r.stamp()
	}
	u.Partial, u.More = r.IntN(3) == 0, r.IntN(3) == 0
	if r.IntN(4) == 0 {
		u.Refused = &wire.Refusal{Hosts: r.Uint32(), Limit: r.Uint32(), Again: r.IntN(2) == 0, Outside: r.Uint32()}
		for range r.IntN(4) {
			u.Refused.Named = append(u.Refused.Named, r.addr())
		}
	}
	u.Cluster = r.cluster()
	for range r.IntN(3) {
		z := wire.ZoneRecord{Op: r.op(), Zone: zone.Zone{Name: r.name(60)}}
		for range r.IntN(5) * int(2-z.Op) {
			z.Zone.Members = append(z.Zone.Members, r.member())
		}
		u.Zones = append(u.Zones, z)
	}
	for range r.IntN(4) {
		u.Hosts = append(u.Hosts, r.host())
	}
	for range r.IntN(3) {
		u.Downs = append(u.Downs, r.downs())
	}
	for range r.IntN(3) {
		u.Fences = append(u.Fences, r.fence())
	}
	return u
}

func (r source) cluster() (s wire.ClusterStamp) {
	if r.IntN(3) == 0 {
		s = wire.ClusterStamp{ID: r.Uint64() | 1, Index: r.Uint64()}
	}
	return s
}

func (r source) addrs(most int) (list []netip.Addr) {
	for range r.IntN(most + 1) {
		list = append(list, r.addr())
	}
	return list
}

func (r source) open() *wire.Open {
	o := &wire.Open{Device: r.addr(), Roles: wire.Roles(1 + r.IntN(3)), MinVersion: 1, MaxVersion: uint8(1 + r.IntN(3)), Caps: wire.Capabilities(r.Uint64()),
		Hold: time.Duration(300+r.IntN(1_000_000)) * time.Millisecond, Keepalive: time.Duration(100+r.IntN(200)) * time.Millisecond, Epoch: r.Uint64(), Auth: wire.AuthMode(1 + r.IntN(3))}
	for i := range o.Nonce {
		o.Nonce[i] = byte(r.IntN(256))
	}
	if r.IntN(2) == 0 {
		o.Resume = &wire.Resume{Epoch: r.Uint64(), Seq: r.Uint64()}
		if r.IntN(2) == 0 {
			for i := range o.Resume.Zones {
				o.Resume.Zones[i] = byte(r.Uint32())
			}
		}
	}
	return o
}

func (r source) pathKeys() wire.Message {
	m := &wire.PathKeys{}
	switch r.IntN(3) {
	case 0:
		for range r.IntN(4) {
			m.Asked = append(m.Asked, r.addr())
		}
	case 1:
		for range r.IntN(4) {
			k := wire.PathKey{Device: r.addr(), ID: uint8(r.Uint32())}
			for i := range k.Secret {
				k.Secret[i] = byte(r.Uint32())
			}
			m.Keys = append(m.Keys, k)
		}
	default:
		m.Sealed = make([]byte, 16+r.IntN(64))
		for i := range m.Sealed {
			m.Sealed[i] = byte(r.Uint32())
		}
	}
	return m
}

func (r source) bound() wire.Message {
	m := &wire.Bound{}
	for range r.IntN(3) {
		a := r.addr()
		p, _ := a.Prefix(r.IntN(a.BitLen() + 1))
		m.Prefixes = append(m.Prefixes, p)
		m.NQNs = append(m.NQNs, "n"+r.name(100))
	}
	return m
}

// message is any message that follows the Opens.
func (r source) message() wire.Message {
	switch r.IntN(13) {
	case 12:
		return r.bound()
	case 11:
		return r.pathKeys()
	case 3:
		m := &wire.Report{}
		for range r.IntN(4) {
			m.Warnings = append(m.Warnings, wire.ReportedWarning{Rule: r.name(60), Text: r.name(250)})
		}
		return m
	case 0:
		k := &wire.Keepalive{Demand: r.Uint64() * uint64(r.IntN(2)), Answer: r.Uint64() * uint64(r.IntN(2))}
		if r.IntN(2) == 0 {
			k.Proof = make([]byte, wire.ProofLen)
			for i := range k.Proof {
				k.Proof[i] = byte(r.Uint32())
			}
		}
		return k
	case 1:
		return &wire.EndOfSync{Epoch: r.Uint64(), Seq: r.Uint64(), Resumed: r.IntN(2) == 0, Cluster: r.cluster(), Short: r.addrs(3), Members: r.addrs(3)}
	case 2:
		return &wire.Notification{Code: wire.Code(1 + r.IntN(22)), Text: r.name(300)}
	}
	return r.update()
}
