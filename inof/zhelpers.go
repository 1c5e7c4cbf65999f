package inof

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// The time at which tests begin, and their first reflector.
var (
	t0     = time.Unix(1_700_000_000, 0).UTC()
	reflID = netip.MustParseAddr("192.0.2.250")
)

// cmpOpts compare messages and records.
var cmpOpts = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()}

// devID is one of 255 devices, from 0.
func devID(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}) }

// hostIP is the address of a host, from 0.
func hostIP(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 51, byte(100 + i/200), byte(i%200 + 1)})
}

// hostAt is a host at a port.
func hostAt(addr netip.Addr, dev netip.Addr, port string) zone.Host {
	return zone.Host{
		HostKey: zone.HostKey{Addr: addr, Device: dev, Port: port},
		MAC:     fabric.MAC{2, 0, 0, 0, 0, addr.AsSlice()[3]}, Subscribes: true, Since: t0,
		Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, NQN: "nqn.2026-01.org.example:" + addr.String()},
	}
}

// failer is what *testing.T, *testing.B and *rapid.T have in common.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// addrMember is a member by its address.
func addrMember(a netip.Addr) zone.Member { return zone.Member{Kind: zone.MemberAddr, First: a} }

// threeZones are two zones of the first three hosts.
var threeZones = zone.Set{Zones: []zone.Zone{
	{Name: "ab", Members: []zone.Member{addrMember(hostIP(0)), addrMember(hostIP(1))}},
	{Name: "c", Members: []zone.Member{addrMember(hostIP(2))}},
}}

// scaleDev is one of many devices.
func scaleDev(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

// scaleHost is one of many addresses.
func scaleHost(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18 + byte(i>>16), byte(i >> 8), byte(i)})
}

// heap is what is in use after a collection, bytes.
// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what had a finalizer or lay in a pool goes with the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// appendHeader writes a header of this version.
func appendHeader(b []byte, length int, t MsgType, flags uint16, seq uint64) []byte {
	return Header{Length: length, Version: Version, Type: t, Flags: flags, Seq: seq}.Append(b)
}

// frameOf is a message as it is first in a session without tags.
func frameOf(t failer, m Message) []byte {
	t.Helper()
	e, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return e.Append(nil, 1, false)
}

// edit gives changed bytes.
func edit(b []byte, f func(b []byte) []byte) []byte { return f(slices.Clone(b)) }

// relength sets the length field to what it should be.
func relength(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

// message is a message without a tag whose body is given in hex, blanks ignored.
func message(t failer, typ MsgType, body string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(body, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return append(appendHeader(nil, HeaderLen+len(b), typ, 0, 1), b...)
}

// through passes a message through the codec.
func through(t failer, m Message) Message {
	e, err := Encode(m)
	if err != nil {
		t.Fatalf("%v: %v", m.Type(), err)
	}
	got, err := decodeBody(e.Type(), e.Body())
	if err != nil {
		t.Fatalf("%v: %v", m.Type(), err)
	}
	return got
}

// isLimit wants err to be, or to hold, the refusal of a record for a full table.
func isLimit(t *testing.T, err error, what string, limit int) {
	t.Helper()
	l, ok := errors.AsType[*LimitError](err)
	if !ok || l.What != what || l.Limit != limit || l.Key == "" {
		t.Errorf("%v; want a limit of %d %s", err, limit, what)
	}
}

func manyHost(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{20, byte(n >> 16), byte(n >> 8), byte(n)})
}

// stamped picks the times of a message.
type stamped struct{ Fault, Decided, Sent, Reflector, Reflected time.Time }

func timesOf(u *Update) stamped {
	return stamped{u.FaultAt, u.DecidedAt, u.SentAt, u.ReflectorAt, u.ReflectedAt}
}

func us(n int) time.Time { return t0.Add(time.Duration(n) * time.Microsecond) }
