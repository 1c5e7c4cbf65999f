package daemon

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// candidate gives what is in force at a node, changed.
func (n *node) candidate(edit func(*change.Plan)) api.ZoneCandidate {
	n.t.Helper()
	z, err := n.d.Zoning(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	next := z.Plan.Clone()
	edit(next)
	return api.ZoneCandidate{Plan: next, Base: z.Version.Base}
}

func (n *node) commit(c api.ZoneCandidate) api.ZoneCommitted {
	n.t.Helper()
	done, err := n.d.CommitZones(n.t.Context(), c)
	if err != nil || !done.Changed {
		n.t.Fatalf("%+v, %v", done, err)
	}
	return done
}

func addrs(t *testing.T, texts ...string) change.Zone {
	z, err := change.ParseZone(texts)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func (f *testFabric) toldNothing(step string) {
	f.t.Helper()
	f.expect(step, nil)
}

// What a change says it does is what hosts are told; without a confirmation they are told the
// opposite at the deadline, and the zones are what they were.
func TestAChangeThatNobodyConfirmsGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["spine"]
		before := n.zoneFile()
		c := n.candidate(func(p *change.Plan) { p.PutZone("b", addrs(t, t2, t3)) })
		c.Confirm = api.Duration(time.Minute)
		r, err := n.d.CheckZones(t.Context(), c)
		if err != nil || r.Impact.PairsLost != 2 || r.Impact.LostActive != 2 || r.Impact.Alone != 2 || r.Loss == "" || !slices.Equal(r.Changes, []string{"- member " + i2 + " of zone b"}) {
			t.Errorf("review %+v, impact %+v, %v", r, r.Impact, err)
		}
		if !slices.Contains(r.Warnings, "zone b has 2 targets and no initiator") {
			t.Errorf("warnings %q", r.Warnings)
		}
		if _, err := n.d.CommitZones(t.Context(), c); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "zones.max-loss") {
			t.Errorf("too much is lost: %v", err)
		}
		c.Force = true
		done := n.commit(c)
		settle(time.Second)
		f.expect("changed", map[string][]string{"i2": {t2 + unzoned, t3 + unzoned}, "t2": {i2 + unzoned}, "t3": {i2 + unzoned}})
		if _, err := n.d.ChangeZone(t.Context(), api.ZoneOrder{Do: api.ZoneAdd, Name: "c"}); !errors.Is(err, api.ErrConflict) {
			t.Errorf("a single step while a change waits: %v", err)
		}
		settle(50 * time.Second)
		f.toldNothing("it waits")
		settle(15 * time.Second)
		f.expect("taken back", map[string][]string{"i2": {t2 + active, t3 + active}, "t2": {i2 + active}, "t3": {i2 + active}})
		if n.zoneFile() != before {
			t.Errorf("the zone file is\n%s", n.zoneFile())
		}
		list, err := n.d.ZoneVersions(t.Context())
		last := list[len(list)-1]
		if err != nil || last.Number != done.Version.Number+1 || last.By != "no confirmation" || last.Confirm != nil {
			t.Errorf("history %+v, %v", list, err)
		}
		if e := n.lastZoneEvent(); !strings.Contains(e.Text, "was not confirmed in time and was taken back") {
			t.Errorf("event %q", e.Text)
		}
	})
}

func (n *node) zoneFile() string {
	n.t.Helper()
	b, err := os.ReadFile(n.cfg.Zones.File)
	if err != nil {
		n.t.Fatal(err)
	}
	return string(b)
}

// The deadline, the history and who waits outlive the daemon; what is confirmed stays.
func TestAChangeWaitsOverARestart(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := threeSwitches(t)
			f.expectAnything()
			n := f.nodes["spine"]
			before := n.zoneFile()
			c := n.candidate(func(p *change.Plan) {
				p.PutAlias("array", addrs(t, t1, t2).Members)
				p.PutZone("c", change.Zone{Members: addrs(t, i1).Members, Aliases: []string{"array"}})
			})
			c.Confirm, c.Comment = api.Duration(10*time.Minute), "night shift"
			done := n.commit(c)
			settle(time.Second)
			f.expect("changed", map[string][]string{"i1": {t2 + active}, "t2": {i1 + active, t1 + active}, "t1": {t2 + active}})
			n.halt()
			settle(time.Minute)
			n.start()
			settle(30 * time.Second)
			f.toldNothing("restart")
			v, err := n.d.Zoning(t.Context())
			if err != nil || v.Version.Confirm == nil || v.Version.Number != done.Version.Number || v.Version.Comment != "night shift" {
				t.Fatalf("after the restart %+v, %v", v.Version, err)
			}
			if confirm {
				if _, err := n.d.SettleZones(t.Context(), done.Version.Number, true); err != nil {
					t.Fatal(err)
				}
				n.halt()
				n.start()
			}
			settle(10 * time.Minute)
			if confirm != (n.zoneFile() != before) {
				t.Errorf("confirmed %v, and the zone file is\n%s", confirm, n.zoneFile())
			}
			if confirm {
				f.toldNothing("confirmed")
				return
			}
			f.expect("taken back", map[string][]string{"i1": {t2 + unzoned}, "t2": {i1 + unzoned, t1 + unzoned}, "t1": {t2 + unzoned}})
			n.halt()
			n.start()
			settle(30 * time.Second)
			if list, err := n.d.ZoneVersions(t.Context()); err != nil || list[len(list)-1].By != "no confirmation" {
				t.Errorf("history after another restart %+v, %v", list, err)
			}
		})
	}
}

// Two who began with the same version: the second is refused and sees what the first did. A version
// that is kept comes back whole.
func TestTwoWritersAndAWayBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["spine"]
		was, _ := n.d.Zoning(t.Context())
		one := n.candidate(func(p *change.Plan) { p.PutZone("one", addrs(t, i1, t2)) })
		two := n.candidate(func(p *change.Plan) { p.PutZone("two", addrs(t, i2, t1)) })
		n.commit(one)
		_, err := n.d.CommitZones(t.Context(), two)
		if !errors.Is(err, api.ErrConflict) || !strings.Contains(err.Error(), "+ zone one with 2 member(s)") {
			t.Errorf("the second writer: %v", err)
		}
		if e := n.lastZoneEvent(); !strings.Contains(e.Text, "change of the zones by an operator was refused") {
			t.Errorf("event %q", e.Text)
		}
		old, err := n.d.ZonesAt(t.Context(), was.Version.Number)
		if err != nil || !old.Plan.Equal(was.Plan) {
			t.Fatalf("version %d is %+v, %v", was.Version.Number, old, err)
		}
		now, _ := n.d.Zoning(t.Context())
		n.commit(api.ZoneCandidate{Plan: old.Plan, Base: now.Version.Base, Force: true})
		if z, _ := n.d.Zoning(t.Context()); z.Version.Base != was.Version.Base || !z.Plan.Equal(was.Plan) {
			t.Errorf("rolled back to %+v", z)
		}
		if _, err := n.d.ZonesAt(t.Context(), 999); !errors.Is(err, api.ErrNotFound) {
			t.Error(err)
		}
		if _, err := f.nodes["tor1"].d.Zoning(t.Context()); !errors.Is(err, api.ErrRefused) {
			t.Errorf("at a client: %v", err)
		}
	})
}

// Hosts that pass from one zone to another with their partners are told nothing.
func TestARegroupingThatTakesNobodyApartIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["spine"]
		c := n.candidate(func(p *change.Plan) {
			for _, name := range []string{"a", "b"} {
				z := p.Zones[name]
				p.DropZone(name)
				p.PutAlias(name, z.Members)
				p.PutZone("z"+name, change.Zone{Aliases: []string{name}})
			}
			p.PutZone("off", addrs(t, i1, t2))
			p.PutSet("day", []string{"za", "zb"})
			p.Active = "day"
		})
		if r, err := n.d.CheckZones(t.Context(), c); err != nil || r.Impact.PairsLost+r.Impact.PairsGained+r.Impact.Active+r.Impact.Inactive > 0 {
			t.Errorf("impact %+v, %v", r.Impact, err)
		}
		n.commit(c)
		settle(10 * time.Second)
		f.toldNothing("regrouped")
		n.commit(n.candidate(func(p *change.Plan) { p.Active = "" }))
		settle(10 * time.Second)
		f.expect("all zones", map[string][]string{"i1": {t2 + active}, "t2": {i1 + active}})
	})
}

// A zone file that was changed by hand is not overwritten, not even by the end of a deadline; a
// reload makes it a version, and then nothing waits any more.
func TestAReturnDoesNotOverwriteWhatWasWrittenByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["spine"]
		c := n.candidate(func(p *change.Plan) { p.PutZone("c", addrs(t, i1, t2)) })
		c.Confirm = api.Duration(time.Minute)
		n.commit(c)
		byHand := n.zoneFile() + "  - {name: hand, members: [" + i2 + ", " + t1 + "]}\n"
		if err := os.WriteFile(n.cfg.Zones.File, []byte(byHand), 0o600); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Minute)
		if n.zoneFile() != byHand {
			t.Fatalf("the zone file became\n%s", n.zoneFile())
		}
		if w := n.d.zones.warning(); !strings.Contains(w, "was not confirmed and cannot be taken back") || !strings.Contains(w, "+ zone hand") {
			t.Errorf("warning %q", w)
		}
		errorsTold := 0
		for _, e := range n.d.Events(0).Events {
			if e.Kind == "error" && strings.Contains(e.Text, "cannot be taken back") {
				errorsTold++
			}
		}
		if errorsTold != 1 {
			t.Errorf("%d events tell of it", errorsTold)
		}
		next := *n.cfg
		if err := n.d.Reload(t.Context(), &next, false); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Minute)
		z, err := n.d.Zoning(t.Context())
		if err != nil || z.Version.By != "zone file" || z.Version.Confirm != nil || len(z.Plan.Zones) != 4 || n.d.zones.warning() != "" {
			t.Errorf("%+v, %v, warning %q", z.Version, err, n.d.zones.warning())
		}
	})
}

// What was written by hand while the daemon was away is a version with its difference.
func TestAHandsChangeWhileTheDaemonIsAwayIsAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["spine"]
		was, _ := n.d.Zoning(t.Context())
		n.halt()
		if err := os.WriteFile(n.cfg.Zones.File, []byte(n.zoneFile()+"  - {name: hand, members: ["+i2+", "+t1+"]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		n.start()
		settle(30 * time.Second)
		list, err := n.d.ZoneVersions(t.Context())
		if err != nil || len(list) < 2 {
			t.Fatal(list, err)
		}
		if v := list[len(list)-1]; v.By != "zone file" || v.Number != was.Version.Number+1 || !slices.Equal(v.Changes, []string{"+ zone hand with 2 member(s)"}) {
			t.Errorf("%+v", v)
		}
	})
}

// A change that waits in a cluster is taken back by whoever leads at its deadline, at all members.
func TestAChangeThatNobodyConfirmsGoesBackOverAChangeOfTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newClusterFabric(t, "zones:\n  - {name: a, members: ["+i1+", "+t1+"]}\n")
		leader := f.leader()
		other := memberNames[(slices.Index(memberNames, leader)+1)%3]
		n := f.nodes[other]
		was, err := n.d.Zoning(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := n.candidate(func(p *change.Plan) {
			p.PutAlias("pair", addrs(t, i2, t2).Members)
			p.PutZone("b", change.Zone{Aliases: []string{"pair"}})
		})
		stale := n.candidate(func(p *change.Plan) { p.PutZone("late", addrs(t, i2)) })
		c.Confirm = api.Duration(2 * time.Minute)
		n.commit(c)
		f.nodes[leader].halt()
		settle(time.Minute)
		if now := f.leader(); now == leader {
			t.Fatal("the leader is still it")
		}
		if _, err := n.d.CommitZones(t.Context(), stale); !errors.Is(err, api.ErrConflict) {
			t.Errorf("another writer meanwhile: %v", err)
		}
		settle(90 * time.Second)
		f.nodes[leader].start()
		settle(time.Minute)
		for _, name := range memberNames {
			z, err := f.nodes[name].d.Zoning(t.Context())
			if err != nil || !z.Plan.Equal(was.Plan) || z.Version.By != "no confirmation" || z.Version.Number != was.Version.Number+2 {
				t.Errorf("%s: %+v %v, %v", name, z.Version, z.Plan.Document(), err)
			}
			var set zone.Set
			if set, err = f.nodes[name].d.zonesNow(t.Context()); err != nil || len(set.Zones) != 1 {
				t.Errorf("%s: in force are %v, %v", name, set, err)
			}
		}
		done := n.commit(n.candidate(func(p *change.Plan) { p.PutZone("c", addrs(t, i1, t2)) }))
		if done.Version.Number != was.Version.Number+3 || fmt.Sprint(done.Version.Changes) != "[+ zone c with 2 member(s)]" {
			t.Errorf("%+v", done)
		}
	})
}
