package hostagent

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/snsd"
)

var (
	switchA = fabric.MAC{2, 0xa, 0, 0, 0, 1}
	switchB = fabric.MAC{2, 0xb, 0, 0, 0, 1}
	forger  = fabric.MAC{2, 0xe, 0, 0, 0, 1}
)

// switchPDU is what a switch sends about itself, 120 s long.
func switchPDU(t testing.TB, mac fabric.MAC, caps lldp.Capabilities) []byte {
	t.Helper()
	x := lldp.NewTransmitter(lldp.TxConfig{Local: lldp.Local{Chassis: mac, SysName: "tor", Capabilities: caps}})
	x.PortUp("p1", "p1", mac, time.Unix(1000, 0))
	out := x.Due(time.Unix(1000, 0))
	if len(out) != 1 {
		t.Fatalf("%d frames", len(out))
	}
	return out[0].Frame
}

func bridge() lldp.Capabilities {
	return lldp.Capabilities{System: lldp.CapBridge, Enabled: lldp.CapBridge}
}

func frameOf(b []byte) fabric.Frame {
	return fabric.Frame{Dst: fabric.MAC(b[:6]), Src: fabric.MAC(b[6:12]), EtherType: uint16(b[12])<<8 | uint16(b[13]), Payload: b[fabric.EthernetHeaderLen:]}
}

// Only the switch that LLDP showed on a link is listened to: not another one, not before, and not
// what LLDP shows that no bridge would keep on its link, or that is no switch.
func TestNoticesCountFromTheSwitchThatLLDPShows(t *testing.T) {
	now := time.Unix(1000, 0)
	var tr trust
	nts := func(src, dst fabric.MAC) bool {
		ok, _ := tr.nts(&fabric.Frame{Src: src, Dst: dst, EtherType: fabric.EtherTypeNTS})
		return ok
	}
	hear := func(b []byte, dst fabric.MAC) bool {
		f := frameOf(b)
		f.Dst = dst
		return tr.lldp(&f, now)
	}
	want := func(step string, a, b, f bool) {
		t.Helper()
		if nts(switchA, fabric.MACNTS) != a || nts(switchB, fabric.MACNTS) != b || nts(forger, fabric.MACNTS) != f {
			t.Errorf("%s: A, B and the forger are not taken as %v, %v and %v; %+v", step, a, b, f, tr)
		}
	}
	pduA, pduB := switchPDU(t, switchA, bridge()), switchPDU(t, switchB, bridge())
	want("nothing was heard", false, false, false)
	for name, b := range map[string][]byte{
		"a host":       switchPDU(t, forger, lldp.Capabilities{System: lldp.CapStation, Enabled: lldp.CapStation}),
		"garbage":      append(fabric.AppendEthernet(nil, fabric.MACNearestBridge, forger, fabric.EtherTypeLLDP), 1, 2, 3),
		"nothing":      fabric.AppendEthernet(nil, fabric.MACNearestBridge, forger, fabric.EtherTypeLLDP),
		"registration": registrationPDU(t),
	} {
		if hear(b, fabric.MACNearestBridge) {
			t.Errorf("%s was taken for a switch", name)
		}
	}
	for _, dst := range []fabric.MAC{forger, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, fabric.MACNTS, {0x01, 0x80, 0xc2, 0, 0, 0x01}} {
		if hear(pduA, dst) {
			t.Errorf("LLDP to %v was taken", dst)
		}
	}
	want("nothing counted", false, false, false)
	for _, dst := range lldpGroups {
		tr = trust{}
		if !hear(pduA, dst) {
			t.Errorf("LLDP to %v was not taken", dst)
		}
		want("A was heard", true, false, false)
	}
	if hear(pduA, fabric.MACNearestBridge) {
		t.Error("A is news again")
	}
	for _, dst := range []fabric.MAC{switchA, {2, 2, 2, 2, 2, 2}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		if nts(switchA, dst) {
			t.Errorf("a notice to %v was taken", dst)
		}
	}
	now = now.Add(time.Hour)
	want("A has been silent beyond its TTL", true, false, false)
	tr.down()
	want("the link was down", true, false, false)
	hear(pduB, fabric.MACNearestBridge)
	want("another switch was heard after that", false, true, false)
	hear(pduA, fabric.MACNearestBridge)
	want("two that speak at a time", true, true, false)
	now = now.Add(60 * time.Second)
	hear(pduB, fabric.MACNearestBridge)
	now = now.Add(61 * time.Second)
	hear(pduB, fabric.MACNearestBridge)
	want("one of two fell silent", false, true, false)
	tr.named = []fabric.MAC{switchA}
	want("the operator named A", true, false, false)
	tr = trust{}
	for i := range byte(20) {
		b := switchPDU(t, fabric.MAC{2, 0, 0, 0, 0, i + 1}, bridge())
		hear(b, fabric.MACNearestBridge)
	}
	if len(tr.heard) != maxSwitches {
		t.Errorf("%d switches are kept", len(tr.heard))
	}
}

func registrationPDU(t testing.TB) []byte {
	t.Helper()
	b := fabric.AppendEthernet(nil, fabric.MACNearestBridge, forger, fabric.EtherTypeLLDP)
	b, err := snsd.AppendRegistrationPDU(b, &snsd.RegistrationPDU{MAC: forger, PortID: snsd.AgentPortID("eth0", 1), TTL: 120,
		Registration: snsd.Registration{Addr: self1, Subscribes: true, ProtoVer: snsd.DefaultProtoVer}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Three refusals in a row are told with the source, and then ever more rarely.
func TestRefusalsInARowAreTold(t *testing.T) {
	tr := trust{named: []fabric.MAC{switchA}}
	bad, good := fabric.Frame{Src: forger, Dst: fabric.MACNTS}, fabric.Frame{Src: switchA, Dst: fabric.MACNTS}
	var events []string
	for range 100 {
		if _, e := tr.nts(&bad); e != "" {
			events = append(events, e)
		}
	}
	if len(events) != 6 || !strings.HasPrefix(events[0], "3 frames in a row, the last from "+forger.String()) {
		t.Errorf("%q", events)
	}
	for range 100 {
		tr.nts(&good)
		for range 2 {
			if _, e := tr.nts(&bad); e != "" {
				t.Errorf("two in a row: %s", e)
			}
		}
	}
	if tr.count.Source != 300 {
		t.Errorf("%+v", tr.count)
	}
}

// A forged notice changes nothing, whoever is named as its source and wherever it goes; the same
// one by the switch is acted upon.
func TestAForgedNoticeLeavesNoPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cablePort("eth1", self1)
		p.Switch = nil
		h := newHost(t, p, cablePort("eth2", self2))
		h.said("eth1")
		notice := word(array1, snsd.Inactive, snsd.ReasonLinkDown, 7)
		inject := func(b []byte) {
			t.Helper()
			if err := h.dp.Inject("eth1", b); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		frame := func(src, dst fabric.MAC) []byte {
			b := fabric.AppendEthernet(nil, dst, src, fabric.EtherTypeNTS)
			b, err := snsd.Packet{Version: 1, Notices: []snsd.Notice{notice}}.Append(b)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		own := h.dp.Ports()[0].MAC
		inject(frame(switchA, fabric.MACNTS)) // before its LLDP
		if st := h.snapshotNow(t); len(st.Ports[0].Warnings) != 1 || len(st.Ports[1].Warnings) != 0 {
			t.Errorf("warnings: %+v", st.Ports)
		}
		inject(switchPDU(t, switchA, bridge()))
		inject(frame(forger, fabric.MACNTS))
		inject(frame(forger, own))
		inject(frame(switchA, own))
		if got := h.said("eth1"); len(got) > 0 || len(h.kernel.Calls()) > 2 {
			t.Errorf("%q, %v", got, h.kernel.Calls())
		}
		st := h.snapshotNow(t).Ports[0]
		if want := (Refusals{Destination: 2, Source: 1, NoSwitch: 1}); st.Refusals != want || len(st.Switches) != 1 || st.Switches[0] != switchA || len(st.Warnings) > 0 {
			t.Errorf("%+v", st)
		}
		inject(frame(switchA, fabric.MACNTS))
		h.wantSaid("eth1", "!"+array1.String()+"/7")
		if len(h.kernel.Calls()) <= 2 {
			t.Errorf("the switch is not listened to: %v", h.kernel.Calls())
		}
	})
}

// snapshotNow asks the agent's loop.
func (h *host) snapshotNow(t *testing.T) Status {
	t.Helper()
	st, err := h.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func FuzzTrust(f *testing.F) {
	f.Add(switchPDU(f, switchA, bridge()))
	f.Add(registrationPDU(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < fabric.EthernetHeaderLen {
			return
		}
		var tr trust
		frame := frameOf(b)
		news := tr.lldp(&frame, time.Unix(1000, 0))
		if ok, _ := tr.nts(&fabric.Frame{Src: frame.Src, Dst: fabric.MACNTS}); ok != news {
			t.Fatalf("heard %v, taken %v", news, ok)
		}
	})
}

// A port lost its link: what the switch at the other one says of the fence of its paths counts, and
// is acked there. It is not waited for where the switch could not know that both are one host's.
func TestTheFenceOfADeadPortIsHeardAtAnother(t *testing.T) {
	for _, name := range []string{"nqn.2026-11.net.example:host", ""} {
		bubble(t, name, func(t *testing.T) {
			ports := []Port{cablePort("eth1", self1), cablePort("eth2", self2)}
			for i := range ports {
				ports[i].Extensions, ports[i].Service.NQN = snsd.ExtFence, name
			}
			h := newHost(t, ports...)
			policy := h.actor.Policy()
			policy.Fence = FencePrefer
			h.actor.SetPolicy(policy)
			offer := func(n snsd.Notice) {
				b, err := snsd.Packet{Version: 1, Extensions: snsd.ExtFence, Notices: []snsd.Notice{n}}.Append(nil)
				if err != nil {
					t.Fatal(err)
				}
				h.receive("eth2", b)
				synctest.Wait()
			}
			offer(word(array2, snsd.Active, snsd.ReasonNone, 1))
			h.said("eth2")
			h.kernel.Break(array1)
			h.dp.SetCarrier("eth1", false)
			time.Sleep(300 * time.Millisecond)
			if destroyed := slices.ContainsFunc(h.kernel.Calls(), func(c string) bool { return strings.HasPrefix(c, "destroy") }); destroyed == (name != "") {
				t.Errorf("without a word of a fence: %v", h.kernel.Calls())
			}
			n := word(array1, snsd.Inactive, snsd.ReasonLinkDown, 2)
			n.Fence = byTarget
			offer(n)
			h.wantSaid("eth2", "!"+array1.String()+"/2")
			time.Sleep(50 * time.Millisecond)
			if c, err := h.kernel.Controller(0); err != nil || c.State == "live" {
				t.Errorf("%+v, %v", c, err)
			}
			n.Host = array2 // nobody's here
			offer(n)
			h.wantSaid("eth2")
		})
	}
}
