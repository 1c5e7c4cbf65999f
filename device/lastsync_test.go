package device

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/store"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// pull is a cable that is pulled, or put back.
func (m *meshCore) pull(port string, up bool) {
	m.c.Port(fabric.Event{Kind: fabric.PortChanged, At: m.now, Port: fabric.Port{Name: port, Index: 1, AdminUp: true, Carrier: up}}, m.now)
	m.pass(100 * time.Millisecond)
}

// A device that was started again while no reflector answers notifies its hosts of losses, by what
// the reflectors said before, and not that anything is active. When one answers, what it says is
// true: the hosts are told the difference.
func TestADeviceWithoutReflectorsDecidesByTheLastSync(t *testing.T) {
	m := begun(t)
	m.say(&wire.Update{Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "local", Members: []zone.Member{
		{Kind: zone.MemberAddr, First: netip.MustParseAddr(i1)}, {Kind: zone.MemberAddr, First: netip.MustParseAddr(i2)}}}}}})
	m.path(far1, bfd.ReportUp, 0)
	m.c.ReflectorDown(bareReflector, nil, m.now)
	lost := m.now
	m.pass(time.Second)
	m.told = nil
	m.restart()
	m.registerBoth()
	m.pass(time.Second)
	m.expect("nothing has happened")
	if at := m.c.LastSync(); at == nil || at.After(lost) || lost.Sub(*at) > syncedAge {
		t.Errorf("last in step at %v, want %v", at, lost)
	}
	for _, p := range m.peers {
		if want := p.Peer.String() == far1; (p.Last == bfd.ReportUp) != want {
			t.Errorf("the path to %s is expected to work: %v, want %v", p.Peer, !want, want)
		}
	}
	m.path(far1, bfd.ReportDown, bfd.DiagDetectTime)
	m.expect("a path fails", "eth1: "+t1+" inactive bfd-down")
	m.path(far1, bfd.ReportUp, 0)
	m.expect("it works again, which is told when a reflector answers")
	m.restart()
	m.path(far2, bfd.ReportDown, bfd.DiagDetectTime)
	m.expect("the next start, and another path fails", "eth2: "+t2+" inactive bfd-down")
	m.sync(meshOn) // zone local is gone, and so is nothing else
	m.expect("a reflector answers", "eth1: "+t1+" active none")
	if m.c.LastSync() != nil || m.c.client.Recalling() {
		t.Error("it still decides by what was known before")
	}
	if _, is := m.c.dir.Zone("local"); is {
		t.Error("a zone that no reflector says is in force")
	}
	if st := keptIn(t, m.disk); len(st.LastSync.Zones) != 2 || len(st.LastSync.Hosts) != 2 {
		t.Errorf("kept: %d zones, %d hosts", len(st.LastSync.Zones), len(st.LastSync.Hosts))
	}
}

// Two hosts of one switch: the one whose cable is pulled is lost to the other at once.
func TestALocalLossIsToldWithoutReflectors(t *testing.T) {
	m := begun(t)
	m.allRoles = true
	m.restart()
	m.sync(meshOn)
	m.told = nil
	ms := []zone.Member{{Kind: zone.MemberAddr, First: netip.MustParseAddr(i1)}, {Kind: zone.MemberAddr, First: netip.MustParseAddr(i2)}}
	m.say(&wire.Update{Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "local", Members: ms}}}})
	m.pass(time.Second)
	m.expect("in one zone", "eth1: "+i2+" active none", "eth2: "+i1+" active none")
	m.restart()
	m.expect("started again")
	m.pull("eth2", false)
	m.expect("its cable is pulled", "eth1: "+i2+" inactive link-down")
	m.pull("eth2", true)
	m.registerBoth()
	m.pass(time.Second)
	m.expect("the cable is back, which is told when a reflector answers")
	m.sync(meshOn)
	m.expect("a reflector answers, and has no such zone", "eth1: "+i2+" inactive zone-changed", "eth2: "+i1+" inactive zone-changed", "eth2: "+t2+" active none")
}

// A host that a reflector does not repeat, and one that its device withdraws in the midst of the
// sync, are gone, each for its reason.
func TestWhatIsNotRepeatedGoes(t *testing.T) {
	m := begun(t)
	m.restart()
	m.registerBoth()
	m.told = nil
	m.c.ReflectorUp(bareReflector, m.now)
	r := m.host(far2, "eth7", t2)
	r.Op, r.Why = wire.Withdraw, snsd.ReasonAgedOut
	m.c.ReflectorMessage(bareReflector, &wire.Update{Origin: netip.MustParseAddr(far2), Hosts: []wire.HostRecord{r}}, m.now)
	m.pass(100 * time.Millisecond)
	m.expect("withdrawn before the sync is complete", "eth2: "+t2+" inactive aged-out")
	m.say(&wire.Update{Settings: &meshOn, Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "a", Members: []zone.Member{
		{Kind: zone.MemberAddr, First: netip.MustParseAddr(i1)}, {Kind: zone.MemberAddr, First: netip.MustParseAddr(t1)}}}}},
		Hosts: []wire.HostRecord{m.host(bareSelf.String(), "eth1", i1), m.host(bareSelf.String(), "eth2", i2)}})
	m.expect("not repeated yet")
	m.c.ReflectorMessage(bareReflector, &wire.EndOfSync{}, m.now)
	m.pass(time.Second)
	m.expect("not repeated", "eth1: "+t1+" inactive aged-out")
	if st := keptIn(t, m.disk); len(st.LastSync.Hosts) != 0 || len(st.LastSync.Zones) != 1 {
		t.Errorf("kept: %+v", st.LastSync)
	}
}

// The keys of paths outlive the machine: a path is watched with them before a reflector answers.
func TestPathKeysOutliveTheMachine(t *testing.T) {
	m := newKeyCore(t)
	m.answer()
	m.mesh = MeshConfig{Handed: true}
	m.restart()
	m.want(bareReflector)
	m.c.ReflectorUp(secondReflector, m.now)
	m.pass(time.Second)
	m.want(bareReflector)
	m.withdraw(far2, t2) // unknown to this reflector, and still watched
	m.pass(time.Second)
	m.want(bareReflector)
}

// Many hosts are encoded a part at a time.
func TestManyRowsAreEncodedAPartAtATime(t *testing.T) {
	m := begun(t)
	u := &wire.Update{}
	const many = 1000
	for i := range many {
		u.Hosts = append(u.Hosts, m.host(far3, fmt.Sprint("eth", i), fmt.Sprintf("198.51.%d.%d", i/200, 1+i%200)))
	}
	u.Origin = bareReflector
	m.c.ReflectorMessage(bareReflector, u, m.now)
	m.c.Pump(m.now)
	if n := len(keptIn(t, m.disk).LastSync.Hosts); n > 2+savedRows {
		t.Errorf("%d hosts at once", n)
	}
	m.pass(time.Second)
	if n := len(keptIn(t, m.disk).LastSync.Hosts); n != 2+many {
		t.Errorf("%d hosts are kept, want %d", n, 2+many)
	}
}

// A row that cannot be used is left out and named, and costs nothing else.
func TestRowsOfTheLastSyncThatCannotBeUsed(t *testing.T) {
	m := begun(t)
	m.pass(time.Second)
	found := m.disk.Look()
	for i := range found.Rows {
		if r := &found.Rows[i]; r.Table == tableRemote || r.Table == tableSync && string(r.Key) == keySettings {
			r.Value = []byte(`{"addr":`)
		}
	}
	found.Rows = append(found.Rows, []store.Row{{Table: tablePathKey, Key: []byte("?"), Value: []byte("{}")}, {Table: tableZone, Key: []byte("a\x00b"), Value: []byte("null")},
		{Table: tableSync, Key: []byte(keySyncAt), Value: []byte("x")}, {Table: tableRemote, Key: []byte("192.0.2.1 10.0.0.2 eth1"), Value: []byte(`{"addr":"192.0.2.2","device":"10.0.0.2","port":"eth1"}`)}}...)
	st, bad := StateOf(found)
	if len(bad) != 7 || st.Incomplete || len(st.LastSync.Zones) != 2 || len(st.LastSync.Hosts) != 0 {
		t.Errorf("%d are bad: %v; incomplete %v, kept %+v", len(bad), bad, st.Incomplete, st.LastSync)
	}
	m.start(st)
	m.pass(time.Second)
	if s := m.c.client.Settings(); s == nil || *s != (wire.Settings{}) {
		t.Errorf("settings %+v", s)
	}
}
