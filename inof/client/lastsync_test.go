package client

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// Of two reflectors one answers: what was in force before the start stays until the other one is
// heard, or is not waited for any longer; then what nobody has said goes.
func TestTheLastSyncStandsUntilAllAreHeard(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	self, first, far := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.101"), netip.MustParseAddr("10.0.0.2")
	host := func(addr string) zone.Host {
		return zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr(addr), Device: far, Port: "eth1"}, Since: now}
	}
	named := func(name string) zone.Zone {
		return zone.Zone{Name: name, Members: []zone.Member{{Kind: zone.MemberAddr, First: netip.MustParseAddr("192.0.2.1")}}}
	}
	stays, goes, own := host("192.0.2.1"), host("192.0.2.2"), host("192.0.2.3")
	own.Device = self
	c := New(self, 7)
	c.SetReflectors(2, AgreeIdentical, time.Minute)
	settings := wire.Settings{AutoJoin: true}
	a := c.Recall(LastSync{Settings: &settings, Zones: []zone.Zone{named("a"), named("b")}, Reserved: []zone.Zone{named("r")}, Hosts: []zone.Host{stays, goes, own}})
	if len(a.Zones) != 2 || len(a.Reserved) != 1 || len(a.Hosts) != 2 || a.Settings == nil || !c.Recalling() || c.Synced() {
		t.Fatalf("recalled: %+v", a)
	}
	if c.ResumePoint(first) != nil {
		t.Error("it resumes from what it has not heard in this life")
	}
	c.Up(first, now)
	receive := func(m wire.Message) Applied {
		t.Helper()
		a, err := c.Receive(first, m, now)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a = receive(&wire.Update{Origin: first, Anew: true, Settings: &settings, Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: named("a")}},
		Hosts: []wire.HostRecord{{Op: wire.Put, Host: stays}}})
	if len(a.Zones)+len(a.Reserved)+len(a.Hosts) != 0 || a.Settings != nil {
		t.Errorf("said again: %+v", a)
	}
	a = receive(&wire.EndOfSync{Epoch: 1, Seq: 1})
	if len(a.Zones)+len(a.Reserved)+len(a.Hosts) != 0 || a.Settings != nil || !c.Recalling() {
		t.Errorf("one of two has ended its sync: %+v", a)
	}
	now = c.Next()
	a = c.Tick(now)
	gone := len(a.Hosts) == 1 && a.Hosts[0].Op == wire.Withdraw && a.Hosts[0].Host.HostKey == goes.HostKey
	if !gone || len(a.Reserved) != 1 || a.Reserved[0].Op != wire.Withdraw || c.Recalling() || !c.Synced() {
		t.Errorf("the other one is not waited for any longer: %+v", a)
	}
	is := map[string]wire.Op{}
	for _, z := range a.Zones {
		is[z.Zone.Name] = z.Op
	}
	if len(is) != 2 || is["a"] != wire.Put || is["b"] != wire.Withdraw {
		t.Errorf("zones: %v", is)
	}
	if _, known := c.Host(stays.HostKey); !known {
		t.Error("a host that was said again is gone")
	}
}
