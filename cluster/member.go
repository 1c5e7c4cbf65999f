package cluster

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"
)

// MemberID is a member in one incarnation: with the state it has on disk. A member
// that lost its disk has another incarnation, and is another member.
type MemberID struct {
	Device      netip.Addr
	Incarnation uint64
}

// String returns DEVICE/INCARNATION, the latter in hexadecimal.
func (m MemberID) String() string { return fmt.Sprintf("%s/%016x", m.Device, m.Incarnation) }

// ParseMemberID is the inverse of String.
func ParseMemberID(s string) (MemberID, error) {
	dev, inc, ok := strings.Cut(s, "/")
	a, err := netip.ParseAddr(dev)
	n, err2 := strconv.ParseUint(inc, 16, 64)
	switch {
	case !ok || err != nil || err2 != nil || len(inc) != 16:
		return MemberID{}, broken("member id", "%.100q is not DEVICE/INCARNATION", s)
	case a.Is4In6():
		return MemberID{}, broken("member id", "%v is an IPv4 address in IPv6 form", a)
	}
	return MemberID{a, n}, nil
}

// MarshalText implements encoding.TextMarshaler.
func (m MemberID) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *MemberID) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMemberID(string(b))
	return err
}

// route is where the library's transport reaches a member: the incarnation it is to be, and the
// address. With it a connection to one incarnation is never used for another one.
func route(id raft.ServerID, addr raft.ServerAddress) raft.ServerAddress {
	return raft.ServerAddress(id) + "@" + addr
}

// peerOf returns the member and the address of a server; addr may be a route to it.
func peerOf(id raft.ServerID, addr raft.ServerAddress) (MemberID, netip.AddrPort, error) {
	who, err := ParseMemberID(string(id))
	if err != nil {
		return who, netip.AddrPort{}, err
	}
	at, err := netip.ParseAddrPort(string(addr)[strings.IndexByte(string(addr), '@')+1:])
	if err != nil {
		return who, at, fmt.Errorf("member %s: %w", id, err)
	}
	return who, at, nil
}
