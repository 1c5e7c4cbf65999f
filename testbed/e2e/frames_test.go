package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// evilPorts are the ports of tor1 behind which somebody sends what he likes. They
// are many because the daemon tells at most three errors of one port in ten seconds.
var evilPorts = []string{"eth3", "eth4", "eth5", "eth6"}

func evilFabric(t *testing.T, name string) (*fab, map[string]*tap) {
	links := ""
	for i, p := range evilPorts {
		links += fmt.Sprintf("    - {endpoints: [\"tor1:%s\", \"evil:eth%d\"], mtu: 9000}\n", p, i+1)
	}
	f := newFabric(t, spec{name: name, nodes: "    evil: {kind: linux}\n", links: links})
	wires := make(map[string]*tap)
	for i, p := range evilPorts {
		wires[p] = f.wire("evil", fmt.Sprintf("eth%d", i+1))
	}
	return f, wires
}

// Offsets in registrationOf's LLDPDU: chassis 9 bytes, port id 2+1+12, TTL 4, and
// the header of the organizational TLV 2.
const (
	portIDAt = 9
	ttlAt    = portIDAt + 15
	orgAt    = ttlAt + 4 + 2
)

// set returns b with one byte changed.
func set(b []byte, at int, v byte) []byte {
	b = bytes.Clone(b)
	b[at] = v
	return b
}

// badLLDP are LLDPDUs that must be refused, with what the error says.
func badLLDP(good []byte) []badFrame {
	chassis, port, ttl, rest := good[:portIDAt], good[portIDAt:ttlAt], good[ttlAt:orgAt-2], good[orgAt-2:]
	address := func(a string) []byte {
		b := bytes.Clone(good)
		copy(b[orgAt+8:], netip.MustParseAddr(a).AsSlice())
		return b
	}
	const discarded, refused = "lldp.frames_discarded", "lldp.bad_registrations"
	return []badFrame{
		{"nothing", nil, discarded, []string{"type 1", "of which 0 bytes are there"}},
		{"cut in the chassis id", good[:5], discarded, []string{"type 1", "runs past the end"}},
		{"port id first", slices.Concat(port, chassis, ttl, rest), discarded, []string{"type 1", "where type 2 is", "not in its place"}},
		{"a second time to live", slices.Concat(chassis, port, ttl, ttl, rest), discarded, []string{"type 3", "only once"}},
		{"a time to live of one byte", slices.Concat(chassis, port, []byte{3 << 1, 1, 9}, rest), discarded, []string{"type 3", "of 1 bytes", "wrong length"}},
		{"an empty chassis id", slices.Concat([]byte{1 << 1, 1, 4}, port, ttl, rest), discarded, []string{"type 1", "of 1 bytes, want 2..256"}},
		{"registration of a newer version", set(good, orgAt+4, 9), refused, []string{"version 9", "not supported"}},
		{"registration of family 7", set(good, orgAt+5, 7), refused, []string{"address family 7"}},
		{"loopback address", address("127.0.0.1"), refused, []string{"address 127.0.0.1", "loopback"}},
		{"group address", address("224.0.0.5"), refused, []string{"address 224.0.0.5", "multicast"}},
		{"no address", address("0.0.0.0"), refused, []string{"address 0.0.0.0", "unspecified"}},
		{"an NQN longer than its TLV", set(good, orgAt+30, 200), refused, []string{"NQN of 200 bytes", "0 are left"}},
	}
}

// badNTS are NTS payloads that must be refused.
func badNTS(t *testing.T) []badFrame {
	addr := netip.MustParseAddr
	ack, err := snsd.AppendAck(nil, snsd.Ack{Subject: addr(target), Host: addr(init1), Seq: 1})
	if err != nil {
		t.Fatal(err)
	}
	packet := func(kind byte, sub ...byte) []byte {
		return slices.Concat([]byte{1, 0, 0, byte(3 + len(sub)), 0, 0, 0, 0, kind, 0, byte(len(sub))}, sub)
	}
	const malformed, roots = "nts.malformed", "nts.bad_roots"
	longer := bytes.Clone(ack)
	binary.BigEndian.PutUint16(longer[2:], 1000)
	return []badFrame{
		{"nothing", nil, malformed, []string{"header of 0 bytes"}},
		{"half a header", ack[:5], malformed, []string{"header of 5 bytes"}},
		{"a newer version", set(ack, 0, 9), "nts.newer_version", []string{"version 9", "not supported"}},
		{"a length that is not there", longer, roots, []string{"length 1000 where 24 bytes follow"}},
		{"an unknown root TLV", packet(0x3f), roots, []string{"root TLV 0x3f", "unknown root TLV type"}},
		{"an ack without a sequence number", packet(0x22, 1, 0, 4, 192, 0, 2, 1, 2, 0, 4, 192, 0, 2, 2), roots, []string{"sub-TLV 5", "missing"}},
		{"a query with its address twice", packet(0x23, 2, 0, 4, 192, 0, 2, 1, 2, 0, 4, 192, 0, 2, 1), roots, []string{"sub-TLV 2", "twice"}},
		{"a query for a group address", packet(0x23, 2, 0, 4, 224, 0, 0, 1), roots, []string{"address 224.0.0.1", "multicast"}},
		{"a query for a short address", packet(0x23, 2, 0, 2, 1, 1), roots, []string{"2 of 2 bytes, want 4", "wrong length"}},
		{"a query that mixes families", packet(0x23, slices.Concat([]byte{2, 0, 4, 192, 0, 2, 1, 4, 0, 16}, make([]byte, 16))...), roots, []string{"sub-TLVs 2 and 4", "mixed address family"}},
		{"a root TLV longer than the packet", set(packet(0x23, 2, 0, 4, 192, 0, 2, 1), 10, 99), roots, []string{"root TLV in the last 10 bytes"}},
		{"a sub-TLV longer than its root", packet(0x23, 2, 0, 40, 192, 0, 2, 1), roots, []string{"query", "sub-TLV in the last 7 bytes"}},
	}
}

type badFrame struct {
	name    string
	payload []byte
	counter string
	words   []string // of the error, besides the port and the sender's MAC
}

// Every bad frame is told, with the port, the sender and the value that was wrong,
// and counted; the hosts hear of none of it.
func TestBadFramesAreToldAndCounted(t *testing.T) {
	t.Parallel()
	f, wires := evilFabric(t, "frames")
	since := f.marks("t1", "i1", "i2")
	for _, kind := range []struct {
		name  string
		cases []badFrame
		send  func(w *tap, b []byte)
	}{
		{"LLDP", badLLDP(registrationOf(t, fabric.MAC{2, 0, 0, 0, 0, 1}, "198.51.100.1", 1, 20)), (*tap).lldp},
		{"NTS", badNTS(t), (*tap).nts},
	} {
		for i, c := range kind.cases {
			port := evilPorts[i/3%len(evilPorts)]
			w, after, count := wires[port], f.lastEvent("tor1"), f.counter("tor1", c.counter)
			kind.send(w, c.payload)
			e := f.awaitEvent("tor1", after, "error", append(c.words, "port "+port, w.mac().String())...)
			if e.Port != port {
				t.Errorf("%s, %s: the event names port %q, want %s", kind.name, c.name, e.Port, port)
			}
			if n := f.counter("tor1", c.counter); n != count+1 {
				t.Errorf("%s, %s: counter %s went from %d to %d", kind.name, c.name, c.counter, count, n)
			}
		}
	}
	f.stillTells()
	f.quietButTarget(since)
	if hs := f.host("tor1", "198.51.100.1"); len(hs) != 0 {
		t.Errorf("a refused registration made a host: %+v", hs)
	}
}

// quietButTarget checks that nobody was told anything but of the target, whose
// cable stillTells pulls.
func (f *fab) quietButTarget(since map[string]int) {
	f.t.Helper()
	for node, from := range since {
		for _, n := range f.notices(node, from) {
			// The target's own notices come when its cable is back.
			if n.Subject != target && node != "t1" {
				f.t.Errorf("%s was told %v, which is no news", node, n)
			}
		}
	}
}

// Messages that are well-formed and none of the sender's business are counted.
func TestHostsThatSpeakForOthersAreIgnored(t *testing.T) {
	t.Parallel()
	f, wires := evilFabric(t, "foreign")
	w, addr := wires["eth3"], netip.MustParseAddr
	since := f.marks("t1", "i1", "i2")
	must := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		counter string
		payload []byte
	}{
		{"core.nts_unexpected", must(snsd.AppendNotify(nil, snsd.Notice{Subject: addr(target), Host: addr(init1), State: snsd.Inactive, Reason: snsd.ReasonLinkDown}))},
		{"core.queries_held", must(snsd.AppendQuery(nil, snsd.QueryPadding, addr(init1)))},
		{"core.acks_foreign", must(snsd.AppendAck(nil, snsd.Ack{Subject: addr(target), Host: addr(init1), Seq: 1}))},
	} {
		before := f.counter("tor1", c.counter)
		w.nts(c.payload)
		f.awaitCounter("tor1", c.counter, before+1)
	}
	f.stillTells()
	f.quietButTarget(since)
}

// Frames may be padded, repeated, too long or cut anywhere: what a host registered
// stands, and only a whole registration makes a host.
func TestPaddedRepeatedLongAndCutFrames(t *testing.T) {
	t.Parallel()
	f, wires := evilFabric(t, "sizes")
	w := wires["eth3"]
	const addr = "198.51.100.7"
	pdu := w.registration(addr, 1, 60)

	// Too long comes first: were it taken, the host would be known.
	for _, size := range []int{fabric.MaxControlPayload + 1, 4000, 8900} {
		w.lldp(append(bytes.Clone(pdu), make([]byte, size-len(pdu))...))
		w.nts(make([]byte, size))
	}
	f.awaitCounter("tor1", "dataplane.ports.eth3.overlong", 6)
	f.logLine("tor1", "longer than 1500 bytes", "port=eth3")
	if hs := f.host("tor1", addr); len(hs) != 0 {
		t.Errorf("an overlong frame made a host: %+v", hs)
	}

	w.lldp(append(bytes.Clone(pdu), make([]byte, fabric.MaxControlPayload-len(pdu))...))
	var first = f.awaitHost("tor1", addr)
	since, before := f.marks("t1", "i1", "i2"), f.framesOn("eth3")
	const repeated = 300
	for range repeated {
		w.lldp(pdu)
	}
	for n := range len(pdu) {
		w.lldp(pdu[:n])
	}
	f.handled("eth3", before, uint64(repeated+len(pdu)))
	f.awaitCounter("tor1", "lldp.refreshed", repeated)
	hs := f.host("tor1", addr)
	if len(hs) != 1 || !hs[0].Since.Equal(first.Since) || hs[0].Role != snsd.RoleInitiator {
		t.Errorf("after cut frames the host is %+v, before it was %+v", hs, first)
	}
	for _, e := range f.events("tor1", 0) {
		if e.Kind == "host" && e.Addr == addr && e.Fields["change"] != "registered" {
			t.Errorf("cut frames led to: %s", e.Text)
		}
	}
	f.stillTells()
	f.quietButTarget(since)
}

// Random bytes, and good frames with random changes, thousands of them while a
// cable is pulled.
func TestRandomFrames(t *testing.T) {
	t.Parallel()
	f, wires := evilFabric(t, "random")
	since := f.marks("t1", "i1", "i2")
	rnd := rand.New(rand.NewPCG(2, 16))
	noise := func(most int) []byte {
		b := make([]byte, rnd.IntN(most))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	mutant := func(b []byte) []byte {
		b = bytes.Clone(b)
		for range 1 + rnd.IntN(3) {
			b[rnd.IntN(len(b))] = byte(rnd.Uint32())
		}
		return b
	}
	before := map[string]uint64{}
	for _, p := range evilPorts {
		before[p] = f.framesOn(p)
	}
	const rounds = 4
	const each = 100
	for range rounds {
		for _, p := range evilPorts {
			w := wires[p]
			pdu := w.registration("198.51.100.9", 1+rnd.IntN(64), 2)
			ack, err := snsd.AppendAck(nil, snsd.Ack{Subject: netip.MustParseAddr(target), Host: netip.MustParseAddr(init1), Seq: rnd.Uint32()})
			if err != nil {
				t.Fatal(err)
			}
			for range each {
				w.lldp(noise(1500))
				w.lldp(mutant(pdu))
				w.nts(noise(1500))
				w.nts(mutant(ack))
			}
		}
		f.stillTells()
	}
	for _, p := range evilPorts {
		f.handled(p, before[p], 4*rounds*each)
	}
	if n := f.counter("tor1", "core.lldp_errors"); n < rounds*each {
		t.Errorf("%d LLDP errors are counted, want at least %d", n, rounds*each)
	}
	if n := f.counter("tor1", "core.nts_errors"); n < rounds*each {
		t.Errorf("%d NTS errors are counted, want at least %d", n, rounds*each)
	}
	f.stillTells()
	f.quietButTarget(since)
}
