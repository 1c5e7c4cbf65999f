package bfd

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// goldens are packets as RFC 5880 section 4.1 draws them.
var goldens = []struct {
	name   string
	packet Packet
	bytes  []byte
}{
	{"down, nothing known", Packet{State: StateDown, DetectMult: 3, MyDiscr: 1, DesiredMinTx: 1_000_000, RequiredMinRx: 100_000}, []byte{
		0x20, 0x40, 3, 24, // Vers 1, Diag 0; Sta Down; Detect Mult; Length
		0, 0, 0, 1, // My Discriminator
		0, 0, 0, 0, // Your Discriminator
		0x00, 0x0f, 0x42, 0x40, // Desired Min TX 1 s
		0x00, 0x01, 0x86, 0xa0, // Required Min RX 100 ms
		0, 0, 0, 0, // Required Min Echo RX
	}},
	{"up, polling", Packet{State: StateUp, Poll: true, DetectMult: 50, MyDiscr: 0x01020304, YourDiscr: 0xa1b2c3d4, DesiredMinTx: 3000, RequiredMinRx: 3000, RequiredMinEchoRx: 50_000}, []byte{
		0x20, 0xe0, 50, 24,
		1, 2, 3, 4,
		0xa1, 0xb2, 0xc3, 0xd4,
		0, 0, 0x0b, 0xb8,
		0, 0, 0x0b, 0xb8,
		0, 0, 0xc3, 0x50,
	}},
	{"admin down, final, every flag", Packet{Diag: DiagAdminDown, State: StateAdminDown, Final: true, CPI: true, Demand: true, DetectMult: 1, MyDiscr: 0xffffffff, DesiredMinTx: 0xffffffff, RequiredMinRx: 0}, []byte{
		0x27, 0x1a, 1, 24,
		0xff, 0xff, 0xff, 0xff,
		0, 0, 0, 0,
		0xff, 0xff, 0xff, 0xff,
		0, 0, 0, 0,
		0, 0, 0, 0,
	}},
	{"up, meticulous keyed SHA1", Packet{State: StateUp, DetectMult: 3, MyDiscr: 5, YourDiscr: 6, DesiredMinTx: 100_000, RequiredMinRx: 100_000,
		Auth: AuthSection{Type: AuthMeticulousSHA1, KeyID: 7, Seq: 0x01020304, Hash: [20]byte{0xaa, 19: 0xbb}}}, []byte{
		0x20, 0xc4, 3, 52,
		0, 0, 0, 5,
		0, 0, 0, 6,
		0, 1, 0x86, 0xa0,
		0, 1, 0x86, 0xa0,
		0, 0, 0, 0,
		5, 28, 7, 0, // Auth Type, Auth Len, Auth Key ID, Reserved
		1, 2, 3, 4, // Sequence Number
		0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbb,
	}},
}

func TestPacketGoldenBytes(t *testing.T) {
	for _, g := range goldens {
		if got := g.packet.Append(nil); !bytes.Equal(got, g.bytes) {
			t.Errorf("%s: Append\n got %x\nwant %x", g.name, got, g.bytes)
		}
		got, err := Parse(append(bytes.Clone(g.bytes), 0xee, 0xee)) // bytes behind Length are ignored
		if err != nil {
			t.Errorf("%s: Parse: %v", g.name, err)
		} else if d := cmp.Diff(g.packet, got); d != "" {
			t.Errorf("%s: Parse (-want +got):\n%s", g.name, d)
		}
	}
}

func TestPacketDiscards(t *testing.T) {
	up, signed := goldens[1].bytes, goldens[3].bytes
	set := func(b []byte, at int, v ...byte) []byte { b = bytes.Clone(b); copy(b[at:], v); return b }
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, ErrLength},
		{"23 bytes", up[:23], ErrLength},
		{"version 0", set(up, 0, 0x00), ErrVersion},
		{"version 2", set(up, 0, 0x40), ErrVersion},
		{"Length 23", set(up, 3, 23), ErrLength},
		{"Length 25 with the A bit", set(signed, 3, 25), ErrLength},
		{"Length beyond the payload", set(up, 3, 25), ErrLength},
		{"Detect Mult 0", set(up, 2, 0), ErrDetectMult},
		{"multipoint", set(up, 1, 0xe1), ErrMultipoint},
		{"My Discriminator 0", set(up, 4, 0, 0, 0, 0), ErrMyDiscr},
		{"Poll and Final", set(up, 1, 0xf0), ErrPollFinal},
		{"Up without Your Discriminator", set(up, 8, 0, 0, 0, 0), ErrYourDiscr},
		{"Init without Your Discriminator", set(set(up, 8, 0, 0, 0, 0), 1, 0x80), ErrYourDiscr},
		{"Auth Len 0", set(signed, 25, 0), ErrLength},
		{"Auth Len beyond Length", set(signed, 25, 29), ErrLength},
		{"SHA1 with Auth Len 27", set(signed, 25, 27), ErrLength},
		{"Auth Type 0", set(signed, 24, 0), ErrAuth},
	} {
		_, err := Parse(c.b)
		var pe *PacketError
		if !errors.Is(err, c.want) || !errors.As(err, &pe) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestPacketOfOtherAuthenticationTypeIsParsed(t *testing.T) {
	b := append(bytes.Clone(goldens[1].bytes), 1, 6, 9, 'p', 'w', 'd')
	b[1] |= bitAuth
	b[3] = 30
	p, err := Parse(b)
	if err != nil || p.Auth.Type != AuthSimplePassword || p.Auth.KeyID != 9 {
		t.Errorf("got %+v, %v", p.Auth, err)
	}
}

func drawPacket(t *rapid.T) Packet {
	p := Packet{
		Diag: Diag(rapid.IntRange(0, 31).Draw(t, "diag")), State: State(rapid.IntRange(0, 3).Draw(t, "state")),
		CPI: rapid.Bool().Draw(t, "C"), Demand: rapid.Bool().Draw(t, "D"), DetectMult: uint8(rapid.IntRange(1, 255).Draw(t, "mult")),
		MyDiscr: rapid.Uint32Min(1).Draw(t, "my"), YourDiscr: rapid.Uint32Min(1).Draw(t, "your"),
		DesiredMinTx: rapid.Uint32().Draw(t, "tx"), RequiredMinRx: rapid.Uint32().Draw(t, "rx"), RequiredMinEchoRx: rapid.Uint32().Draw(t, "echo"),
	}
	switch rapid.IntRange(0, 2).Draw(t, "poll") {
	case 1:
		p.Poll = true
	case 2:
		p.Final = true
	}
	if rapid.Bool().Draw(t, "A") {
		p.Auth = AuthSection{Type: AuthType(rapid.IntRange(4, 5).Draw(t, "auth")), KeyID: rapid.Byte().Draw(t, "key"), Seq: rapid.Uint32().Draw(t, "seq")}
		copy(p.Auth.Hash[:], rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "hash"))
	}
	return p
}

func TestPacketRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawPacket(t)
		got, err := Parse(want.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzPacket(f *testing.F) {
	for _, g := range goldens {
		f.Add(g.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			return
		}
		// What was understood is encoded the same, but for sections of other types
		// and reserved bytes.
		q, err := Parse(p.Append(nil))
		if !p.Auth.Type.sha1() {
			p.Auth = AuthSection{}
		}
		if err != nil || p != q {
			t.Fatalf("%+v became %+v, %v", p, q, err)
		}
	})
}

// The hash is that of RFC 5880 section 6.7.4: over the packet with the key, padded
// with zeros, where the hash goes.
func TestAuthHashIsSHA1OverPacketWithKey(t *testing.T) {
	s := newAuthState(&Auth{Type: AuthSHA1, Keys: []AuthKey{{ID: 9, Secret: []byte("secret")}}}, 41)
	p := goldens[1].packet
	p.Auth = s.section(0, 0)
	b := p.Append(nil)
	s.sign(b, 0)
	want := append(bytes.Clone(b[:hashAt]), "secret\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	if h := sha1.Sum(want); !bytes.Equal(h[:], b[hashAt:]) {
		t.Errorf("hash is %x, want %x", b[hashAt:], h)
	}
	if b[26] != 9 || !bytes.Equal(b[28:32], []byte{0, 0, 0, 42}) {
		t.Errorf("key id and sequence number are %x", b[26:32])
	}
}

func TestAuthChecks(t *testing.T) {
	cfg := &Auth{Type: AuthMeticulousSHA1, Keys: []AuthKey{{ID: 1, Secret: []byte("one")}, {ID: 2, Secret: []byte("two")}}}
	made := func(typ AuthType, key AuthKey, seq uint32) []byte {
		s := newAuthState(&Auth{Type: typ, Keys: []AuthKey{key}}, seq-1)
		p := goldens[1].packet // Detect Mult 50
		p.DetectMult = 3
		p.Auth = s.section(0, 0)
		b := p.Append(nil)
		s.sign(b, 0)
		return b
	}
	one, two := cfg.Keys[0], cfg.Keys[1]
	altered := made(AuthMeticulousSHA1, one, 101)
	altered[12] ^= 1
	for _, c := range []struct {
		name string
		typ  AuthType // of the receiver
		b    []byte
		want error
	}{
		{"next", AuthMeticulousSHA1, made(AuthMeticulousSHA1, one, 101), nil},
		{"the other key", AuthMeticulousSHA1, made(AuthMeticulousSHA1, two, 101), nil},
		{"meticulous: the same sequence number", AuthMeticulousSHA1, made(AuthMeticulousSHA1, one, 100), ErrAuthSeq},
		{"keyed: the same sequence number", AuthSHA1, made(AuthSHA1, one, 100), nil},
		{"before", AuthSHA1, made(AuthSHA1, one, 99), ErrAuthSeq},
		{"3 x Detect Mult ahead", AuthMeticulousSHA1, made(AuthMeticulousSHA1, one, 109), nil},
		{"one more", AuthMeticulousSHA1, made(AuthMeticulousSHA1, one, 110), ErrAuthSeq},
		{"altered", AuthMeticulousSHA1, altered, ErrAuth},
		{"wrong secret", AuthMeticulousSHA1, made(AuthMeticulousSHA1, AuthKey{ID: 1, Secret: []byte("uno")}, 101), ErrAuth},
		{"unknown key", AuthMeticulousSHA1, made(AuthMeticulousSHA1, AuthKey{ID: 3, Secret: []byte("one")}, 101), ErrAuth},
		{"another type", AuthMeticulousSHA1, made(AuthSHA1, one, 101), ErrAuth},
	} {
		s := newAuthState(cfg, 0)
		s.typ, s.rcvSeq, s.seqKnown = c.typ, 100, true
		p, err := Parse(c.b)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		before := *s
		if err := s.check(&p, c.b, 1); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		} else if err != nil && (s.rcvSeq != before.rcvSeq || s.seqKnown != before.seqKnown) {
			t.Errorf("%s: a refused packet changed the window", c.name)
		} else if err == nil && s.rcvSeq != p.Auth.Seq {
			t.Errorf("%s: the window did not move", c.name)
		}
	}
}

// Section 6.7.3: the window is circular.
func TestAuthWindowWrapsAround(t *testing.T) {
	s := &authState{typ: AuthMeticulousSHA1, rcvSeq: 0xffffffff, seqKnown: true}
	for seq, want := range map[uint32]bool{0xffffffff: false, 0: true, 8: true, 9: false, 0xfffffffe: false} {
		if s.inWindow(seq, 3) != want {
			t.Errorf("sequence number %#x: accepted is %v", seq, !want)
		}
	}
}

func TestAuthValidate(t *testing.T) {
	key := AuthKey{ID: 1, Secret: []byte("x")}
	for _, c := range []struct {
		name string
		a    *Auth
		ok   bool
	}{
		{"none", nil, true},
		{"type none", &Auth{}, true},
		{"SHA1", &Auth{Type: AuthSHA1, Keys: []AuthKey{key}}, true},
		{"simple password is not offered", &Auth{Type: AuthSimplePassword, Keys: []AuthKey{key}}, false},
		{"nor MD5", &Auth{Type: AuthMeticulousMD5, Keys: []AuthKey{key}}, false},
		{"no key", &Auth{Type: AuthSHA1, Keys: nil}, false},
		{"empty key", &Auth{Type: AuthSHA1, Keys: []AuthKey{{ID: 1}}}, false},
		{"21 bytes", &Auth{Type: AuthSHA1, Keys: []AuthKey{{ID: 1, Secret: make([]byte, 21)}}}, false},
		{"an id twice with other secrets", &Auth{Type: AuthSHA1, Keys: []AuthKey{key, {ID: key.ID, Secret: []byte("another")}}}, true},
		{"a key twice", &Auth{Type: AuthSHA1, Keys: []AuthKey{key, key}}, false},
	} {
		if err := c.a.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
