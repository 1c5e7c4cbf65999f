package dissect

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

const goldenCapture = "../../snsd/testdata/snsd-host-session.pcap"

func ethernet(etherType uint16) []byte {
	dst := fabric.MACNTS
	if etherType == fabric.EtherTypeLLDP {
		dst = fabric.MACNearestBridge
	}
	return fabric.AppendEthernet(nil, dst, fabric.MAC{0x02, 0, 0, 0, 0, 0x0a}, etherType)
}

// lldpdu is a frame with the value of an organizational TLV of whatever bytes.
func lldpdu(value []byte) []byte {
	b := append(ethernet(fabric.EtherTypeLLDP), 2, 7, 4, 2, 0, 0, 0, 0, 10, 4, 5, 5, 'e', 't', 'h', '0', 6, 2, 0, 120)
	b = append(b, 127<<1|byte(len(value)>>8), byte(len(value)))
	return append(append(b, value...), 0, 0)
}

// pair are two addresses of one family.
func (r source) pair() (netip.Addr, netip.Addr) {
	a := r.addr()
	return a, a.Next()
}

func (r source) notice() snsd.Notice {
	n := snsd.Notice{Seq: r.Uint32(), State: snsd.State(r.IntN(2)), Reason: snsd.Reason(r.IntN(9)), Service: r.service()}
	n.Subject, n.Host = r.pair()
	return n
}

// packetOf makes a packet of one kind.
func (r source) packetOf() snsd.Packet {
	p := snsd.Packet{Version: uint8(r.IntN(2))}
	kind := r.IntN(3)
	for range 1 + r.IntN(4) {
		switch kind {
		case 0:
			p.Notices = append(p.Notices, r.notice())
		case 1:
			a, b := r.pair()
			p.Acks = append(p.Acks, snsd.Ack{Subject: a, Host: b, Seq: r.Uint32()})
		default:
			p.Queries = append(p.Queries, r.addr())
		}
	}
	return p
}

// nts is the payload of a packet, sometimes with padding.
func (r source) nts(t testing.TB) []byte {
	b, err := r.packetOf().Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, make([]byte, r.IntN(2)*snsd.QueryPadding)...)
}

func (r source) registration() snsd.Registration {
	return snsd.Registration{Addr: r.addr(), Subscribes: r.IntN(2) == 0, ProtoVer: uint16(r.IntN(65536)), Service: r.service()}
}

func (r source) lldp(t testing.TB) []byte {
	b, err := snsd.AppendRegistrationPDU(ethernet(fabric.EtherTypeLLDP), &snsd.RegistrationPDU{
		MAC: fabric.MAC{2, 0, 0, 0, 0, 1}, PortID: snsd.AgentPortID("eth0", 1), TTL: snsd.DefaultRegisterTTL, Registration: r.registration()})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func ofPacket(p snsd.Packet, payload []byte) list {
	var l list
	length := int(payload[2])<<8 | int(payload[3])
	l.add("nts.version", p.Version)
	l.add("nts.reserved1", "0x00")
	l.add("nts.length", length)
	l.add("nts.reserved2", "0x00000000")
	for _, n := range p.Notices {
		l.add("nts.kind", 1)
		l.addr("nts.subject", n.Subject)
		l.addr("nts.host", n.Host)
		l.add("nts.seq", n.Seq)
		l.add("nts.state", uint8(n.State))
		l.add("nts.reason", uint8(n.Reason))
		l.add("nts.role", uint8(n.Service.Role))
		l.add("nts.protocol", uint8(n.Service.Protocol))
		l.add("nts.service.reserved", "0x0000")
		l.add("nts.service_port", n.Service.Port)
		l.text("nts.nqn", n.Service.NQN)
	}
	for _, a := range p.Acks {
		l.add("nts.kind", 2)
		l.addr("nts.subject", a.Subject)
		l.addr("nts.host", a.Host)
		l.add("nts.seq", a.Seq)
	}
	for _, q := range p.Queries {
		l.add("nts.kind", 3)
		l.addr("nts.host", q)
	}
	if pad := len(payload) - 8 - length; pad > 0 {
		l.add("nts.padding", strings.Repeat("00", pad))
	}
	return l
}

func ofRegistration(r snsd.Registration) list {
	l := list{"snsd.oui=0x001882", "snsd.subtype=101", "snsd.version=1"}
	l.bit("snsd.subscribes", r.Subscribes)
	family := 2
	if r.Addr.Is4() {
		family = 1
	}
	l = append(l, "snsd.service_type=0x00", fmt.Sprintf("snsd.family=%d", family), "snsd.reserved=0000")
	l.addr("snsd.address", r.Addr)
	l.add("snsd.role", uint8(r.Role))
	l.add("snsd.protocol", uint8(r.Protocol))
	l.hex("snsd.protocol_version", 4, uint64(r.ProtoVer))
	l.add("snsd.service_port", r.Service.Port)
	l.text("snsd.nqn", r.NQN)
	return l
}

func TestNTSFramesAreShownAsEncoded(t *testing.T) {
	requireTshark(t)
	r, c := newSource(41), newCapture(t)
	var want []list
	for range 200 {
		p := r.packetOf()
		b, err := p.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, make([]byte, r.IntN(2)*snsd.QueryPadding)...)
		want = append(want, ofPacket(p, b))
		c.frame(append(ethernet(fabric.EtherTypeNTS), b...))
	}
	for i, p := range dissect(t, c.file) {
		trees := p.protos("nts")
		if len(trees) != 1 {
			t.Fatalf("frame %d: %d trees", i+1, len(trees))
		}
		if d := cmp.Diff(want[i], shown(t, &trees[0])); d != "" {
			t.Errorf("frame %d (-encoded +shown):\n%s", i+1, d)
		}
		if e := trees[0].experts(""); len(e) > 0 {
			t.Errorf("frame %d: %q", i+1, e)
		}
	}
}

// The registration is found by LLDP's own table, and where there is none, after it.
func TestRegistrationsAreShownAsEncoded(t *testing.T) {
	requireTshark(t)
	r, c := newSource(42), newCapture(t)
	var want []list
	for range 60 {
		g := r.registration()
		v, err := g.AppendTLV(nil)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, ofRegistration(g))
		c.frame(lldpdu(v))
	}
	for _, args := range [][]string{nil, {"-X", "lua_script1:after-lldp"}} {
		for i, p := range dissect(t, c.file, args...) {
			trees := p.protos("snsd")
			if len(trees) != 1 {
				t.Fatalf("%q, frame %d: %d trees", args, i+1, len(trees))
			}
			if top := slices.ContainsFunc(p.Nodes, func(n node) bool { return n.Name == "snsd" }); top != (args != nil) {
				t.Errorf("%q, frame %d: beside LLDP is %v", args, i+1, top)
			}
			if d := cmp.Diff(want[i], shown(t, &trees[0])); d != "" {
				t.Errorf("%q, frame %d (-encoded +shown):\n%s", args, i+1, d)
			}
		}
	}
}

// Other TLVs of that organization stay with LLDP.
func TestOtherTLVsAreLeftToLLDP(t *testing.T) {
	requireTshark(t)
	c := newCapture(t)
	c.frame(lldpdu([]byte{0x00, 0x18, 0x82, 7, 1, 2, 3}))
	c.frame(lldpdu([]byte{0x00, 0x18, 0x83, 101, 1, 2, 3}))
	for i, p := range dissect(t, c.file) {
		text := ""
		for _, n := range p.protos("lldp") {
			n.walk(func(n *node) { text += n.Showname + "\n" })
		}
		if len(p.protos("snsd")) != 0 || !strings.Contains(text, "Unknown Subtype") {
			t.Errorf("frame %d is not left to LLDP:\n%s", i+1, text)
		}
	}
}

// TestGoldenCapture reads a session of the existing host agent with a switch.
func TestGoldenCapture(t *testing.T) {
	requireTshark(t)
	out := tshark(t, "-r", goldenCapture, "-T", "fields", "-E", "separator=|",
		"-e", "snsd.address.ipv4", "-e", "snsd.role", "-e", "nts.kind", "-e", "nts.host.ipv4", "-e", "nts.subject.ipv4",
		"-e", "nts.seq", "-e", "nts.state", "-e", "nts.reason", "-e", "nts.nqn", "-e", "nts.ack_of", "-e", "nts.ack_time")
	want := `192.0.2.11|2|||||||||
||3|192.0.2.11|||||||
||1|192.0.2.11|192.0.2.50|7|1|0|nqn.2026-11.test:target||
||2|192.0.2.11|192.0.2.50|7||||3|0.002578000
||1|192.0.2.11|192.0.2.50|7|0|2|nqn.2026-11.test:target||
||2|192.0.2.11|192.0.2.50|7||||5|0.000033000
||1|192.0.2.11|192.0.2.50|7|0|4|nqn.2026-11.test:target||
||2|192.0.2.11|192.0.2.50|7||||7|0.000042000
`
	if d := cmp.Diff(want, string(out)); d != "" {
		t.Error(d)
	}
	text := string(tshark(t, "-r", goldenCapture, "-V", "-2"))
	for _, s := range []string{"SNSD Registration, 192.0.2.11, initiator, subscribes to notices", "Kind: notify (1)", "Reason: PFC storm (2)",
		"State: inactive (0)", "Role: target (1)", "Storage protocol: RoCE (1)", "[Acknowledged in: 4]"} {
		if !strings.Contains(text, s) {
			t.Errorf("the tree does not say %q", s)
		}
	}
	for i, p := range dissect(t, goldenCapture) {
		for _, n := range p.Nodes {
			if e := n.experts(severityError); len(e) > 0 {
				t.Errorf("frame %d: %q", i+1, e)
			}
		}
	}
}
