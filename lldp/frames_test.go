package lldp

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// registration is the frame by which host number h registers its n-th address.
func registration(port string, h byte, n int, addr string, ttl uint16) fabric.Frame {
	mac := fabric.MAC{2, 0, 0, 0, 0, h}
	b, err := snsd.AppendRegistrationPDU(nil, &snsd.RegistrationPDU{
		MAC: mac, PortID: snsd.AgentPortID("eth0", n), TTL: ttl,
		Registration: snsd.Registration{
			Addr: netip.MustParseAddr(addr), Subscribes: true, ProtoVer: snsd.DefaultProtoVer,
			Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE},
		},
	})
	if err != nil {
		panic(err)
	}
	return frameOf(port, mac, b)
}

// plain is the frame of an ordinary LLDP agent on host number h.
func plain(port string, h byte, caps *Capabilities, mgmt ...string) fabric.Frame {
	mac := fabric.MAC{2, 0, 0, 0, 0, h}
	name := fmt.Sprintf("host-%d", h)
	p := PDU{Chassis: MACID(ChassisMAC, mac), Port: MACID(PortMAC, mac), TTL: 120, SysName: &name, Capabilities: caps}
	for _, m := range mgmt {
		p.Mgmt = append(p.Mgmt, MgmtAddr{Addr: netip.MustParseAddr(m), IfSubtype: 2, IfNumber: 3})
	}
	b, err := p.Append(nil)
	if err != nil {
		panic(err)
	}
	return frameOf(port, mac, b)
}

func frameOf(port string, src fabric.MAC, payload []byte) fabric.Frame {
	return fabric.Frame{Port: port, Src: src, Dst: fabric.MACNearestBridge, EtherType: fabric.EtherTypeLLDP, Payload: payload}
}

// hear gives the table a frame that must lead to one change.
func hear(t *testing.T, tab *Table, f fabric.Frame, now time.Time, want ChangeKind) Change {
	t.Helper()
	ch, err := tab.Receive(f, now)
	if want == Removed && err == nil && len(ch) == 0 {
		if ch = tab.Expire(now.Add(Farewell - 1)); len(ch) > 0 {
			t.Fatal("it went before its farewell was over")
		}
		ch = tab.Expire(now.Add(Farewell))
	}
	if err != nil || len(ch) != 1 {
		t.Fatalf("%d changes, %v; want %s", len(ch), err, want)
	}
	if ch[0].Kind != want {
		t.Fatalf("%s, want %s", ch[0].Kind, want)
	}
	return ch[0]
}

func addrsOf(hosts []HostInfo) []string {
	var s []string
	for _, h := range hosts {
		s = append(s, h.Addr.String())
	}
	return s
}

// wantHosts compares what a change puts and takes.
func wantHosts(t *testing.T, ch Change, put, gone []string, why snsd.Reason) {
	t.Helper()
	if d := cmp.Diff(put, addrsOf(ch.Put)); d != "" {
		t.Errorf("put:\n%s", d)
	}
	var g []string
	for _, a := range ch.Gone {
		g = append(g, a.String())
	}
	if d := cmp.Diff(gone, g); d != "" {
		t.Errorf("gone:\n%s", d)
	}
	if ch.Reason != why {
		t.Errorf("reason %s, want %s", ch.Reason, why)
	}
}

func at(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }
