package device

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// meshCore is a client with two hosts, i1 on eth1 in zone a and i2 on eth2 in zone
// b, whose reflector is played by the test.
type meshCore struct {
	disk *keep.Memory
	t    *testing.T
	c    *Core
	now  time.Time
	mesh MeshConfig

	allRoles bool
	told     []string                 // to local hosts
	last     map[[2]netip.Addr]uint32 // number of what a host was told last of a subject
	frames   int                      // notices in them, repeated ones too
	watched  [][]string               // each call of WatchPaths
	peers    []bfd.Peer               // the last one
	sent     []wire.Delivery
	events   []string

	hostsChanged []string // address and change of each event of a host
}

func (m *meshCore) SendFrame(port string, f []byte) {
	if len(f) < fabric.EthernetHeaderLen || f[12] != 0x8a { // some other frame
		if pkt, err := snsd.ParsePacket(f[fabric.EthernetHeaderLen:]); err == nil {
			for _, n := range pkt.Notices {
				m.frames++
				if who := [2]netip.Addr{n.Host, n.Subject}; m.last[who] != n.Seq { // else an agent takes it for the same again
					m.last[who] = n.Seq
					m.told = append(m.told, fmt.Sprintf("%s: %s %s %s", port, n.Subject, n.State, n.Reason))
				}
				m.c.notify.Ack(port, snsd.Ack{Host: n.Host, Subject: n.Subject, Seq: n.Seq}, m.now)
			}
		}
	}
}
func (m *meshCore) ToReflectors(ds []wire.Delivery) { m.sent = append(m.sent, ds...) }
func (m *meshCore) ToClients([]wire.Delivery)       {}
func (m *meshCore) SetAdmin(string, bool)           {}
func (m *meshCore) Event(e api.Event) {
	switch e.Kind {
	case "path":
		m.events = append(m.events, e.Text)
	case "host":
		m.hostsChanged = append(m.hostsChanged, e.Addr+" "+e.Fields["change"])
	}
}
func (m *meshCore) WatchPaths(peers []bfd.Peer) {
	m.peers = peers
	list := []string{}
	for _, p := range peers {
		list = append(list, p.Peer.String())
	}
	m.watched = append(m.watched, list)
}

const far1, far2, far3 = "10.0.0.2", "10.0.0.3", "10.0.0.4"

var meshOn = wire.Settings{BFD: wire.BFDSettings{Enabled: true, Interval: 50 * time.Millisecond, DetectMult: 4}}

func newMeshCore(t *testing.T) *meshCore {
	m := &meshCore{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), last: map[[2]netip.Addr]uint32{}}
	m.disk = &keep.Memory{}
	m.start(State{})
	m.registerBoth()
	m.sync(meshOn)
	return m
}

func (m *meshCore) start(st State) {
	m.t.Helper()
	c, err := New(Config{Self: bareSelf, Access: true, Epoch: uint64(m.now.UnixNano()), Mesh: m.mesh, Keep: m.disk, Store: m.disk, Notify: hostnotify.Config{AllRoles: m.allRoles}}, m, m.now)
	m.disk.Begin()
	if err == nil {
		m.c = c
		err = c.Restore(st, m.now)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	for _, p := range []string{"eth1", "eth2"} {
		c.Port(fabric.Event{Kind: fabric.PortAdded, At: m.now, Changes: 1, Port: fabric.Port{Name: p, Index: 1, AdminUp: true, Carrier: true}}, m.now)
	}
	c.Start(m.now)
}

// restart is the end of the process as it is told to, and the next one.
func (m *meshCore) restart() {
	m.t.Helper()
	m.c.KeepRows(m.now)
	m.disk.Stop()
	m.start(keptIn(m.t, m.disk))
	m.pass(time.Second)
}

func (m *meshCore) registerBoth() {
	b := &bareCore{Core: m.c, t: m.t, now: m.now}
	b.register("h1", "eth1", i1)
	b.register("h2", "eth2", i2)
	m.now = b.now
}

// sync plays a whole sync of the reflector: zone a with i1 and hosts of far1, zone b
// with i2 and hosts of far2.
func (m *meshCore) sync(s wire.Settings) {
	m.c.ReflectorUp(bareReflector, m.now)
	member := func(list ...string) (out []zone.Member) {
		for _, a := range list {
			out = append(out, zone.Member{Kind: zone.MemberAddr, First: netip.MustParseAddr(a)})
		}
		return out
	}
	m.say(&wire.Update{Settings: &s,
		Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "a", Members: member(i1, t1)}}, {Op: wire.Put, Zone: zone.Zone{Name: "b", Members: member(i2, t2)}}},
		Hosts: []wire.HostRecord{m.host(bareSelf.String(), "eth1", i1), m.host(bareSelf.String(), "eth2", i2), m.host(far1, "eth7", t1), m.host(far2, "eth7", t2)}})
	m.c.ReflectorMessage(bareReflector, &wire.EndOfSync{}, m.now)
	m.pass(time.Second)
}

func (m *meshCore) host(dev, port, addr string) wire.HostRecord {
	return wire.HostRecord{Op: wire.Put, Host: zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr(addr), Device: netip.MustParseAddr(dev), Port: port},
		MAC: hostMAC(dev + addr), Since: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}}
}

func (m *meshCore) say(u *wire.Update) {
	u.Origin = bareReflector
	m.c.ReflectorMessage(bareReflector, u, m.now)
	m.c.Pump(m.now)
}

func (m *meshCore) withdraw(dev, addr string) {
	r := m.host(dev, "eth7", addr)
	r.Op, r.Why = wire.Withdraw, snsd.ReasonAgedOut
	m.say(&wire.Update{Hosts: []wire.HostRecord{r}})
}

// pass lets time pass with all that falls due.
func (m *meshCore) pass(d time.Duration) {
	end := m.now.Add(d)
	for range 10_000 {
		m.c.Pump(m.now)
		next := m.c.Next()
		if next.IsZero() || next.After(end) {
			m.now = end
			return
		}
		if next.After(m.now) {
			m.now = next
		}
		m.c.Tick(m.now)
	}
	m.t.Fatal("timers are due without end")
}

func (m *meshCore) path(dev string, r bfd.Report, diag bfd.Diag) {
	m.c.Path(bfd.Event{Key: bfd.Key{Peer: netip.MustParseAddr(dev), Local: bareSelf, Multihop: true}, Report: r, Diag: diag, At: m.now}, m.now)
	m.pass(200 * time.Millisecond)
}

// expect compares what the hosts were told since the last call.
func (m *meshCore) expect(step string, want ...string) {
	m.t.Helper()
	slices.Sort(m.told)
	if !slices.Equal(m.told, want) {
		m.t.Errorf("%s: the hosts were told %q, want %q", step, m.told, want)
	}
	m.told = nil
}

func (m *meshCore) expectWatched(step string, want ...[]string) {
	m.t.Helper()
	if diff := cmp.Diff(want, m.watched); diff != "" {
		m.t.Errorf("%s: devices to be watched (-want +got):\n%s", step, diff)
	}
	m.watched = nil
}

func begun(t *testing.T) *meshCore {
	m := newMeshCore(t)
	m.told, m.watched, m.sent, m.events = nil, nil, nil, nil
	return m
}

func TestTheDevicesWithHostsInCommonZonesAreWatched(t *testing.T) {
	m := newMeshCore(t)
	m.expectWatched("sync", []string{far1, far2})
	want := bfd.Peer{Key: bfd.Key{Peer: netip.MustParseAddr(far1), Local: bareSelf, Multihop: true},
		Timers: bfd.Timers{MinTx: 50 * time.Millisecond, MinRx: 50 * time.Millisecond, DetectMult: 4}}
	if m.peers[0] != want {
		t.Errorf("session %+v, want %+v", m.peers[0], want)
	}
	m.say(&wire.Update{Hosts: []wire.HostRecord{m.host(far3, "eth7", "192.0.2.77")}}) // in no zone of ours
	m.say(&wire.Update{Downs: []wire.DownRecord{{Device: netip.MustParseAddr(far1), Port: "eth7", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: m.now}, Addrs: []netip.Addr{netip.MustParseAddr(t1)}}}})
	m.pass(time.Second)
	m.expectWatched("a host of no common zone, and a fault")
	m.withdraw(far2, t2)
	m.pass(time.Second)
	m.expectWatched("the last common host of a device leaves", []string{far1})
}

func TestManyDevicesAreToldTogether(t *testing.T) {
	m := begun(t)
	var members []zone.Member
	for i := range 254 {
		dev := fmt.Sprintf("10.9.0.%d", i+1)
		addr := fmt.Sprintf("198.51.100.%d", i+1)
		members = append(members, zone.Member{Kind: zone.MemberAddr, First: netip.MustParseAddr(addr)})
		m.say(&wire.Update{Hosts: []wire.HostRecord{m.host(dev, "eth1", addr)}})
	}
	members = append(members, zone.Member{Kind: zone.MemberAddr, First: netip.MustParseAddr(i1)}, zone.Member{Kind: zone.MemberAddr, First: netip.MustParseAddr(t1)})
	m.say(&wire.Update{Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "a", Members: members}}}})
	m.pass(time.Second)
	if len(m.watched) != 1 || len(m.watched[0]) != 256 {
		t.Errorf("%d calls, want one with 256 devices", len(m.watched))
	}
}

func TestAFailedPathIsToldToTheHostsOfCommonZonesOnly(t *testing.T) {
	m := begun(t)
	m.path(far1, bfd.ReportUp, 0)
	m.expect("first up")
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.expect("down", "eth1: "+t1+" inactive bfd-down")
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.expect("down again")
	m.path(far1, bfd.ReportUp, 0)
	m.expect("up", "eth1: "+t1+" active none")
	if len(m.sent) != 0 {
		t.Errorf("the reflector was told %v", m.sent)
	}
	if len(m.events) != 2 {
		t.Errorf("events %q, want two", m.events)
	}
	m.path(far3, bfd.ReportDown, bfd.DiagDetectTime)
	m.expect("a device that is not watched")
	if m.c.mesh.counters.Foreign != 1 {
		t.Errorf("counters %+v", m.c.mesh.counters)
	}
}

func TestAHostLearnedBehindAFailedPathIsUnreachable(t *testing.T) {
	m := begun(t)
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.told = nil
	m.withdraw(far1, t1)
	m.pass(time.Second)
	m.expect("withdrawn: it stays unreachable")
	m.say(&wire.Update{Hosts: []wire.HostRecord{m.host(far1, "eth8", t1)}})
	m.pass(time.Second)
	if s, why := m.c.dir.State(netip.MustParseAddr(t1)); s != snsd.Inactive || why != snsd.ReasonBFDDown {
		t.Errorf("%s %s", s, why)
	}
}

// A device whose path fails leaves the set of those that share a zone: it is watched
// further, so that it is not taken for reachable when it comes back.
func TestADeviceThatLeavesWithAFailedPathIsWatchedFurther(t *testing.T) {
	m := begun(t)
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.withdraw(far1, t1)
	m.pass(time.Second)
	m.told = nil
	m.expectWatched("left")
	m.say(&wire.Update{Hosts: []wire.HostRecord{m.host(far1, "eth7", t1)}})
	m.pass(time.Second)
	m.watched = nil
	for _, told := range m.told {
		if told == "eth1: "+t1+" active none" {
			t.Error("the host was told active over a path that fails")
		}
	}
	m.told = nil
	m.withdraw(far1, t1)
	m.pass(time.Second)
	m.watched = nil
	m.path(far1, bfd.ReportUp, 0)
	m.pass(time.Second)
	m.expectWatched("the path works again", []string{far2})
	if f := m.c.FailedPaths(); len(f) != 0 {
		t.Errorf("failed paths %v", f)
	}
}

func TestAFailedPathIsForgottenInTheEnd(t *testing.T) {
	m := begun(t)
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.withdraw(far1, t1)
	for range int(pathMemory/time.Minute) - 1 {
		m.pass(time.Minute - 2*time.Second)
		m.registerBoth()
	}
	if f := m.c.FailedPaths(); len(f) != 1 {
		t.Errorf("failed paths %v after nine minutes", f)
	}
	m.told, m.watched = nil, nil
	m.pass(time.Minute + time.Second)
	m.expectWatched("forgotten", []string{far2})
	if f := m.c.FailedPaths(); len(f) != 0 || m.c.mesh.counters.Forgotten != 1 {
		t.Errorf("failed paths %v, counters %+v", f, m.c.mesh.counters)
	}
}

func TestARestartWhileAPathFailsTellsNothingNew(t *testing.T) {
	m := begun(t)
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.told, m.watched = nil, nil
	m.restart()
	m.expectWatched("before any reflector is heard, by what was known", []string{far1, far2})
	m.sync(meshOn)
	m.expect("restart and sync")
	m.expectWatched("synced")
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.path(far2, bfd.ReportUnknown, 0)
	m.expect("BFD says the same")
	m.path(far1, bfd.ReportUp, 0)
	m.expect("BFD says that the path works", "eth1: "+t1+" active none")
}

// Killed right after a path failed: that is known.
func TestAFailedPathIsKeptAtOnce(t *testing.T) {
	m := begun(t)
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.path(far2, bfd.ReportDown, bfd.DiagDetectTime)
	m.path(far2, bfd.ReportUp, 0)
	st := keptIn(t, m.disk)
	if diff := cmp.Diff(m.c.mesh.save(), st.Paths, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || len(st.Paths) != 1 {
		t.Errorf("%s%+v", diff, st.Paths)
	}
}

// A process is killed right after it told a fault. If the fault is over when it starts again,
// the host must hear so, and the other one nothing. A stop as asked, and one that
// loses the last rows, leave nobody with a wrong word either.
func TestAKillRightAfterANoticeLeavesNobodyWithIt(t *testing.T) {
	for _, how := range []string{"stopped", "killed", "rows lost"} {
		m := begun(t)
		kept := keptIn(t, m.disk)
		if how != "stopped" {
			m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
			m.expect("the fault", "eth1: "+t1+" inactive bfd-down")
		}
		switch how {
		case "killed":
			kept = keptIn(t, m.disk)
		case "rows lost":
			kept.Incomplete = true
		}
		frames := m.frames
		m.start(kept)
		m.pass(time.Second)
		m.registerBoth()
		m.sync(meshOn)
		switch how {
		case "stopped":
			m.expect(how)
			if m.frames != frames {
				t.Error("what was told is sent again after a stop that lost nothing")
			}
		case "killed":
			m.expect("before the path is heard of")
			if m.frames != frames {
				t.Error("what was told is sent again after a kill that lost nothing")
			}
			m.path(far1, bfd.ReportUp, 0)
			m.expect(how, "eth1: "+t1+" active none")
		case "rows lost":
			m.expect("one host learns, the other is told nothing new", "eth1: "+t1+" active none")
		}
	}
}

func TestBFDMaySpeakBeforeTheReflectorAfterARestart(t *testing.T) {
	m := begun(t)
	m.restart()
	m.path(far2, bfd.ReportDown, bfd.DiagDetectTime)
	m.sync(meshOn)
	m.expect("a path failed while the daemon was away", "eth2: "+t2+" inactive bfd-down")
}

func TestFaultsEndWhenBFDIsSwitchedOff(t *testing.T) {
	m := begun(t)
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.told = nil
	m.say(&wire.Update{Settings: &wire.Settings{}})
	m.pass(time.Second)
	m.expect("off", "eth1: "+t1+" active none")
	m.expectWatched("off", []string{})
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.expect("a report of before")
	m.say(&wire.Update{Settings: &meshOn})
	m.pass(time.Second)
	m.expectWatched("on again", []string{far1, far2})
}

func TestTheDeviceItselfMaySwitchBFDOff(t *testing.T) {
	m := begun(t)
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.told = nil
	m.c.SetMesh(MeshConfig{Off: true}, m.now)
	m.pass(time.Second)
	m.expect("off", "eth1: "+t1+" active none")
	if len(m.peers) != 2 || !m.peers[0].AdminDown {
		t.Errorf("sessions %+v, want two in AdminDown", m.peers)
	}
	m.c.SetMesh(MeshConfig{}, m.now)
	m.pass(time.Second)
	if len(m.peers) != 2 || m.peers[0].AdminDown {
		t.Errorf("sessions %+v", m.peers)
	}
	m.expect("on")
}

func TestAdminDownOfTheOtherSideIsNoFault(t *testing.T) {
	m := begun(t)
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.told = nil
	m.path(far1, bfd.ReportAdminDown, bfd.DiagAdminDown)
	m.expect("our own AdminDown says nothing")
	m.path(far1, bfd.ReportAdminDown, bfd.DiagNeighborDown)
	m.expect("theirs takes a path", "eth1: "+t1+" active none")
}

func TestNewTimersReachTheSessions(t *testing.T) {
	m := begun(t)
	for _, tc := range []struct {
		iv   time.Duration
		mult uint8
		want string
	}{{0, 0, "100ms x 3"}, {10 * time.Millisecond, 5, "10ms x 5"}, {time.Millisecond, 1, "3ms x 3"}, {time.Minute, 200, "1s x 50"}} {
		m.say(&wire.Update{Settings: &wire.Settings{BFD: wire.BFDSettings{Enabled: true, Interval: tc.iv, DetectMult: tc.mult}}})
		m.pass(time.Second)
		if got := fmt.Sprintf("%s x %d", m.peers[0].Timers.MinTx, m.peers[0].Timers.DetectMult); got != tc.want {
			t.Errorf("%v x %d: %s, want %s", tc.iv, tc.mult, got, tc.want)
		}
	}
	m.expect("new timers")
}

func TestMeshOfAllDevicesTakesInThoseOfOtherZones(t *testing.T) {
	m := begun(t)
	m.say(&wire.Update{Hosts: []wire.HostRecord{m.host(far3, "eth7", "192.0.2.77")}})
	all := meshOn
	all.BFD.MeshAll = true
	m.say(&wire.Update{Settings: &all})
	m.pass(time.Second)
	m.expectWatched("all", []string{far1, far2, far3})
}

func TestADeviceOfAnotherFamilyIsNotWatched(t *testing.T) {
	m := begun(t)
	m.say(&wire.Update{Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "c", Members: []zone.Member{
		{Kind: zone.MemberAddr, First: netip.MustParseAddr(i1)}, {Kind: zone.MemberAddr, First: netip.MustParseAddr("192.0.2.77")}}}}},
		Hosts: []wire.HostRecord{m.host("2001:db8::4", "eth7", "192.0.2.77")}})
	m.pass(time.Second)
	m.expectWatched("IPv6")
	if m.c.mesh.counters.Unwatchable != 1 {
		t.Errorf("counters %+v", m.c.mesh.counters)
	}
}

// Packets that came over more routers than there are between two devices are not of one.
func TestTheNumberOfRoutersBetweenDevicesIsBounded(t *testing.T) {
	m := newMeshCore(t)
	m.c.SetMesh(MeshConfig{MaxHops: 1}, m.now)
	m.pass(time.Second)
	if len(m.peers) != 2 || m.peers[0].MinTTL != 254 {
		t.Errorf("watched %+v", m.peers)
	}
}
