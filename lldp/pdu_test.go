package lldp

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"

	"github.com/openinof/inof/snsd"
)

// unhex reads hex digits with spaces between the fields.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	chassisTLV = "0207 04 7268184cae01 " // MAC
	portTLV    = "0405 05 65746830 "     // interface name eth0
	ttlTLV     = "0602 0078 "
	endTLV     = "0000 "
	head       = chassisTLV + portTLV + ttlTLV
	nameTLV    = "0a02 7877 " // xw
)

func TestParseDiscardsForMandatoryTLVs(t *testing.T) {
	long := func(n int) string { return strings.Repeat("61", n) }
	cases := []struct {
		name, hex string
		want      error
		text      string
	}{
		{"nothing", "", ErrTruncated, "Chassis ID TLV (type 1) of which 0 bytes are there"},
		{"one byte", "02", ErrTruncated, "Chassis ID TLV (type 1) of which 1 bytes are there"},
		{"end only", endTLV, ErrOrder, "Chassis ID"},
		{"port first", portTLV + chassisTLV + ttlTLV + endTLV, ErrOrder, "type 2"},
		{"no port", chassisTLV + ttlTLV + endTLV, ErrOrder, "Port ID"},
		{"no TTL", chassisTLV + portTLV + endTLV, ErrOrder, "Time To Live"},
		{"name before TTL", chassisTLV + portTLV + nameTLV + ttlTLV, ErrOrder, "type 5"},
		{"cut in the chassis id", "0207 04 7268", ErrTruncated, "7 bytes where 3 are left"},
		{"cut in the port id", chassisTLV + "0405 05", ErrTruncated, ""},
		{"cut in the TTL", chassisTLV + portTLV + "0602 00", ErrTruncated, ""},
		{"empty chassis id", "0200" + portTLV + ttlTLV, ErrLength, "0 bytes"},
		{"chassis id of a subtype only", "0201 04" + portTLV + ttlTLV, ErrLength, "1 bytes"},
		{"chassis id of 257 bytes", "0301 04" + long(256) + portTLV + ttlTLV, ErrLength, "257"},
		{"port id of 257 bytes", chassisTLV + "0501 05" + long(256) + ttlTLV, ErrLength, "257"},
		{"TTL of one byte", chassisTLV + portTLV + "0601 78", ErrLength, "1 bytes"},
		{"second chassis id", head + chassisTLV, ErrDuplicate, "Chassis ID"},
		{"second port id", head + nameTLV + portTLV, ErrDuplicate, "Port ID"},
		{"second TTL", head + ttlTLV, ErrDuplicate, "Time To Live"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse(unhex(t, c.hex))
			var typed *Error
			if !errors.Is(err, c.want) || !errors.As(err, &typed) || p != nil {
				t.Fatalf("%v, want *Error with %v", err, c.want)
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("%q does not name %q", err, c.text)
			}
		})
	}
}

func TestParseSkipsBadOptionalTLVs(t *testing.T) {
	const snsdBad = "fe1f 00188265 01810000 7f000001000000000000000000000000 02010101 0000 00 "
	const snsdGood = "fe1f 00188265 01810000 c000020b000000000000000000000000 02010101 0000 00 "
	cases := []struct {
		name, hex string
		want      Skipped
		err       error
	}{
		{"none", "", Skipped{}, nil},
		{"no end", nameTLV, Skipped{}, nil},
		{"name of 256 bytes", "0b00" + strings.Repeat("61", 256), Skipped{Bad: 1}, ErrLength},
		{"name twice", nameTLV + nameTLV, Skipped{Duplicate: 1}, ErrDuplicate},
		{"descriptions twice", "0800 0800 0c00 0c00", Skipped{Duplicate: 2}, ErrDuplicate},
		{"capabilities of 3 bytes", "0e03 000000", Skipped{Bad: 1}, ErrLength},
		{"capabilities twice", "0e04 00140014 0e04 00000000", Skipped{Duplicate: 1}, ErrDuplicate},
		{"management address of 8 bytes", "1008 0501c0000201 0200", Skipped{Bad: 1}, ErrLength},
		{"management address string too long", "100c 2101c0000201 02000000 0100", Skipped{Bad: 1}, ErrLength},
		{"management address past its TLV", "100c 0701c0000201 02000000 0100", Skipped{Bad: 1}, ErrLength},
		{"IPv4 of 3 bytes", "100b 0401c00002 02000000 0100", Skipped{Bad: 1}, ErrLength},
		{"object identifier past its TLV", "100c 0501c0000201 02000000 0101", Skipped{Bad: 1}, ErrLength},
		{"organizational of 3 bytes", "fe03 0080c2", Skipped{Bad: 1}, ErrLength},
		{"reserved types", "1200 fc02 0000", Skipped{Unknown: 2}, nil},
		{"SNSD of a loopback address", snsdBad, Skipped{Bad: 1}, ErrRegistration},
		{"SNSD cut", "fe08 00188265 01810000", Skipped{Bad: 1}, snsd.ErrTruncated},
		{"SNSD twice", snsdGood + snsdGood, Skipped{Duplicate: 1}, ErrDuplicate},
		{"SNSD bad, then good", snsdBad + snsdGood, Skipped{Bad: 1, Duplicate: 1}, snsd.ErrAddress},
		{"last TLV runs out", "0a05 78", Skipped{Bad: 1}, ErrTruncated},
		{"last TLV has half a header", "0a", Skipped{Bad: 1}, ErrTruncated},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse(unhex(t, head+"0802 7077 "+c.hex))
			if c.name == "descriptions twice" {
				c.want.Duplicate++ // of the port, with the one that is always there
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.Skipped != c.want || !errors.Is(p.SkippedErr, c.err) || *p.PortDesc != "pw" {
				t.Errorf("skipped %+v with %v, want %+v with %v", p.Skipped, p.SkippedErr, c.want, c.err)
			}
		})
	}
}

func TestParseStopsAtEndAndShutdown(t *testing.T) {
	p, err := Parse(unhex(t, head+endTLV+nameTLV+chassisTLV+"ff"))
	if err != nil || p.SysName != nil || p.Skipped != (Skipped{}) {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = Parse(unhex(t, chassisTLV+portTLV+"0602 0000"+"ffff"))
	if err != nil || p.TTL != 0 || p.Skipped != (Skipped{}) {
		t.Errorf("what follows a TTL of zero was read: %+v, %v", p, err)
	}
	p, err = Parse(unhex(t, chassisTLV+portTLV+"0604 00780000"+nameTLV))
	if err != nil || p.TTL != 120 || *p.SysName != "xw" {
		t.Errorf("longer TTL: %+v, %v", p, err)
	}
}

func drawPDU(t *rapid.T) *PDU {
	id := func(label string) ID {
		return ID{rapid.Byte().Draw(t, label), string(rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, label))}
	}
	text := func(label string) *string {
		if rapid.Bool().Draw(t, label) {
			return nil
		}
		s := string(rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, label))
		return &s
	}
	p := &PDU{Chassis: id("chassis"), Port: id("port"), TTL: rapid.Uint16Min(1).Draw(t, "ttl"),
		PortDesc: text("port description"), SysName: text("name"), SysDesc: text("description")}
	if rapid.Bool().Draw(t, "capabilities") {
		p.Capabilities = &Capabilities{rapid.Uint16().Draw(t, "system"), rapid.Uint16().Draw(t, "enabled")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "mgmt") {
		m := MgmtAddr{Family: ianaIPv4, IfSubtype: rapid.Byte().Draw(t, "subtype"), IfNumber: rapid.Uint32().Draw(t, "number"),
			OID: string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "oid"))}
		switch rapid.IntRange(0, 2).Draw(t, "family") {
		case 0:
			m.Addr = netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4")))
		case 1:
			m.Family = ianaIPv6
			m.Addr = netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "v6")))
		case 2:
			m.Family = 6 // 802 MAC
			m.Raw = string(rapid.SliceOfN(rapid.Byte(), 1, 31).Draw(t, "raw"))
		}
		p.Mgmt = append(p.Mgmt, m)
	}
	for range rapid.IntRange(0, 3).Draw(t, "org") {
		p.Org = append(p.Org, OrgTLV{[3]byte{0, 0x80, 0xc2}, rapid.Byte().Draw(t, "subtype"),
			string(rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "value"))})
	}
	if rapid.Bool().Draw(t, "registration") {
		p.Registration = &snsd.Registration{Addr: hostAddr, Subscribes: true, ProtoVer: 0x0101,
			Service: snsd.Service{Role: snsd.RoleBoth, Port: 4420, NQN: "nqn.2026-11.test:x"}}
	}
	return p
}

func TestPDURoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawPDU(t)
		b, err := want.Append([]byte("keep"))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b[4:], rapid.SliceOfN(rapid.Byte(), 0, 46).Draw(t, "padding")...)
		got, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpAddr); d != "" {
			t.Fatal(d)
		}
	})
}

// gopacket's decoder must read our LLDPDU as we do.
func TestGopacketReadsTheSame(t *testing.T) {
	x := NewTransmitter(TxConfig{Local: Local{
		Chassis: hostMAC, SysName: "tor-1", SysDesc: "a switch", Capabilities: Capabilities{CapBridge | CapRouter, CapBridge},
		Mgmt: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
	}})
	x.PortUp("swp1", "to host 1", hostMAC, t0)
	frame := x.Due(t0)[0].Frame
	pkt := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	if e := pkt.ErrorLayer(); e != nil {
		t.Fatal(e.Error())
	}
	d := pkt.Layer(layers.LayerTypeLinkLayerDiscovery).(*layers.LinkLayerDiscovery)
	info := pkt.Layer(layers.LayerTypeLinkLayerDiscoveryInfo).(*layers.LinkLayerDiscoveryInfo)
	if d.ChassisID.Subtype != layers.LLDPChassisIDSubTypeMACAddr || string(d.ChassisID.ID) != string(hostMAC[:]) ||
		d.PortID.Subtype != layers.LLDPPortIDSubtypeIfaceName || string(d.PortID.ID) != "swp1" || d.TTL != 120 {
		t.Errorf("%+v", d)
	}
	if info.PortDescription != "to host 1" || info.SysName != "tor-1" || info.SysDescription != "a switch" ||
		!info.SysCapabilities.SystemCap.Bridge || !info.SysCapabilities.SystemCap.Router ||
		!info.SysCapabilities.EnabledCap.Bridge || info.SysCapabilities.EnabledCap.Router {
		t.Errorf("%+v", info)
	}
	// gopacket keeps one management address, the last
	if a, _ := netip.AddrFromSlice(info.MgmtAddress.Address); a.String() != "2001:db8::1" {
		t.Errorf("management address %v", info.MgmtAddress)
	}
}

func TestGopacketReadsOurRegistration(t *testing.T) {
	pkt := gopacket.NewPacket(goldenFrame(t), layers.LayerTypeEthernet, gopacket.Default)
	info := pkt.Layer(layers.LayerTypeLinkLayerDiscoveryInfo).(*layers.LinkLayerDiscoveryInfo)
	if len(info.OrgTLVs) != 1 || info.OrgTLVs[0].SubType != 101 {
		t.Fatalf("%+v", info.OrgTLVs)
	}
	value := append([]byte{0x00, 0x18, 0x82, 101}, info.OrgTLVs[0].Info...)
	if r, err := snsd.ParseRegistration(value); err != nil || r.Addr != hostAddr {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAppendRefuses(t *testing.T) {
	long := strings.Repeat("x", 256)
	ok := func() *PDU { return &PDU{Chassis: ID{4, "abcdef"}, Port: ID{5, "p"}, TTL: 1} }
	for i, change := range []func(p *PDU){
		func(p *PDU) { p.Chassis.Value = "" },
		func(p *PDU) { p.Port.Value = long },
		func(p *PDU) { p.SysName = &long },
		func(p *PDU) { p.Mgmt = []MgmtAddr{{}} },
		func(p *PDU) { p.Mgmt = []MgmtAddr{{Family: ianaIPv4, Raw: "abc"}} },
		func(p *PDU) { p.Mgmt = []MgmtAddr{{Addr: hostAddr, OID: long}} },
		func(p *PDU) { p.Org = []OrgTLV{{Value: strings.Repeat("x", 508)}} },
		func(p *PDU) { p.Registration = &snsd.Registration{} },
		func(p *PDU) { p.Org = make([]OrgTLV, 300) },
	} {
		p := ok()
		change(p)
		if b, err := p.Append([]byte{7}); err == nil || len(b) != 1 {
			t.Errorf("case %d: %d bytes, %v", i, len(b), err)
		}
	}
}

func TestParseAgentPort(t *testing.T) {
	for s, want := range map[string]AgentPort{
		"snsd_eth0_01":         {"snsd", "eth0", 1},
		"discovery_eth0_64":    {"discovery", "eth0", 64},
		"snsd_my_nic_0_07":     {"snsd", "my_nic_0", 7},
		"snsd_discovery_e0_01": {"snsd", "discovery_e0", 1},
		"snsd_eth0.100_10":     {"snsd", "eth0.100", 10},
	} {
		if got, ok := ParseAgentPort(s); !ok || got != want {
			t.Errorf("%q: %+v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "eth0", "snsd_", "snsd__01", "snsd_01", "snsd_eth0", "snsd_eth0_", "snsd_eth0_1", "snsd_eth0_00",
		"snsd_eth0_65", "snsd_eth0_001", "snsd_eth0_+1", "snsd_eth0_a1", "SNSD_eth0_01", "snsdeth0_01", "xsnsd_eth0_01"} {
		if got, ok := ParseAgentPort(s); ok {
			t.Errorf("%q was read as %+v", s, got)
		}
	}
}

func TestTextsArePrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain é": "plain é", "a\x1b[2J": `a\x1b[2J`, "\xff": `\xff`, "c\x00\x00": "c", "a\nb": `a\x0ab`, "\u200b": `\xe2\x80\x8b`,
	} {
		if got := printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for _, c := range []struct{ got, want string }{
		{chassisText(ID{ChassisMAC, "\x01\x02\x03\x04\x05\x06"}), "01:02:03:04:05:06"},
		{chassisText(ID{ChassisMAC, "abc"}), "abc"},
		{chassisText(ID{ChassisNetAddr, "\x01\xc0\x00\x02\x01"}), "192.0.2.1"},
		{chassisText(ID{ChassisNetAddr, "\x01"}), `\x01`},
		{chassisText(ID{ChassisNetAddr, "\x02\xc0\x00\x02\x01"}), `\x02\xc0\x00\x02\x01`},
		{portText(ID{PortMAC, "\x01\x02\x03\x04\x05\x06"}), "01:02:03:04:05:06"},
		{portText(ID{PortNetAddr, "\x01\xc0\x00\x02\x01"}), "192.0.2.1"},
		{portText(ID{PortLocal, "1"}), "1"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
