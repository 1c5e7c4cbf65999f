package linux

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
)

// rig is a switch with the far end of its cables, simulated or real. Ports are
// called p0, p1 ...; the dataplane owns p*.
type rig struct {
	fabric.Dataplane
	plug    func(port string)
	unplug  func(port string)
	carrier func(port string, up bool)
	inject  func(port string, frame []byte)
	sent    func(port string) []byte // the next frame that arrives at the far end
}

var rigs = []struct {
	name string
	make func(t *testing.T) rig
}{
	{"fake", fakeRig},
	{"linux", linuxRig},
}

func fakeRig(t *testing.T) rig {
	f := fabric.NewFake(fabric.FakeConfig{Name: "switch"})
	sent := make(map[string]chan []byte)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	return rig{
		Dataplane: f,
		plug: func(port string) {
			c := make(chan []byte, 16)
			sent[port] = c
			f.Plug(fabric.Port{Name: port, AdminUp: true, Carrier: true})
			must(f.OnSend(port, func(frame []byte) { c <- frame }))
		},
		unplug:  f.Unplug,
		carrier: func(port string, up bool) { must(f.SetCarrier(port, up)) },
		inject:  func(port string, frame []byte) { must(f.Inject(port, frame)) },
		sent:    func(port string) []byte { return receive(t, sent[port], "frame sent by "+port) },
	}
}

func linuxRig(t *testing.T) rig {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("other0", host, "hother0")
	d, err := New(Config{Access: []string{"p*"}, NetNS: sw.Path()})
	if err != nil {
		t.Fatal(err)
	}
	far := make(map[string]*Socket)
	return rig{
		Dataplane: d,
		plug: func(port string) {
			sw.veth(port, host, "h"+port)
			far[port] = host.socket("h" + port)
		},
		unplug:  sw.Delete,
		carrier: func(port string, up bool) { host.SetUp("h"+port, up) },
		inject: func(port string, frame []byte) {
			t.Helper()
			if err := far[port].Send(frame); err != nil {
				t.Fatal(err)
			}
		},
		sent: func(port string) []byte {
			t.Helper()
			s, buf := far[port], make([]byte, 2048)
			_ = s.SetDeadline(time.Now().Add(patience))
			for {
				n, _, err := s.Recv(buf)
				if err == nil {
					return buf[:n]
				}
				if !isDown(err) {
					t.Fatal(err)
				}
			}
		},
	}
}

func control(etherType uint16, dst fabric.MAC, payload []byte) []byte {
	return append(fabric.AppendEthernet(nil, dst, fabric.MAC{2, 0, 0, 0, 0, 0x99}, etherType), payload...)
}

func payload(n int, first byte) []byte {
	b := make([]byte, n)
	b[0] = first
	return b
}

func TestDataplane(t *testing.T) {
	for _, rg := range rigs {
		t.Run(rg.name, func(t *testing.T) {
			t.Run("ports come and go", func(t *testing.T) { portsComeAndGo(t, rg.make(t)) })
			t.Run("carrier and administrative state", func(t *testing.T) { carrierAndAdmin(t, rg.make(t)) })
			t.Run("only control frames come in", func(t *testing.T) { onlyControlFrames(t, rg.make(t)) })
			t.Run("frames go out", func(t *testing.T) { framesGoOut(t, rg.make(t)) })
		})
	}
}

func portsComeAndGo(t *testing.T, g rig) {
	g.plug("p0")
	r := run(t, g)
	if ev := r.added("p0"); ev.Port.Index < 1 || ev.Port.MAC.IsZero() || ev.Port.MTU != 1500 {
		t.Errorf("port is %+v, want an index, an address and MTU 1500", ev.Port)
	}
	receive(t, r.Ready(), "Ready")
	g.plug("p1")
	first := r.ready("p1")
	g.unplug("p1")
	if ev := r.removed("p1"); ev.Port.Index != first.Index {
		t.Errorf("removed index %d, want %d", ev.Port.Index, first.Index)
	}
	isErr(t, r.Send("p1", control(fabric.EtherTypeLLDP, fabric.MACNearestBridge, payload(46, 1))), fabric.ErrNoPort)
	isErr(t, r.SetAdmin("p1", true), fabric.ErrNoPort)
	_, err := r.Counters("p1")
	isErr(t, err, fabric.ErrNoPort)
	g.plug("p1")
	if again := r.ready("p1"); again.Index == first.Index {
		t.Errorf("plugged again with the old index %d, want a new one", again.Index)
	}
}

func carrierAndAdmin(t *testing.T, g rig) {
	g.plug("p0")
	r := run(t, g)
	r.ready("p0")
	before, err := r.Counters("p0")
	if err != nil {
		t.Fatal(err)
	}
	t0 := time.Now()
	g.carrier("p0", false)
	ev := r.up("p0", false)
	if !ev.Port.AdminUp || ev.At.Before(t0) || ev.At.After(time.Now()) {
		t.Errorf("carrier loss told as %+v, want administratively up and a time since %v", ev, t0)
	}
	g.carrier("p0", true)
	r.up("p0", true)
	after, err := r.Counters("p0")
	if err != nil {
		t.Fatal(err)
	}
	if n := after.CarrierChanges - before.CarrierChanges; n != 2 {
		t.Errorf("%d carrier changes counted, want 2", n)
	}
	for _, up := range []bool{false, true} {
		if err := r.SetAdmin("p0", up); err != nil {
			t.Fatal(err)
		}
		if ev := r.up("p0", up); ev.Port.AdminUp != up || ev.Port.Carrier != up {
			t.Errorf("after SetAdmin(%t) the port is %+v", up, ev.Port)
		}
		if !up {
			isErr(t, r.Send("p0", control(fabric.EtherTypeLLDP, fabric.MACNearestBridge, payload(46, 1))), fabric.ErrPortDown)
		}
	}
}

func onlyControlFrames(t *testing.T, g rig) {
	g.plug("p0")
	r := run(t, g)
	own := r.ready("p0").MAC
	for _, f := range [][]byte{
		control(0x0800, own, payload(46, 1)),
		control(fabric.EtherTypeLLDP, fabric.MAC{0x01, 0x80, 0xc2, 0, 0, 0x03}, payload(46, 2)),
		control(fabric.EtherTypeLLDP, fabric.MAC{2, 0, 0, 0, 0, 0x98}, payload(46, 3)),
		control(fabric.EtherTypeLLDP, fabric.MACNTS, payload(46, 4)),
		control(fabric.EtherTypeNTS, fabric.MACNearestBridge, payload(46, 5)),
		control(0x8100, fabric.MACNTS, append([]byte{0, 7, 0x88, 0xa7}, payload(46, 6)...)),
		control(0x8100, fabric.MACNearestBridge, append([]byte{0, 7, 0x88, 0xcc}, payload(46, 7)...)),
	} {
		g.inject("p0", f)
	}
	for i, want := range []fabric.Frame{
		{EtherType: fabric.EtherTypeLLDP, Dst: fabric.MACNearestBridge, Payload: payload(46, 10)},
		{EtherType: fabric.EtherTypeNTS, Dst: fabric.MACNTS, Payload: payload(46, 11)},
		{EtherType: fabric.EtherTypeLLDP, Dst: own, Payload: payload(fabric.MaxControlPayload, 12)},
		{EtherType: fabric.EtherTypeNTS, Dst: own, Payload: payload(1, 13)},
		{EtherType: fabric.EtherTypeNTS, Dst: fabric.MACNTS, Payload: payload(46, 14)},
	} {
		t0 := time.Now()
		if i == 4 { // with a priority tag, which is no VLAN
			g.inject("p0", control(0x8100, want.Dst, append([]byte{0xe0, 0, 0x88, 0xa7}, want.Payload...)))
		} else {
			g.inject("p0", control(want.EtherType, want.Dst, want.Payload))
		}
		got := receive(t, r.Frames(), fmt.Sprintf("frame %d", i))
		if got.At.Before(t0) || got.At.After(time.Now()) {
			t.Errorf("frame %d received at %v, want a time since %v", i, got.At, t0)
		}
		want.Port, want.Src, want.At = "p0", fabric.MAC{2, 0, 0, 0, 0, 0x99}, got.At
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("frame %d (-want +got):\n%s", i, diff)
		}
	}
}

func framesGoOut(t *testing.T, g rig) {
	g.plug("p0")
	r := run(t, g)
	r.ready("p0")
	for i, want := range [][]byte{
		control(fabric.EtherTypeLLDP, fabric.MACNearestBridge, payload(60, 1)),
		control(fabric.EtherTypeNTS, fabric.MACNTS, payload(1499, 2)),
	} {
		if err := r.Send("p0", want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, g.sent("p0")); diff != "" {
			t.Errorf("frame %d (-want +got):\n%s", i, diff)
		}
	}
	isErr(t, r.Send("p0", make([]byte, fabric.EthernetHeaderLen-1)), fabric.ErrFrameSize)
	isErr(t, r.Send("p0", control(fabric.EtherTypeNTS, fabric.MACNTS, payload(1501, 3))), fabric.ErrFrameSize)
	isErr(t, r.Send("p9", control(fabric.EtherTypeNTS, fabric.MACNTS, payload(60, 4))), fabric.ErrNoPort)
}
