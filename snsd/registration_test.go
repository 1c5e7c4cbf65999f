package snsd

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tlv is a registration of 192.0.2.11 that the cases below change.
func tlv(change func(b []byte) []byte) []byte {
	b, err := goldenRegistration.AppendTLV(nil)
	if err != nil {
		panic(err)
	}
	return change(b)
}

func with(at int, v ...byte) func(b []byte) []byte {
	return func(b []byte) []byte { copy(b[at:], v); return b }
}

func v6(s string) func(b []byte) []byte {
	a := netip.MustParseAddr(s).As16()
	return func(b []byte) []byte { b[5] = 0x82; copy(b[8:], a[:]); return b }
}

func TestParseRegistrationRefuses(t *testing.T) {
	cases := []struct {
		name  string
		value []byte
		want  error
		text  string // must be named by the error
	}{
		{"nothing", nil, ErrForeign, ""},
		{"other OUI", tlv(with(0, 0x00, 0x80, 0xc2)), ErrForeign, "00 80 c2"},
		{"other subtype", tlv(with(3, 102)), ErrForeign, ""},
		{"header only", tlv(func(b []byte) []byte { return b[:4] }), ErrTruncated, "4 bytes"},
		{"one byte short", tlv(func(b []byte) []byte { return b[:29] }), ErrTruncated, "29 bytes"},
		{"newer version", tlv(with(4, 2)), ErrVersion, "version 2"},
		{"version 0", tlv(with(4, 0)), ErrVersion, "version 0"},
		{"no family", tlv(with(5, 0x80)), ErrFamily, "0"},
		{"unknown family", tlv(with(5, 0x83)), ErrFamily, "3"},
		{"unspecified", tlv(with(8, 0, 0, 0, 0)), ErrAddress, "0.0.0.0"},
		{"loopback", tlv(with(8, 127, 0, 0, 1)), ErrAddress, "loopback"},
		{"multicast", tlv(with(8, 224, 0, 0, 1)), ErrAddress, "multicast"},
		{"link-local", tlv(with(8, 169, 254, 1, 1)), ErrAddress, "link-local"},
		{"broadcast", tlv(with(8, 255, 255, 255, 255)), ErrAddress, "broadcast"},
		{"unspecified v6", tlv(v6("::")), ErrAddress, "unspecified"},
		{"loopback v6", tlv(v6("::1")), ErrAddress, "loopback"},
		{"multicast v6", tlv(v6("ff02::1")), ErrAddress, "multicast"},
		{"link-local v6", tlv(v6("fe80::1")), ErrAddress, "fe80::1"},
		{"loopback in IPv6", tlv(v6("::ffff:127.0.0.1")), ErrAddress, "loopback"},
		{"unspecified in IPv6", tlv(v6("::ffff:0.0.0.0")), ErrAddress, "unspecified"},
		{"NQN cut", tlv(with(30, 1)), ErrTruncated, "of 1 bytes where 0 are left"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, err := ParseRegistration(c.value)
			var typed *Error
			if !errors.Is(err, c.want) || !errors.As(err, &typed) {
				t.Fatalf("error %v, want *Error with %v", err, c.want)
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %q does not name %q", err, c.text)
			}
			if r != (Registration{}) {
				t.Errorf("refused, but gave %+v", r)
			}
		})
	}
}

func TestParseRegistrationTolerates(t *testing.T) {
	nqn := func(s string) func(b []byte) []byte {
		return func(b []byte) []byte { b[30] = byte(len(s)); return append(b, s...) }
	}
	cases := []struct {
		name   string
		value  []byte
		odd    Oddity
		change func(r *Registration)
	}{
		{"as sent", tlv(nqn("")), 0, func(*Registration) {}},
		{"no NQN length", tlv(func(b []byte) []byte { return b[:30] }), OddNoNQNLen, func(*Registration) {}},
		{"NQN", tlv(nqn("nqn.2026-11.test:x")), 0, func(r *Registration) { r.NQN = "nqn.2026-11.test:x" }},
		{"longest NQN", tlv(nqn(strings.Repeat("n", 255))), 0, func(r *Registration) { r.NQN = strings.Repeat("n", 255) }},
		{"NQN with a C string's end", tlv(nqn("nqn.x\x00\x00")), 0, func(r *Registration) { r.NQN = "nqn.x" }},
		{"NQN with escape codes", tlv(nqn("\x1b[2J")), OddNQN, func(*Registration) {}},
		{"NQN not UTF-8", tlv(nqn("nqn.\xff")), OddNQN, func(*Registration) {}},
		{"trailing bytes", tlv(func(b []byte) []byte { return append(b, 1, 2, 3) }), 0, func(*Registration) {}},
		{"unknown role", tlv(with(24, 9)), OddRole, func(r *Registration) { r.Role = RoleUnknown }},
		{"unknown protocol", tlv(with(25, 200)), OddProtocol, func(r *Registration) { r.Protocol = ProtocolUnknown }},
		{"both unknown", tlv(with(24, 4, 4)), OddRole | OddProtocol, func(r *Registration) { r.Role, r.Protocol = 0, 0 }},
		{"no subscription", tlv(with(5, 0x01)), 0, func(r *Registration) { r.Subscribes = false }},
		{"other service type", tlv(with(5, 0xf1)), 0, func(*Registration) {}},
		{"reserved in use", tlv(with(6, 0xff, 0xff)), 0, func(*Registration) {}},
		{"dirty address area", tlv(with(12, 0xff)), 0, func(*Registration) {}},
		{"IPv6", tlv(v6("2001:db8::11")), 0, func(r *Registration) { r.Addr = netip.MustParseAddr("2001:db8::11") }},
		{"IPv4 in IPv6", tlv(v6("::ffff:192.0.2.1")), 0, func(r *Registration) { r.Addr = netip.MustParseAddr("192.0.2.1") }},
		{"target on a port", tlv(with(24, 1, 2, 2, 0, 0x1f, 0x49)), 0, func(r *Registration) {
			r.Role, r.Protocol, r.ProtoVer, r.Service.Port = RoleTarget, ProtocolTCP, 0x0200, 8009
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := goldenRegistration
			c.change(&want)
			got, odd, err := InspectRegistration(c.value)
			if err != nil || odd != c.odd {
				t.Errorf("odd %b, want %b, %v", odd, c.odd, err)
			}
			if d := cmp.Diff(want, got, cmpAddr); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAppendTLVRefusesWhatItCouldNotRead(t *testing.T) {
	for _, r := range []Registration{
		{},
		{Addr: netip.MustParseAddr("fe80::1%eth0")},
		{Addr: netip.MustParseAddr("127.0.0.1")},
		{Addr: hostAddr, Service: Service{NQN: strings.Repeat("x", 256)}},
		{Addr: hostAddr, Service: Service{NQN: "a\nb"}},
	} {
		if b, err := r.AppendTLV([]byte{1}); err == nil || len(b) != 1 {
			t.Errorf("%+v: %d bytes, %v", r, len(b), err)
		}
	}
}

func drawAddr(t *rapid.T, v6 bool, label string) netip.Addr {
	return rapid.Custom(func(t *rapid.T) netip.Addr {
		if v6 {
			return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "v6")))
		}
		return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4")))
	}).Filter(func(a netip.Addr) bool { return CheckAddr(a) == nil }).Draw(t, label)
}

func drawService(t *rapid.T) Service {
	return Service{
		Role:     Role(rapid.IntRange(0, 3).Draw(t, "role")),
		Protocol: Protocol(rapid.IntRange(0, 3).Draw(t, "protocol")),
		Port:     rapid.Uint16().Draw(t, "port"),
		NQN:      rapid.StringMatching(`([a-zé:.0-9-]{1,100})?`).Draw(t, "nqn"),
	}
}

func TestRegistrationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Registration{
			Addr:       drawAddr(t, rapid.Bool().Draw(t, "v6"), "addr"),
			Subscribes: rapid.Bool().Draw(t, "subscribes"),
			ProtoVer:   rapid.Uint16().Draw(t, "version"),
			Service:    drawService(t),
		}
		b, err := want.AppendTLV([]byte("keep"))
		if err != nil || !bytes.HasPrefix(b, []byte("keep")) || len(b)-4 > MaxRegistrationTLV {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		got, odd, err := InspectRegistration(b[4:])
		if err != nil || odd != 0 || got != want {
			t.Fatalf("got %+v, odd %b, %v; want %+v", got, odd, err, want)
		}
	})
}

func FuzzParseRegistration(f *testing.F) {
	f.Add(tlv(with(0, 0x00)))
	f.Add(tlv(v6("2001:db8::1")))
	f.Add(tlv(func(b []byte) []byte { return b[:30] }))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRegistration(b)
		if err != nil {
			return
		}
		back, err := r.AppendTLV(nil)
		if err != nil {
			t.Fatalf("read %+v but cannot write it: %v", r, err)
		}
		if again, err := ParseRegistration(back); err != nil || again != r {
			t.Fatalf("read %+v, wrote and read %+v, %v", r, again, err)
		}
	})
}

func BenchmarkParseRegistration(b *testing.B) {
	r := goldenRegistration
	r.NQN = "nqn.2014-08.org.nvmexpress:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	value, _ := r.AppendTLV(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseRegistration(value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendRegistrationPDU(b *testing.B) {
	p := RegistrationPDU{MAC: hostMAC, PortID: "snsd_eth0_01", TTL: 120, Registration: goldenRegistration}
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := AppendRegistrationPDU(buf, &p); err != nil {
			b.Fatal(err)
		}
	}
}
