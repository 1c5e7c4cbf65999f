package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pgregory.net/rapid"

	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// encode gives the bytes of an entry that must be good.
func encode(t interface{ Fatal(...any) }, e Entry) []byte {
	b, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// machineWith gives a Machine with rules and the changes that its tests make.
type driver struct {
	t      interface{ Fatal(...any) }
	m      *Machine
	number uint64
	log    [][]byte
}

func newDriver(t interface{ Fatal(...any) }, rules zone.Rules, zones ...zone.Zone) *driver {
	d := &driver{t: t, m: NewMachine()}
	if r := d.do(Entry{Kind: KindGenesis, Cluster: 7, Rules: rules, Zones: zones, Set: zone.Set{AutoJoin: true}}); r.Refused != nil {
		t.Fatal(r.Refused)
	}
	return d
}

func (d *driver) do(e Entry) Result {
	d.number++
	e.ID, e.Since = RequestID{1, d.number}, d.m.Index()
	return d.raw(encode(d.t, e))
}

func (d *driver) raw(b []byte) Result {
	d.log = append(d.log, b)
	res, _ := d.m.Apply(uint64(len(d.log)), b)
	return res
}

func codeOf(r Result) Code {
	if r.Refused == nil {
		return CodeOK
	}
	return r.Refused.Code
}

func TestRefusalsAreTyped(t *testing.T) {
	d := newDriver(t, zone.Rules{MaxZones: 2, MaxMembers: 4}, zone.Zone{Name: "a", Members: parse([]string{"192.0.2.1"})})
	for _, c := range []struct {
		e    Entry
		want Code
	}{
		{addZone("a"), CodeExists},
		{addZone("b", "192.0.2.1", "192.0.2.2"), CodeOK},
		{addZone("c"), CodeLimit},
		{addZone("default"), CodeInvalid},
		{addZone(" x"), CodeInvalid},
		{addZone("d", "127.0.0.1"), CodeInvalid},
		{Entry{Kind: KindRemoveZone, Name: "c"}, CodeNotFound},
		{Entry{Kind: KindAddMembers, Name: "c", Members: parse([]string{"192.0.2.9"})}, CodeNotFound},
		{Entry{Kind: KindAddMembers, Name: "a", Members: parse([]string{"192.0.2.9", "192.0.2.10"})}, CodeLimit},
		{Entry{Kind: KindAddMembers, Name: "a", Members: parse([]string{"192.0.2.9"})}, CodeOK},
		{Entry{Kind: KindAddMembers, Name: "a", Members: parse([]string{"192.0.2.9"})}, CodeOK},
		{Entry{Kind: KindRemoveMembers, Name: "a", Members: parse([]string{"192.0.2.9", "192.0.2.8"})}, CodeNotFound},
		{Entry{Kind: KindRemoveMembers, Name: "a", Members: parse([]string{"192.0.2.9"})}, CodeOK},
		{Entry{Kind: KindSetting, Name: SettingHard, Value: "true"}, CodeOK},
		{Entry{Kind: KindSetting, Name: SettingHard, Value: "maybe"}, CodeInvalid},
		{Entry{Kind: KindSetting, Name: "a-later-one", Value: "7"}, CodeOK},
		{Entry{Kind: KindReplace, Zones: []zone.Zone{{Name: "x"}, {Name: "y"}, {Name: "z"}}}, CodeLimit},
		{Entry{Kind: KindReplace, Zones: []zone.Zone{{Name: "x"}, {Name: "x"}}}, CodeInvalid},
		{Entry{Kind: KindGenesis, Cluster: 9, Rules: zone.Rules{MaxZones: 1, MaxMembers: 1}}, CodeExists},
	} {
		before := d.m.Set()
		res := d.do(c.e)
		if got := codeOf(res); got != c.want {
			t.Errorf("%v %q: %v (%v), want %v", c.e.Kind, c.e.Name, got, res.Refused, c.want)
		}
		if c.want != CodeOK && !before.Equal(d.m.Set()) {
			t.Errorf("%v %q was refused and has changed something", c.e.Kind, c.e.Name)
		}
	}
	if s := d.m.Set(); !s.Hard || !s.AutoJoin || d.m.Settings()["a-later-one"] != "7" {
		t.Errorf("settings %v", d.m.Settings())
	}
	big := Entry{Kind: KindAddMembers, Name: "a"}
	d = newDriver(t, zone.Rules{MaxZones: 9, MaxMembers: 1 << 20}, zone.Zone{Name: "a"})
	for i := range 150_000 { // no two of them are a range
		n := 2 * i
		big.Members = append(big.Members, zone.Member{Kind: zone.MemberAddr, First: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})})
	}
	if got := codeOf(d.do(big)); got != CodeLimit {
		t.Errorf("a zone that no message can hold: %v", got)
	}
	big.Members = big.Members[:140_000]
	if got := codeOf(d.do(big)); got != CodeOK {
		t.Errorf("one that a message just holds: %v", got)
	}
	unformed := &driver{t: t, m: NewMachine()}
	if got := codeOf(unformed.do(addZone("a"))); got != CodeUnformed {
		t.Errorf("before the first entry: %v", got)
	}
}

func TestARepeatedChangeIsMadeOnce(t *testing.T) {
	d := newDriver(t, zone.Rules{MaxZones: 9, MaxMembers: 99})
	since := d.m.Index()
	e := addZone("a", "192.0.2.1")
	e.ID, e.Since = RequestID{5, 1}, since
	first := d.raw(encode(t, e))
	d.do(Entry{Kind: KindRemoveZone, Name: "a"})
	again := d.raw(encode(t, e))
	if _, there := d.m.Set().Find("a"); there || !again.Again || again.Index != first.Index || codeOf(again) != CodeOK {
		t.Errorf("the repetition gave %+v, the first time %+v, zones %v", again, first, d.m.Set())
	}
	// A refusal is repeated too, though it would be made now.
	x := addZone("b")
	d.do(addZone("b"))
	x.ID, x.Since = RequestID{5, 2}, d.m.Index()
	d.raw(encode(t, x))
	d.do(Entry{Kind: KindRemoveZone, Name: "b"})
	if got := codeOf(d.raw(encode(t, x))); got != CodeExists {
		t.Errorf("a repeated refusal: %v", got)
	}
	// One that is so late that its outcome is forgotten is never made.
	for i := range keptRequests + 10 {
		d.do(Entry{Kind: KindSetting, Name: "n", Value: fmt.Sprint(i)})
	}
	if got := codeOf(d.raw(encode(t, e))); got != CodeExpired {
		t.Errorf("after %d other changes: %v", keptRequests, got)
	}
	if _, there := d.m.Set().Find("a"); there {
		t.Error("it was made twice")
	}
}

func TestAnUnknownEntryStopsTheMachine(t *testing.T) {
	d := newDriver(t, zone.Rules{MaxZones: 9, MaxMembers: 99})
	for _, b := range [][]byte{{EntryVersion + 1, 2}, {1, 99, 0}, append([]byte{EntryVersion}, `{"kind": 99}`...)} {
		d := *d
		d.m = newDriver(t, zone.Rules{MaxZones: 9, MaxMembers: 99}).m
		index := d.m.Index()
		if got := codeOf(d.raw(append(b, bytes.Repeat([]byte(" "), 40)...))); got != CodeTooOld {
			t.Fatalf("%v", got)
		}
		if got := codeOf(d.do(addZone("a"))); got != CodeTooOld || d.m.Index() != index || d.m.Halted() == nil {
			t.Errorf("after an entry that it cannot know it goes on: %v, index %d", got, d.m.Index())
		}
		if _, err := d.m.Snapshot(); err == nil {
			t.Error("it makes a snapshot of a state that it does not know")
		}
	}
	for _, b := range [][]byte{{1, byte(KindAddZone), 1}, append([]byte{EntryVersion}, `{"kind": 2} 1`...), append([]byte{EntryVersion}, `{"kind": 2, "more": 1}`...)} {
		if got := codeOf(d.raw(b)); got != CodeInvalid || d.m.Halted() != nil {
			t.Errorf("a broken entry: %v", got)
		}
	}
}

func drawEntry(t *rapid.T) Entry {
	names := rapid.SampledFrom([]string{"a", "b", "c", "default", ""})
	members := rapid.SliceOfN(rapid.SampledFrom(parse([]string{"192.0.2.1", "192.0.2.2-192.0.2.9", "2001:db8::/64", "nqn.2026-01.org.example:a", "port:192.0.2.250/Ethernet1", "127.0.0.1"})), 0, 3)
	drawZone := rapid.Custom(func(t *rapid.T) zone.Zone {
		return zone.Zone{Name: names.Draw(t, "zone"), Members: members.Draw(t, "members")}
	})
	e := Entry{Kind: Kind(rapid.IntRange(1, 9).Draw(t, "kind")), ID: RequestID{rapid.Uint64Range(1, 3).Draw(t, "origin"), rapid.Uint64Range(1, 6).Draw(t, "number")}, Since: rapid.Uint64Range(0, 20).Draw(t, "since")}
	e.Meta.By, e.Meta.Time = rapid.SampledFrom([]string{"", "alice"}).Draw(t, "by"), time.Unix(0, rapid.Int64Range(1, 9).Draw(t, "at")).UTC()
	switch e.Kind {
	case KindCommit:
		p := &change.Plan{Active: rapid.SampledFrom([]string{"", "", "", "s"}).Draw(t, "active"), Zones: map[string]change.Zone{}}
		if rapid.Bool().Draw(t, "alias") {
			p.PutAlias("x", members.Draw(t, "members"))
		}
		for _, name := range []string{"a", "b"} {
			if rapid.Bool().Draw(t, "zone") {
				p.PutZone(name, change.Zone{Members: members.Draw(t, "members"), Aliases: rapid.SliceOfN(rapid.Just("x"), 0, 1).Draw(t, "aliases")})
			}
		}
		if rapid.Bool().Draw(t, "set") {
			p.PutSet("s", rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "zones"))
		}
		e.Delta = change.Diff(&change.Plan{Zones: map[string]change.Zone{"c": {}}}, p)
		if rapid.Bool().Draw(t, "confirm") {
			e.Deadline = time.Unix(0, 99).UTC()
		}
	case KindSettle:
		e.Stay = rapid.Bool().Draw(t, "stay")
	case KindGenesis:
		e.Cluster, e.Rules = rapid.Uint64().Draw(t, "cluster"), zone.Rules{MaxZones: rapid.IntRange(0, 3).Draw(t, "zones"), MaxMembers: rapid.IntRange(0, 6).Draw(t, "members")}
		e.Zones, e.Set = rapid.SliceOfN(drawZone, 0, 3).Draw(t, "set"), zone.Set{AutoJoin: rapid.Bool().Draw(t, "auto"), Hard: rapid.Bool().Draw(t, "hard")}
	case KindReplace:
		e.Zones = rapid.SliceOfN(drawZone, 0, 3).Draw(t, "set")
	case KindRemoveZone:
		e.Name = names.Draw(t, "name")
	case KindSetting:
		e.Name, e.Value = rapid.SampledFrom([]string{SettingAutoJoin, SettingHard, "x", ""}).Draw(t, "key"), rapid.SampledFrom([]string{"true", "false", "7", ""}).Draw(t, "value")
	default:
		e.Name, e.Members = names.Draw(t, "name"), members.Draw(t, "members")
	}
	return e
}

func TestEntriesComeBackFromBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		got, err := DecodeEntry(encode(t, e))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&e, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{})); d != "" {
			t.Fatal(d)
		}
	})
}

func snapshotOf(t interface{ Fatal(...any) }, m *Machine) []byte {
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The same entries give the same machine, also when it was restored from a snapshot
// in between and replays what it had; and every edit tells a follower all there is.
func TestMachinesOfOneLogAreTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDriver(t, zone.Rules{MaxZones: 3, MaxMembers: 5})
		other := NewMachine()
		follower := map[string]zone.Zone{}
		first, edit := other.Apply(1, d.log[0])
		_ = first
		for range rapid.IntRange(1, 25).Draw(t, "entries") {
			b := encode(t, drawEntry(t))
			want := d.raw(b)
			if rapid.IntRange(0, 3).Draw(t, "snapshot") == 0 {
				m, err := ReadSnapshot(bytes.NewReader(snapshotOf(t, other)))
				if err != nil {
					t.Fatal(err)
				}
				other = m
				for i := range d.log[:len(d.log)-1] {
					other.Apply(uint64(i+1), d.log[i])
				}
			}
			var got Result
			got, edit = other.Apply(uint64(len(d.log)), b)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
			switch {
			case edit.All:
				clear(follower)
				for _, z := range other.Set().Zones {
					follower[z.Name] = z
				}
			case edit.Gone:
				delete(follower, edit.Zone.Name)
			case edit.Zone.Name != "":
				follower[edit.Zone.Name] = edit.Zone
			}
			if !bytes.Equal(snapshotOf(t, d.m), snapshotOf(t, other)) {
				t.Fatal("two machines of one log differ")
			}
			set := other.Set()
			if len(follower) != len(set.Zones) {
				t.Fatalf("who follows the edits has %d zones, want %d", len(follower), len(set.Zones))
			}
			for _, z := range set.Zones {
				if d := cmp.Diff(z, follower[z.Name], cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{})); d != "" {
					t.Fatal(d)
				}
			}
			if zones, members := len(other.zones), other.members; zones > 3 || members > 5 {
				t.Fatalf("%d zones, %d members", zones, members)
			}
		}
	})
}

func TestBrokenSnapshotsAreErrors(t *testing.T) {
	d := newDriver(t, zone.Rules{MaxZones: 9, MaxMembers: 99}, zone.Zone{Name: "a", Members: parse([]string{"192.0.2.1"})})
	good := snapshotOf(t, d.m)
	for n := range good {
		if _, err := ReadSnapshot(bytes.NewReader(good[:n])); err == nil {
			t.Fatalf("%d of %d bytes are taken for a snapshot", n, len(good))
		}
	}
	if _, err := ReadSnapshot(io.MultiReader(bytes.NewReader(good), strings.NewReader("x"))); err == nil {
		t.Error("bytes after the end are taken")
	}
	huge := append([]byte(snapshotMagic2), 0x7f, 0xff, 0xff, 0xff)
	var bad *DecodeError
	if _, err := ReadSnapshot(bytes.NewReader(huge)); !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
}

// What the former version has written is read, down to the last byte of it.
func TestFormerSnapshotsAreRead(t *testing.T) {
	b, err := os.ReadFile("testdata/snapshot2")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ReadSnapshot(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	set := m.Set()
	if m.Index() != 5 || m.Cluster() == 0 || !set.Hard || len(set.Zones) != 2 || len(set.Zones[0].Members) != 2 || set.Zones[1].Members[0].String() != "2001:db8::/64" {
		t.Errorf("entry %d, %+v", m.Index(), set)
	}
	if v := m.Book().Last(); v.By != "alice" || v.Comment != "why" || len(m.done.order) != 5 || m.done.results[m.done.order[2]].Refused == nil {
		t.Errorf("%+v, %d outcomes", v, len(m.done.order))
	}
	again, err := ReadSnapshot(bytes.NewReader(snapshotOf(t, m)))
	if err != nil || !bytes.Equal(snapshotOf(t, again), snapshotOf(t, m)) {
		t.Errorf("it does not come back: %v", err)
	}
	for n := range b {
		if _, err := ReadSnapshot(bytes.NewReader(b[:n])); err == nil {
			t.Fatalf("%d of %d bytes are taken for a snapshot", n, len(b))
		}
	}
	if _, err := ReadSnapshot(bytes.NewReader(append(b, 0))); err == nil {
		t.Error("a byte after the end is taken")
	}
}

func FuzzDecodeEntry(f *testing.F) {
	for _, e := range []Entry{addZone("a", "192.0.2.1", "2001:db8::/64"), {Kind: KindRemoveZone, Name: "a"}, {Kind: KindReplace, Zones: []zone.Zone{{Name: "x"}}},
		{Kind: KindCommit, Base: "0123456789abcdef", Delta: change.Diff(&change.Plan{}, change.PlanOf(zone.Set{Zones: []zone.Zone{{Name: "x"}}}))}, {Kind: KindSettle, Number: 2, Stay: true},
		{Kind: KindSetting, Name: SettingHard, Value: "true"}, {Kind: KindGenesis, Cluster: 1, Rules: zone.Rules{MaxZones: 1, MaxMembers: 1}}} {
		b, err := e.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEntry(b)
		if err != nil {
			return
		}
		again, err := e.Encode()
		if b[0] == 1 { // its texts may be no UTF-8
			return
		}
		if err != nil {
			t.Fatalf("%+v came in and does not go out: %v", e, err)
		}
		if back, err := DecodeEntry(again); err != nil || cmp.Diff(e, back, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{})) != "" {
			t.Fatalf("%+v came back as %+v, %v", e, back, err)
		}
		m := NewMachine()
		m.Apply(1, b)
		m.Apply(2, b)
	})
}

func FuzzReadSnapshot(f *testing.F) {
	d := newDriver(f, zone.Rules{MaxZones: 9, MaxMembers: 99}, zone.Zone{Name: "a", Members: parse([]string{"192.0.2.1"})})
	d.do(addZone("a"))
	f.Add(snapshotOf(f, d.m))
	if b, err := os.ReadFile("testdata/snapshot2"); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ReadSnapshot(bytes.NewReader(b))
		if err == nil && !bytes.Equal(snapshotOf(t, m), snapshotOf(t, m)) {
			t.Fatal("two snapshots of one machine differ")
		}
	})
}

// Two who change the same version: the second is refused at every member, with the difference; and
// what waits for a confirmation is taken back once.
func TestTheLogSettlesWhoWasFirst(t *testing.T) {
	d := newDriver(t, zone.Rules{MaxZones: 9, MaxMembers: 99}, zone.Zone{Name: "a", Members: parse([]string{"192.0.2.1"})})
	base := d.m.Book().Base()
	commit := func(name string) Entry {
		next := d.m.Book().Plan().Clone()
		next.PutAlias("both", parse([]string{"192.0.2.7", "192.0.2.8"}))
		next.PutZone(name, change.Zone{Aliases: []string{"both"}})
		return Entry{Kind: KindCommit, Base: base, Delta: change.Diff(d.m.Book().Plan(), next), Meta: change.Meta{By: "alice"}, Deadline: time.Unix(60, 0)}
	}
	one, two := commit("one"), commit("two")
	if r := d.do(one); r.Refused != nil {
		t.Fatal(r.Refused)
	}
	if z, _ := d.m.Set().Find("one"); len(z.Members) != 2 {
		t.Errorf("in force %v", d.m.Set())
	}
	if r := d.do(two); codeOf(r) != CodeConflict || !strings.Contains(r.Refused.Text, "waits for its confirmation") {
		t.Errorf("another one while it waits: %+v", r.Refused)
	}
	if r := d.do(addZone("three")); codeOf(r) != CodeConflict {
		t.Errorf("a single step while it waits: %+v", r.Refused)
	}
	number := d.m.Book().Pending().Number
	if r := d.do(Entry{Kind: KindSettle, Number: number, Stay: true}); r.Refused != nil || d.m.Book().Pending() != nil {
		t.Fatal(r.Refused)
	}
	if r := d.do(two); codeOf(r) != CodeConflict || !strings.Contains(r.Refused.Text, "+ zone one with 1 member(s)") || !strings.Contains(r.Refused.Text, "by alice") {
		t.Errorf("the second writer: %+v", r.Refused)
	}
	base = d.m.Book().Base()
	before := d.m.Set()
	if r := d.do(commit("four")); r.Refused != nil {
		t.Fatal(r.Refused)
	}
	number = d.m.Book().Pending().Number
	for i, want := range []Code{CodeOK, CodeSettled} {
		if r := d.do(Entry{Kind: KindSettle, Number: number}); codeOf(r) != want || !d.m.Set().Equal(before) {
			t.Errorf("return %d: %+v", i, r.Refused)
		}
	}
}
