// Package inoftest is what the tests of the protocol have in common: devices, hosts, times, the
// examples of docs/protocol.md.
package inoftest

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
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// The time at which tests begin, and their first reflector.
var (
	T0     = time.Unix(1_700_000_000, 0).UTC()
	ReflID = netip.MustParseAddr("192.0.2.250")
)

// cmpOpts compare messages and records.
var CmpOpts = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()}

// devID is one of 255 devices, from 0.
func DevID(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}) }

// hostIP is the address of a host, from 0.
func HostIP(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 51, byte(100 + i/200), byte(i%200 + 1)})
}

// hostAt is a host at a port.
func HostAt(addr netip.Addr, dev netip.Addr, port string) zone.Host {
	return zone.Host{
		HostKey: zone.HostKey{Addr: addr, Device: dev, Port: port},
		MAC:     fabric.MAC{2, 0, 0, 0, 0, addr.AsSlice()[3]}, Subscribes: true, Since: T0,
		Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, NQN: "nqn.2026-01.org.example:" + addr.String()},
	}
}

// failer is what *testing.T, *testing.B and *rapid.T have in common.
type Failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// addrMember is a member by its address.
func AddrMember(a netip.Addr) zone.Member { return zone.Member{Kind: zone.MemberAddr, First: a} }

// threeZones are two zones of the first three hosts.
var ThreeZones = zone.Set{Zones: []zone.Zone{
	{Name: "ab", Members: []zone.Member{AddrMember(HostIP(0)), AddrMember(HostIP(1))}},
	{Name: "c", Members: []zone.Member{AddrMember(HostIP(2))}},
}}

// scaleDev is one of many devices.
func ScaleDev(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

// scaleHost is one of many addresses.
func ScaleHost(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18 + byte(i>>16), byte(i >> 8), byte(i)})
}

// heap is what is in use after a collection, bytes.
// heap is how many bytes are in use.
func Heap() uint64 {
	runtime.GC()
	runtime.GC() // what had a finalizer or lay in a pool goes with the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// appendHeader writes a header of this version.
func AppendHeader(b []byte, length int, t wire.MsgType, flags uint16, seq uint64) []byte {
	return wire.Header{Length: length, Version: wire.Version, Type: t, Flags: flags, Seq: seq}.Append(b)
}

// frameOf is a message as it is first in a session without tags.
func FrameOf(t Failer, m wire.Message) []byte {
	t.Helper()
	e, err := wire.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return e.Append(nil, 1, false)
}

// edit gives changed bytes.
func Edit(b []byte, f func(b []byte) []byte) []byte { return f(slices.Clone(b)) }

// relength sets the length field to what it should be.
func Relength(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

// message is a message without a tag whose body is given in hex, blanks ignored.
func Message(t Failer, typ wire.MsgType, body string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(body, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return append(AppendHeader(nil, wire.HeaderLen+len(b), typ, 0, 1), b...)
}

// through passes a message through the codec.
func Through(t Failer, m wire.Message) wire.Message {
	e, err := wire.Encode(m)
	if err != nil {
		t.Fatalf("%v: %v", m.Type(), err)
	}
	got, err := wire.DecodeBody(e.Type(), e.Body())
	if err != nil {
		t.Fatalf("%v: %v", m.Type(), err)
	}
	return got
}

// isLimit wants err to be, or to hold, the refusal of a record for a full table.
func IsLimit(t *testing.T, err error, what string, limit int) {
	t.Helper()
	l, ok := errors.AsType[*wire.LimitError](err)
	if !ok || l.What != what || l.Limit != limit || l.Key == "" {
		t.Errorf("%v; want a limit of %d %s", err, limit, what)
	}
}

func ManyHost(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{20, byte(n >> 16), byte(n >> 8), byte(n)})
}

// stamped picks the times of a message.
type Stamped struct{ Fault, Decided, Sent, Reflector, Reflected time.Time }

func TimesOf(u *wire.Update) Stamped {
	return Stamped{u.FaultAt, u.DecidedAt, u.SentAt, u.ReflectorAt, u.ReflectedAt}
}

func Us(n int) time.Time { return T0.Add(time.Duration(n) * time.Microsecond) }
