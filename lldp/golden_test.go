package lldp

import (
	"bytes"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

var (
	t0       = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	hostMAC  = fabric.MAC{0x72, 0x68, 0x18, 0x4c, 0xae, 0x01}
	hostAddr = netip.MustParseAddr("192.0.2.11")

	cmpAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
)

// goldenFrame is the registration frame of the existing Linux host agent.
func goldenFrame(t testing.TB) []byte { return firstFrame(t, "testdata/snsd-host-session.pcap") }

func firstFrame(t testing.TB, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := r.ReadPacketData()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// received is what a port makes of a whole frame.
func received(port string, frame []byte) fabric.Frame {
	return fabric.Frame{
		Port: port, Dst: fabric.MAC(frame[0:6]), Src: fabric.MAC(frame[6:12]),
		EtherType: uint16(frame[12])<<8 | uint16(frame[13]), Payload: frame[14:],
	}
}

func TestGoldenRegistrationBothWays(t *testing.T) {
	frame := goldenFrame(t)
	p, err := Parse(frame[14:])
	if err != nil {
		t.Fatal(err)
	}
	want := &PDU{
		Chassis: MACID(ChassisMAC, hostMAC), Port: ID{PortInterface, "snsd_eth0_01"}, TTL: 120,
		Registration: &snsd.Registration{
			Addr: hostAddr, Subscribes: true, ProtoVer: snsd.DefaultProtoVer,
			Service: snsd.Service{Role: snsd.RoleInitiator, Protocol: snsd.ProtocolRoCE},
		},
	}
	if d := cmp.Diff(want, p, cmpAddr); d != "" {
		t.Error(d)
	}
	back := fabric.AppendEthernet(nil, fabric.MACNearestBridge, hostMAC, fabric.EtherTypeLLDP)
	if back, err = p.Append(back); err != nil || !bytes.Equal(back, frame) {
		t.Errorf("%v:\n got % x\nwant % x", err, back, frame)
	}
	padded, err := Parse(append(frame[14:], make([]byte, 46)...))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, padded, cmpAddr); d != "" {
		t.Errorf("padding was read:\n%s", d)
	}
}

func TestGoldenRegistrationBecomesAHost(t *testing.T) {
	tab := NewTable(Limits{})
	ch, err := tab.Receive(received("swp1", goldenFrame(t)), t0)
	if err != nil || len(ch) != 1 || ch[0].Kind != Learned {
		t.Fatalf("%+v, %v", ch, err)
	}
	want := []HostInfo{{
		Addr: hostAddr, MAC: hostMAC, Subscribes: true, Since: t0,
		Service: snsd.Service{Role: snsd.RoleInitiator, Protocol: snsd.ProtocolRoCE},
	}}
	if d := cmp.Diff(want, ch[0].Put, cmpAddr); d != "" {
		t.Error(d)
	}
	n := ch[0].Neighbour
	if d := cmp.Diff(want, n.Hosts(), cmpAddr); d != "" {
		t.Error(d)
	}
	if n.ChassisID != "72:68:18:4c:ae:01" || n.PortID != "snsd_eth0_01" ||
		*n.Agent != (AgentPort{"snsd", "eth0", 1}) || !n.Expires.Equal(t0.Add(120*time.Second)) {
		t.Errorf("%+v", n)
	}
}

// A frame of lldpd 1.0.16 on a Linux host with an IPv4 and an IPv6 address.
func TestLldpdHostIsLearned(t *testing.T) {
	tab := NewTable(Limits{})
	ch, err := tab.Receive(received("swp1", firstFrame(t, "testdata/lldpd-host.pcap")), t0)
	if err != nil || len(ch) != 1 || ch[0].Kind != Learned {
		t.Fatalf("%+v, %v", ch, err)
	}
	mac := fabric.MAC{2, 0, 0, 0, 0, 0x0a}
	want := []HostInfo{
		{Addr: netip.MustParseAddr("192.0.2.61"), MAC: mac, Since: t0},
		{Addr: netip.MustParseAddr("2001:db8::61"), MAC: mac, Since: t0},
	}
	if d := cmp.Diff(want, ch[0].Put, cmpAddr); d != "" {
		t.Error(d)
	}
	n := ch[0].Neighbour
	if n.SysName != "vm" || n.SysDesc != "test-host" || n.PortDesc != "ha" || n.PortID != mac.String() ||
		*n.Capabilities != (Capabilities{0x9c, CapStation}) || n.Registration != nil || n.Agent != nil {
		t.Errorf("%+v", n)
	}
	if c := tab.Counters(); c.FramesInErrors != 0 || c.TLVsDiscarded != 0 {
		t.Errorf("%+v", c)
	}
}
