package zonefilter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"

	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/netnstest"
)

// open makes a filter without pins; the test is left out where the kernel does not let us.
func open(t testing.TB, cfg hardzone.Config) *Filter {
	t.Helper()
	cfg.Pins = ""
	f, err := Open(cfg)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, ebpf.ErrNotSupported) {
		netnstest.Require(t, "eBPF", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// must fails the test on an error.
func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// The world of these tests: four hosts at two ports of this switch and one elsewhere.
var (
	hA, hB, hC = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
	h6A, h6B   = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	remote     = netip.MustParseAddr("198.51.100.1")
	strangers  = []netip.Addr{netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("2001:db8:f::1")}
	nobody     = netip.MustParseAddr("0.0.0.0") // who asks without an address
	gateway    = netip.MustParseAddr("192.0.2.254")
	groups     = []netip.Addr{netip.MustParseAddr("224.0.0.5"), netip.MustParseAddr("239.1.1.1"), netip.MustParseAddr("255.255.255.255"), netip.MustParseAddr("ff02::1"), netip.MustParseAddr("ff0e::1")}
	bindings   = []hardzone.Bound{{Prefix: netip.MustParsePrefix("203.0.113.2/32"), Ports: []string{"p2"}}}
	atPorts    = map[netip.Addr][]string{hA: {"p1"}, hB: {"p2"}, hC: {"p1", "p2"}, h6A: {"p1"}, h6B: {"p2"}, remote: nil}
	learned    = []netip.Addr{hA, hB, hC, h6A, h6B, remote}
	mayTalk    = map[[2]netip.Addr]bool{{hA, hB}: true, {hA, remote}: true, {h6A, h6B}: true}
)

func talk(a, b netip.Addr) bool { return mayTalk[[2]netip.Addr{a, b}] || mayTalk[[2]netip.Addr{b, a}] }

// fill brings the world into a filter.
func fill(t interface{ Fatal(...any) }, f *Filter, cfg hardzone.Config) {
	cfg.Permit = append(cfg.Permit, hardzone.Permit{Protocol: 6, Port: 22}, hardzone.Permit{Protocol: 89}, hardzone.Permit{Prefix: netip.MustParsePrefix("192.0.2.254/32")})
	must(t, f.Configure(cfg, bindings))
	number := make(map[netip.Addr]uint32)
	var steps []hardzone.Step
	for i, a := range learned {
		number[a] = uint32(i + 1)
		steps = append(steps, hardzone.Step{Op: hardzone.PutHost, Host: hardzone.Host{Addr: a, Number: uint32(i + 1), Ports: atPorts[a], Zone: 2}})
	}
	for k := range mayTalk {
		steps = append(steps, hardzone.Step{Op: hardzone.PutPair, Pair: hardzone.Pair{Key: hardzone.KeyOf(number[k[0]], number[k[1]]), Zone: 1}})
	}
	must(t, f.Apply(steps))
}

// packet is a frame as the rule sees it, and how it is wrapped.
type packet struct {
	port     string
	src, dst netip.Addr
	tags     int
	protocol uint8
	sport    uint16
	dport    uint16
	fragment int // 0: none, 1: the first, 2: a later one
	headers  int // IPv6: extension headers
	arp      bool
	solicits bool // Neighbor Discovery
	tells    bool // the same: it says where it is
	roce     bool // RoCE version 1
}

// rule is the rule in words, the reference of what the program does.
func rule(p packet, cfg hardzone.Config) hardzone.Why {
	discovery := p.arp || p.solicits || p.tells
	if discovery && cfg.Discovery == hardzone.DiscoveryPass || p.tags > 2 {
		if p.tags > 2 {
			return hardzone.BadFrame
		}
		return ""
	}
	at := func(ports []string) bool {
		for _, x := range ports {
			if x == p.port {
				return true
			}
		}
		return false
	}
	ports, known := atPorts[p.src]
	_, peer := atPorts[p.dst]
	here := known && at(ports)
	if known && !here {
		return hardzone.BadSource
	}
	if !known && p.src == netip.MustParseAddr("203.0.113.2") && p.port != "p2" {
		return hardzone.BadSource
	}
	if here && peer && (p.src == p.dst || talk(p.src, p.dst)) {
		return ""
	}
	exempt := p.src == gateway || p.dst == gateway
	if !discovery {
		ported := p.fragment != 2 && (p.protocol == 6 || p.protocol == 17)
		permit := func(port uint16) bool {
			return p.protocol == 6 && port == 22 || p.protocol == 17 && (port == 67 || port == 68 || port == 546 || port == 547)
		}
		exempt = exempt || p.protocol == 89 || ported && (permit(p.dport) || permit(p.sport) && p.dport >= 32768)
	}
	link := p.dst == groups[0] || p.dst == groups[3] || discovery && (p.src == p.dst || p.dst == nobody)
	group := link || p.dst == groups[1] || p.dst == groups[2] || p.dst == groups[4]
	switch {
	case exempt:
		return ""
	case here && peer:
		return hardzone.NoPair
	case link, here && group:
		return ""
	case cfg.Unlearned == hardzone.UnlearnedPass:
		return ""
	case cfg.Unlearned == hardzone.UnlearnedApart && !known && !peer:
		return ""
	}
	return hardzone.NotLearned
}

// bytes makes the frame.
func (p packet) bytes(t interface{ Fatal(...any) }) []byte {
	var list []gopacket.SerializableLayer
	types := []layers.EthernetType{}
	for range p.tags {
		types = append(types, layers.EthernetTypeDot1Q)
	}
	last := layers.EthernetTypeIPv4
	switch {
	case p.arp:
		last = layers.EthernetTypeARP
	case p.roce:
		last = 0x8915
	case p.src.Is6():
		last = layers.EthernetTypeIPv6
	}
	types = append(types, last)
	list = append(list, &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: types[0]})
	for i := range p.tags {
		list = append(list, &layers.Dot1Q{VLANIdentifier: 100, Type: types[i+1]})
	}
	var l4 []byte
	switch {
	case p.tells:
		l4 = append([]byte{136, 0, 0, 0, 0, 0, 0, 0}, p.src.AsSlice()...)
	case p.solicits:
		l4 = append([]byte{135, 0, 0, 0, 0, 0, 0, 0}, p.dst.AsSlice()...)
	case p.fragment == 2:
		l4 = make([]byte, 16)
		binary.BigEndian.PutUint16(l4[2:], 22) // data that looks like a permitted port
	default:
		l4 = make([]byte, 20)
		binary.BigEndian.PutUint16(l4, p.sport)
		binary.BigEndian.PutUint16(l4[2:], p.dport)
	}
	switch {
	case p.arp:
		list = append(list, &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: 1,
			SourceHwAddress: make([]byte, 6), DstHwAddress: make([]byte, 6), SourceProtAddress: p.src.AsSlice(), DstProtAddress: p.dst.AsSlice()})
	case p.src.Is4():
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocol(p.protocol), SrcIP: p.src.AsSlice(), DstIP: p.dst.AsSlice()}
		switch p.fragment {
		case 1:
			ip.Flags = layers.IPv4MoreFragments
		case 2:
			ip.FragOffset = 100
		}
		for range p.headers {
			ip.Options = append(ip.Options, layers.IPv4Option{OptionType: 1, OptionLength: 1})
		}
		list = append(list, ip, gopacket.Payload(l4))
	default:
		// Extension headers by hand: destination options, and a fragment header last.
		next := p.protocol
		if p.solicits || p.tells {
			next = 58
		}
		if p.fragment > 0 {
			h := []byte{next, 0, 0, 1, 0, 0, 0, 7}
			if p.fragment == 2 {
				binary.BigEndian.PutUint16(h[2:], 100<<3)
			}
			l4, next = append(h, l4...), 44
		}
		for i := range p.headers {
			h := make([]byte, 8*(i+1))
			h[0], h[1] = next, byte(i)
			l4, next = append(h, l4...), 60
		}
		dst := p.dst
		if p.solicits {
			dst = netip.MustParseAddr("ff02::1:ff00:2")
		}
		list = append(list, &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocol(next), SrcIP: p.src.AsSlice(), DstIP: dst.AsSlice()}, gopacket.Payload(l4))
	}
	buf := gopacket.NewSerializeBuffer()
	must(t, gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, list...))
	b := buf.Bytes()
	for len(b) < 60 {
		b = append(b, 0)
	}
	return b
}

func drawPacket(t *rapid.T) packet {
	v4 := append([]netip.Addr{hA, hB, hC, remote, gateway}, strangers[:2]...)
	v6 := []netip.Addr{h6A, h6B, strangers[2]}
	from, to := v4, append(append([]netip.Addr{}, v4...), groups[:3]...)
	p := packet{port: rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "port"), tags: rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "tags")}
	six := rapid.Bool().Draw(t, "six")
	if six {
		from, to = v6, append(append([]netip.Addr{}, v6...), groups[3:]...)
	}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		p.arp, p.solicits = !six, six
		to = append(append([]netip.Addr{}, from...), nobody)
		if six {
			to = from
		}
		if six && rapid.Bool().Draw(t, "tells") {
			p.solicits, p.tells = false, true
			to = append(append([]netip.Addr{}, from...), groups[3])
		}
	case 1:
		p.roce = six
	}
	p.src, p.dst = rapid.SampledFrom(from).Draw(t, "src"), rapid.SampledFrom(to).Draw(t, "dst")
	p.protocol = rapid.SampledFrom([]uint8{6, 17, 1, 89}).Draw(t, "protocol")
	p.sport = rapid.SampledFrom([]uint16{22, 67, 4420, 50000}).Draw(t, "sport")
	p.dport = rapid.SampledFrom([]uint16{22, 68, 4420, 4791, 40000}).Draw(t, "dport")
	if !p.arp && !p.solicits && !p.tells {
		p.fragment, p.headers = rapid.IntRange(0, 2).Draw(t, "fragment"), rapid.IntRange(0, 3).Draw(t, "headers")
	}
	return p
}

// runner runs one program of a port on a frame.
func runner(t interface{ Fatal(...any) }, f *Filter, port string, way hardzone.Attach) func([]byte) bool {
	n, err := f.number(port)
	must(t, err)
	prog, err := f.program(n, way)
	must(t, err)
	drop := uint32(1) // XDP_DROP
	if way == hardzone.AttachTC {
		drop = 2 // TC_ACT_SHOT
	}
	return func(b []byte) bool {
		ret, _, err := prog.Test(b)
		must(t, err)
		return ret != drop
	}
}

func TestTheProgramDoesWhatTheRuleSays(t *testing.T) {
	for _, way := range []hardzone.Attach{hardzone.AttachNative, hardzone.AttachTC} {
		for _, unlearned := range []hardzone.Unlearned{hardzone.UnlearnedDrop, hardzone.UnlearnedApart, hardzone.UnlearnedPass} {
			for _, discovery := range []hardzone.Discovery{hardzone.DiscoveryPass, hardzone.DiscoveryPairs} {
				t.Run(fmt.Sprint(way, unlearned, discovery), func(t *testing.T) {
					cfg := hardzone.Default()
					cfg.Unlearned, cfg.Discovery = unlearned, discovery
					f := open(t, cfg)
					fill(t, f, cfg)
					run := map[string]func([]byte) bool{"p1": runner(t, f, "p1", way), "p2": runner(t, f, "p2", way)}
					rapid.Check(t, func(t *rapid.T) {
						p := drawPacket(t)
						why := rule(p, cfg)
						if passes := run[p.port](p.bytes(t)); passes != (why == "") {
							t.Fatalf("%+v passes: %t, the rule says %q", p, passes, why)
						}
					})
				})
			}
		}
	}
}

// Whatever a host sends, the program must not let through what is cut short of its addresses.
func TestFramesThatEndTooSoonAreDropped(t *testing.T) {
	cfg := hardzone.Default()
	f := open(t, cfg)
	fill(t, f, cfg)
	run := runner(t, f, "p1", hardzone.AttachNative)
	for _, src := range []netip.Addr{hA, h6A} {
		dst := hB
		if src.Is6() {
			dst = h6B
		}
		whole := packet{port: "p1", src: src, dst: dst, protocol: 6, sport: 50000, dport: 4420, tags: 1}.bytes(t)
		header := 18 + 20
		if src.Is6() {
			header = 18 + 40
		}
		for n := 14; n <= len(whole); n++ {
			if passes := run(whole[:n]); passes != (n >= header) {
				t.Errorf("%d of %d bytes pass: %t", n, len(whole), passes)
			}
		}
	}
}

func TestWhatIsNoIPPasses(t *testing.T) {
	f := open(t, hardzone.Default())
	fill(t, f, hardzone.Default())
	run := runner(t, f, "p1", hardzone.AttachNative)
	for _, ethertype := range []uint16{0x88cc, 0x8809, 0x88b5} {
		b := make([]byte, 60)
		binary.BigEndian.PutUint16(b[12:], ethertype)
		if !run(b) {
			t.Errorf("EtherType %#x is dropped", ethertype)
		}
	}
}
