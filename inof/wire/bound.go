package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Bound tells a client which hosts the reflector lets it have: at the beginning of each
// session, and when that changes. It replaces the one before; one without prefixes and names
// binds the client to nothing. The client needs it for its own hosts: what a host outside of it
// claims to be no reflector knows, but its own switch does.
type Bound struct {
	Prefixes []netip.Prefix // of the hosts' addresses, at most MaxBound; empty: any
	NQNs     []string       // exact, or with * and ?, at most MaxBound; empty: any
	Hosts    []DeclaredHost // at most MaxBound; only to peers that announced CapDeclared
}

// DeclaredHost is a host that registers nothing: a client has it while exactly one of its ports
// with these names answers for the address.
type DeclaredHost struct {
	Addr    netip.Addr
	Service snsd.Service
	Ports   []string // names as in ports.access, 1..MaxDeclaredPorts
}

// Equal reports whether two declare the same.
func (h DeclaredHost) Equal(o DeclaredHost) bool {
	return h.Addr == o.Addr && h.Service == o.Service && slices.Equal(h.Ports, o.Ports)
}

const (
	// MaxBound is how many prefixes, and how many names, a device may be bound to.
	MaxBound = 1024
	// maxBoundName is the longest of these names in bytes.
	MaxBoundName = snsd.MaxNQN
	// MaxDeclaredPorts is how many names of ports a declared host may have, so that MaxBound of
	// all fit one message.
	MaxDeclaredPorts = 4
)

// TLV types of a Bound (docs/protocol.md, "Bound"), each any number of times.
const (
	tlvBoundPrefix uint8 = 1 // address, number of bits u8
	tlvBoundName   uint8 = 2 // text
	tlvBoundHost   uint8 = 3 // address, role u8, protocol u8, service port u16, text NQN, text port ...
)

// Type implements Message.
func (*Bound) Type() MsgType { return TypeBound }

// Binding is what the message says; how many hosts the client may have it does not say.
func (m *Bound) Binding() Binding { return Binding{Prefixes: m.Prefixes, NQNs: m.NQNs} }

func (m *Bound) appendBody(b []byte) ([]byte, error) {
	if n := max(len(m.Prefixes), len(m.NQNs), len(m.Hosts)); n > MaxBound {
		return nil, Malformed("Bound", "%d prefixes, names or hosts, want at most %d", n, MaxBound)
	}
	var at int
	for _, p := range m.Prefixes {
		if err := CheckAddr("Bound.prefix", p.Addr()); err != nil {
			return nil, err
		}
		if !p.IsValid() || p.Masked() != p {
			return nil, Malformed("Bound.prefix", "%v is no prefix", p)
		}
		b, at = beginTLV(b, tlvBoundPrefix)
		b = endTLV(append(appendAddr(b, p.Addr()), byte(p.Bits())), at)
	}
	for _, name := range m.NQNs {
		if err := checkText("Bound.name", name, 1, MaxBoundName); err != nil {
			return nil, err
		}
		b, at = beginTLV(b, tlvBoundName)
		b = endTLV(appendText(b, name), at)
	}
	for i := range m.Hosts {
		h := &m.Hosts[i]
		if err := CheckAddr("Bound.host", h.Addr); err != nil {
			return nil, err
		}
		if err := checkText("Bound.host.nqn", h.Service.NQN, 0, snsd.MaxNQN); err != nil {
			return nil, err
		}
		if n := len(h.Ports); n < 1 || n > MaxDeclaredPorts {
			return nil, Malformed("Bound.host", "%d ports, want 1..%d", n, MaxDeclaredPorts)
		}
		b, at = beginTLV(b, tlvBoundHost)
		b = append(appendAddr(b, h.Addr), byte(h.Service.Role), byte(h.Service.Protocol))
		b = appendText(binary.BigEndian.AppendUint16(b, h.Service.Port), h.Service.NQN)
		for _, p := range h.Ports {
			if err := checkText("Bound.host.port", p, 1, fabric.MaxPortName); err != nil {
				return nil, err
			}
			b = appendText(b, p)
		}
		b = endTLV(b, at)
	}
	return b, nil
}

func decodeDeclared(r *reader) DeclaredHost {
	h := DeclaredHost{Addr: r.addr("host.address")}
	h.Service.Role, h.Service.Protocol = snsd.Role(r.u8("host.role")), snsd.Protocol(r.u8("host.protocol"))
	h.Service.Port = r.u16("host.service port")
	h.Service.NQN = r.text("host.nqn", 0, snsd.MaxNQN)
	for r.err == nil && (len(h.Ports) == 0 || len(r.b) > 0) {
		if len(h.Ports) == MaxDeclaredPorts {
			r.fail("host.ports", "more than %d", MaxDeclaredPorts)
			break
		}
		h.Ports = append(h.Ports, r.text("host.port", 1, fabric.MaxPortName))
	}
	return h
}

func readBound(body []byte) (*Bound, error) {
	var m Bound
	err := eachTLV("Bound", body, func(typ uint8, r *reader) bool {
		switch typ {
		case tlvBoundPrefix:
			a, bits := r.addr("prefix"), int(r.u8("prefix"))
			p := netip.PrefixFrom(a, bits)
			if r.err == nil && (!p.IsValid() || p.Masked() != p) {
				r.fail("prefix", "%v/%d is no prefix", a, bits)
			}
			m.Prefixes = append(m.Prefixes, p)
		case tlvBoundName:
			m.NQNs = append(m.NQNs, r.text("name", 1, MaxBoundName))
		case tlvBoundHost:
			m.Hosts = append(m.Hosts, decodeDeclared(r))
		default:
			return false
		}
		if max(len(m.Prefixes), len(m.NQNs), len(m.Hosts)) > MaxBound {
			r.fail("list", "more than %d", MaxBound)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// Binding says which hosts a device may have. The zero value allows all.
type Binding struct {
	Prefixes []netip.Prefix // an address is in one of them; empty: any address
	// NQNs are exact, or have * (any text) and ? (any character); empty: any. A host that says
	// none is no other's by it, and is allowed.
	NQNs     []string
	MaxHosts int // 0: as many as any device
}

// Equal reports whether two bindings allow the same.
func (b Binding) Equal(o Binding) bool {
	return slices.Equal(b.Prefixes, o.Prefixes) && slices.Equal(b.NQNs, o.NQNs) && b.MaxHosts == o.MaxHosts
}

// Outside says why a host may not be the device's; empty: it may.
func (b Binding) Outside(h *zone.Host) string {
	in := func(p netip.Prefix) bool { return p.Contains(h.Addr) }
	if len(b.Prefixes) > 0 && !slices.ContainsFunc(b.Prefixes, in) {
		return "its address is in none of the prefixes of the device"
	}
	named := func(glob string) bool { return snsd.MatchNQN(glob, h.NQN) }
	if len(b.NQNs) > 0 && h.NQN != "" && !slices.ContainsFunc(b.NQNs, named) {
		return fmt.Sprintf("its NQN %s is none of the device's", h.NQN)
	}
	return ""
}
