package snsd

import (
	"bytes"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/openinof/inof/fabric"
)

// goldenFrames are the frames of a session of the existing Linux host agent with a
// switch: registration, zone query, then three notices with their acks.
func goldenFrames(t testing.TB) [][]byte {
	t.Helper()
	f, err := os.Open("testdata/snsd-host-session.pcap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var frames [][]byte
	for {
		data, _, err := r.ReadPacketData()
		if err != nil {
			break
		}
		frames = append(frames, data)
	}
	if len(frames) != 8 {
		t.Fatalf("%d frames in the capture, want 8", len(frames))
	}
	return frames
}

var (
	hostMAC   = fabric.MAC{0x72, 0x68, 0x18, 0x4c, 0xae, 0x01}
	switchMAC = fabric.MAC{0x46, 0x68, 0x82, 0x46, 0xc7, 0xd0}
	hostAddr  = netip.MustParseAddr("192.0.2.11")
	target    = netip.MustParseAddr("192.0.2.50")

	goldenRegistration = Registration{
		Addr: hostAddr, Subscribes: true, ProtoVer: DefaultProtoVer,
		Service: Service{Role: RoleInitiator, Protocol: ProtocolRoCE},
	}
	goldenService = Service{Role: RoleTarget, Protocol: ProtocolRoCE, Port: 4420, NQN: "nqn.2026-11.test:target"}
)

func goldenNotice(s State, r Reason) Notice {
	return Notice{Subject: target, Host: hostAddr, Seq: 7, State: s, Reason: r, Service: goldenService}
}

func TestGoldenPacketsBothWays(t *testing.T) {
	ack := Packet{Version: 1, Acks: []Ack{{target, hostAddr, 7}}}
	want := []Packet{
		1: {Version: 1, Queries: []netip.Addr{hostAddr}},
		2: {Version: 1, Notices: []Notice{goldenNotice(Active, ReasonNone)}},
		3: ack,
		4: {Version: 1, Notices: []Notice{goldenNotice(Inactive, ReasonPFCStorm)}},
		5: ack,
		6: {Version: 1, Notices: []Notice{goldenNotice(Inactive, ReasonZoneChanged)}},
		7: ack,
	}
	for i, frame := range goldenFrames(t) {
		if i == 0 {
			continue
		}
		payload := frame[fabric.EthernetHeaderLen:]
		got, err := ParsePacket(payload)
		if err != nil {
			t.Fatalf("frame %d: %v", i+1, err)
		}
		if d := cmp.Diff(want[i], got, cmpAddr); d != "" {
			t.Errorf("frame %d read differently:\n%s", i+1, d)
		}
		src, padding := hostMAC, 0
		if len(got.Notices) > 0 {
			src = switchMAC
		}
		if len(got.Queries) > 0 {
			padding = QueryPadding
		}
		back := fabric.AppendEthernet(nil, fabric.MACNTS, src, fabric.EtherTypeNTS)
		if back, err = got.Append(back); err != nil {
			t.Fatalf("frame %d: %v", i+1, err)
		}
		back = append(back, make([]byte, padding)...)
		if !bytes.Equal(back, frame) {
			t.Errorf("frame %d written differently:\n got % x\nwant % x", i+1, back, frame)
		}
	}
}

func TestEncodersGiveTheGoldenBytes(t *testing.T) {
	frames := goldenFrames(t)
	query, err1 := AppendQuery(nil, QueryPadding, hostAddr)
	notice, err2 := AppendNotify(nil, goldenNotice(Active, ReasonNone))
	ack, err3 := AppendAck(nil, Ack{target, hostAddr, 7})
	var p Packer
	p.Start(frames[4][:fabric.EthernetHeaderLen:fabric.EthernetHeaderLen], Version)
	n := goldenNotice(Inactive, ReasonPFCStorm)
	_, err4 := p.Add(&n)
	for i, c := range []struct {
		got, want []byte
		err       error
	}{
		{query, frames[1][14:], err1},
		{notice, frames[2][14:], err2},
		{ack, frames[3][14:], err3},
		{p.Finish(), frames[4], err4},
	} {
		if c.err != nil || !bytes.Equal(c.got, c.want) {
			t.Errorf("case %d (%v):\n got % x\nwant % x", i, c.err, c.got, c.want)
		}
	}
}

func TestGoldenRegistrationBothWays(t *testing.T) {
	frame := goldenFrames(t)[0]
	const at = 44 // of the organizational TLV's value in the frame
	value := frame[at : at+31]
	got, odd, err := InspectRegistration(value)
	if err != nil || odd != 0 {
		t.Fatalf("odd %b, %v", odd, err)
	}
	if d := cmp.Diff(goldenRegistration, got, cmpAddr); d != "" {
		t.Error(d)
	}
	back, err := got.AppendTLV(nil)
	if err != nil || !bytes.Equal(back, value) {
		t.Errorf("%v:\n got % x\nwant % x", err, back, value)
	}
	pdu := fabric.AppendEthernet(nil, fabric.MACNearestBridge, hostMAC, fabric.EtherTypeLLDP)
	pdu, err = AppendRegistrationPDU(pdu, &RegistrationPDU{
		MAC: hostMAC, PortID: AgentPortID("eth0", 1), TTL: DefaultRegisterTTL, Registration: got,
	})
	if err != nil || !bytes.Equal(pdu, frame) {
		t.Errorf("%v:\n got % x\nwant % x", err, pdu, frame)
	}
}

var cmpAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
