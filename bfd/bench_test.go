package bfd

import (
	"net/netip"
	"testing"
	"time"
)

func BenchmarkEncode(b *testing.B) {
	p := goldens[1].packet
	buf := make([]byte, 0, maxPacket)
	b.ReportAllocs()
	for b.Loop() {
		buf = p.Append(buf[:0])
	}
}

func BenchmarkDecode(b *testing.B) {
	raw := goldens[1].bytes
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// meshOf brings n multihop sessions Up and gives a packet of each peer.
func meshOf(tb testing.TB, n int, auth *Auth) (m *Manager, arrivals []Arrival, packets [][]byte, now time.Time) {
	tb.Helper()
	now = t0
	m = NewManager(Config{Seed: 1}, now)
	wanted := make([]Peer, n)
	for i := range wanted {
		wanted[i] = Peer{Key: Key{Peer: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), Local: addrA, Multihop: true}, Timers: every(50*ms, 3), Auth: auth}
	}
	if err := m.Reconcile(wanted, now); err != nil {
		tb.Fatal(err)
	}
	for _, w := range wanted {
		a := Arrival{Src: w.Peer, Dst: w.Local, Multihop: true, TTL: 255}
		p := Packet{DetectMult: 255, MyDiscr: 1, YourDiscr: m.byKey[w.index()].localDiscr, DesiredMinTx: 50_000, RequiredMinRx: 50_000}
		signer := newAuthState(auth, 0)
		var raw []byte
		for _, st := range []State{StateDown, StateInit, StateUp} {
			p.State, p.Final = st, st == StateUp
			if auth != nil {
				p.Auth = signer.section(0, 0)
			}
			raw = p.Append(nil)
			if auth != nil {
				signer.sign(raw, 0)
			}
			if err := m.Receive(&a, raw, now); err != nil {
				tb.Fatal(err)
			}
		}
		arrivals, packets = append(arrivals, a), append(packets, raw)
	}
	m.Events()
	m.Sends()
	return m, arrivals, packets, now
}

func benchmarkReceive(b *testing.B, auth *Auth) {
	m, arrivals, packets, now := meshOf(b, 1024, auth)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		now = now.Add(time.Microsecond)
		if err := m.Receive(&arrivals[i], packets[i], now); err != nil {
			b.Fatal(err)
		}
		m.Sends()
		if i++; i == len(packets) {
			i = 0
		}
	}
}

func BenchmarkReceive(b *testing.B) { benchmarkReceive(b, nil) }

func BenchmarkReceiveSHA1(b *testing.B) {
	benchmarkReceive(b, &Auth{Type: AuthSHA1, Keys: []AuthKey{{ID: 1, Secret: []byte("key")}}})
}

// One periodic packet of one of 1,024 sessions, with its timers.
func BenchmarkTransmit(b *testing.B) {
	m, _, _, _ := meshOf(b, 1024, nil)
	for _, s := range m.byDiscr {
		s.detectAt = farOff // nothing is received here
		m.arm(s)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for sent := 0; sent < b.N; { // a Tick sends many
		m.Tick(m.Next())
		sent += len(m.Sends())
	}
}

// A packet, good or bad, costs no memory once all is set up.
func TestNoAllocationPerPacket(t *testing.T) {
	for name, auth := range map[string]*Auth{"none": nil, "SHA1": {Type: AuthSHA1, Keys: []AuthKey{{ID: 1, Secret: []byte("key")}}}} {
		m, arrivals, packets, now := meshOf(t, 64, auth)
		if n := testing.AllocsPerRun(1000, func() {
			now = now.Add(ms / 64)
			m.Wake(now)
			for i := range packets {
				if err := m.Receive(&arrivals[i], packets[i], now); err != nil {
					t.Fatal(err)
				}
			}
			m.Tick(now)
			m.Sends()
			m.Events()
			m.Next()
		}); n != 0 {
			t.Errorf("authentication %s: %v allocations per 64 packets", name, n)
		}
	}
}
