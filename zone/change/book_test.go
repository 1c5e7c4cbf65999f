package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/zone"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func parsed(t interface{ Fatal(...any) }, texts ...string) []zone.Member {
	z, err := ParseZone(texts)
	if err != nil {
		t.Fatal(err)
	}
	return z.Members
}

// drawPlan gives plans of few names, so that they meet each other.
func drawPlan(t *rapid.T) *Plan {
	names := []string{"a", "b", "c"}
	members := rapid.SliceOfN(rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2-192.0.2.9", "nqn.2026-01.org.example:a", "port:192.0.2.250/Ethernet1"}), 0, 3)
	p := &Plan{}
	for _, n := range names {
		if rapid.Bool().Draw(t, "alias") {
			p.PutAlias(n, parsed(t, members.Draw(t, "members")...))
		}
		if rapid.Bool().Draw(t, "zone") {
			z := Zone{Members: parsed(t, members.Draw(t, "members")...)}
			for a := range p.Aliases {
				if rapid.Bool().Draw(t, "by alias") {
					z.Aliases = append(z.Aliases, a)
				}
			}
			p.PutZone(n, z)
		}
	}
	for _, n := range names {
		if !rapid.Bool().Draw(t, "set") {
			continue
		}
		var zones []string
		for z := range p.Zones {
			if rapid.Bool().Draw(t, "in set") {
				zones = append(zones, z)
			}
		}
		p.PutSet(n, zones)
		if rapid.Bool().Draw(t, "active") {
			p.Active = n
		}
	}
	if err := p.Check(zone.Rules{}); err != nil {
		t.Fatal(err)
	}
	return p
}

// Whatever is changed, every version that is kept can be had again, the digest carried along is
// that of the plan, and a Book that is put together again from its rows is the same.
func TestEveryKeptVersionCanBeHadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := drawPlan(t)
		b := NewBook(first, Meta{})
		was := map[uint64]*Plan{1: first}
		for i := range rapid.IntRange(1, MaxVersions+10).Draw(t, "changes") {
			next := drawPlan(t)
			d := Diff(b.Plan(), next)
			o := Order{Delta: d, Base: b.Base(), Meta: Meta{Time: noon, Comment: fmt.Sprint(i)}}
			waits := rapid.IntRange(0, 3).Draw(t, "confirm") == 0
			if waits {
				o.Deadline = noon.Add(time.Minute)
			}
			before := b.Plan().Clone()
			v, made, err := b.Commit(o)
			if err != nil || made == d.Empty() {
				t.Fatal(v, made, err)
			}
			if !b.Plan().Equal(next) {
				t.Fatalf("in force is %v, want %v", b.Plan().Document(), next.Document())
			}
			if made {
				was[v.Number] = next
			}
			if waits && made {
				if rapid.Bool().Draw(t, "abort") {
					if v, err = b.Abort(v.Number, Meta{}); err != nil || !b.Plan().Equal(before) {
						t.Fatal(v, err)
					}
					was[v.Number] = before
				} else if _, err = b.Confirm(0); err != nil {
					t.Fatal(err)
				}
			}
			if b.sum != b.Plan().Sum() {
				t.Fatal("the digest that is carried along is another one")
			}
		}
		text, err := json.Marshal(b.Versions())
		if err != nil {
			t.Fatal(err)
		}
		var rows []Version
		var plan Plan
		if err := json.Unmarshal(text, &rows); err != nil {
			t.Fatal(err)
		}
		text, _ = json.Marshal(b.Plan())
		if err := json.Unmarshal(text, &plan); err != nil {
			t.Fatal(err)
		}
		again, ok := Restore(&plan, rows, b.Pending())
		if !ok || len(rows) > MaxVersions {
			t.Fatalf("%d rows, together %v", len(rows), ok)
		}
		for _, v := range again.Versions() {
			p, err := again.At(v.Number)
			if err != nil || !p.Equal(was[v.Number]) || p.Sum().Base() != v.Base {
				t.Fatalf("version %d is %v, want %v, %v", v.Number, p.Document(), was[v.Number].Document(), err)
			}
		}
		if _, err := again.At(b.Last().Number + 1); !errors.Is(err, ErrNoVersion) {
			t.Fatal(err)
		}
	})
}

func add(t *testing.T, p *Plan, name string, members ...string) Delta {
	next := p.Clone()
	next.PutZone(name, Zone{Members: parsed(t, members...)})
	return Diff(p, next)
}

// Of two who change the same version the second is refused, and sees what the first one did.
func TestTheSecondOfTwoWritersIsRefusedWithTheDifference(t *testing.T) {
	b := NewBook(&Plan{}, Meta{By: "zone file"})
	base := b.Base()
	one, two := add(t, b.Plan(), "one", "192.0.2.1"), add(t, b.Plan(), "two", "192.0.2.2")
	if _, _, err := b.Commit(Order{Delta: one, Base: base, Meta: Meta{By: "alice"}}); err != nil {
		t.Fatal(err)
	}
	_, _, err := b.Commit(Order{Delta: two, Base: base, Meta: Meta{By: "bob"}})
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "+ zone one with 1 member(s)") || !strings.Contains(err.Error(), "by alice") {
		t.Errorf("error %v", err)
	}
	if len(b.Plan().Zones) != 1 || b.Last().Number != 2 {
		t.Errorf("in force %v", b.Plan().Document())
	}
	if _, _, err := b.Commit(Order{Delta: two, Base: "0123456789abcdef"}); !errors.Is(err, ErrConflict) {
		t.Errorf("a base that never was: %v", err)
	}
}

func TestAVersionThatWaitsIsSettledOnce(t *testing.T) {
	b := NewBook(&Plan{}, Meta{})
	if _, err := b.Confirm(0); !errors.Is(err, ErrSettled) {
		t.Error(err)
	}
	v, _, err := b.Commit(Order{Delta: add(t, b.Plan(), "one", "192.0.2.1"), Deadline: noon})
	if err != nil || b.Due(noon.Add(-1)) || !b.Due(noon) {
		t.Errorf("%+v, %v, due too soon or too late", v, err)
	}
	if _, _, err := b.Commit(Order{Delta: add(t, b.Plan(), "two")}); !errors.Is(err, ErrPending) {
		t.Errorf("another change while one waits: %v", err)
	}
	if _, err := b.Abort(v.Number-1, Meta{}); !errors.Is(err, ErrSettled) {
		t.Errorf("an abort that is too late: %v", err)
	}
	if v, err = b.Abort(v.Number, Meta{By: "no confirmation"}); err != nil || v.Number != 3 || len(b.Plan().Zones) != 0 || !slices.Equal(v.Lines, []string{"- zone one with 1 member(s)"}) {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := b.Abort(v.Number, Meta{}); !errors.Is(err, ErrSettled) || b.Due(noon) {
		t.Errorf("a second one: %v", err)
	}
}

// A second change that extends a first one waits with it: both are taken back together, and what
// changes nothing gives more time alone.
func TestWhatWaitsIsExtendedAndTakenBackAsOne(t *testing.T) {
	b := NewBook(&Plan{}, Meta{})
	first, _, err := b.Commit(Order{Delta: add(t, b.Plan(), "one", "192.0.2.1"), Deadline: noon})
	if err != nil {
		t.Fatal(err)
	}
	later := noon.Add(time.Hour)
	if v, made, err := b.Commit(Order{Extends: first.Number, Deadline: later}); err != nil || !made || v.Number != first.Number || b.Due(noon) || !b.Due(later) {
		t.Errorf("more time: %+v, %v, %v", v, made, err)
	}
	if _, _, err := b.Commit(Order{Extends: first.Number + 1, Deadline: later}); !errors.Is(err, ErrSettled) {
		t.Errorf("another version: %v", err)
	}
	second, _, err := b.Commit(Order{Delta: add(t, b.Plan(), "two", "192.0.2.2"), Extends: first.Number, Base: b.Base(), Deadline: later})
	if err != nil || len(b.Plan().Zones) != 2 {
		t.Fatal(second, err)
	}
	text, err := b.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	back := new(Book) // after a restart too
	if err := back.UnmarshalJSON(text); err != nil || !back.Due(later) {
		t.Fatal(err)
	}
	for _, b := range []*Book{b, back} {
		if v, err := b.Abort(second.Number, Meta{}); err != nil || len(b.Plan().Zones) != 0 || b.Pending() != nil || len(v.Lines) != 2 {
			t.Errorf("%+v, %v, %v", v, err, b.Plan().Document())
		}
	}
	// Versions are forgotten one day, but not the one that all goes back to.
	v, _, err := b.Commit(Order{Delta: add(t, b.Plan(), "z", "192.0.2.1"), Deadline: later})
	for n := 0; err == nil; n++ {
		if n > 2*MaxVersions {
			t.Fatal("no end")
		}
		v, _, err = b.Commit(Order{Delta: add(t, b.Plan(), fmt.Sprint("z", n), "192.0.2.1"), Extends: v.Number, Deadline: later})
	}
	if !errors.Is(err, ErrPending) {
		t.Error(err)
	}
	if _, err := b.Abort(0, Meta{}); err != nil || len(b.Plan().Zones) != 0 {
		t.Errorf("%v, %v", err, b.Plan().Document())
	}
}

func TestAPlanInForceIsItsActiveSetWithItsAliases(t *testing.T) {
	p := &Plan{}
	p.PutAlias("array", parsed(t, "192.0.2.100", "192.0.2.101"))
	p.PutZone("day", Zone{Members: parsed(t, "192.0.2.1"), Aliases: []string{"array"}})
	p.PutZone("night", Zone{Members: parsed(t, "192.0.2.2")})
	if n := len(p.InForce().Zones); n != 2 {
		t.Errorf("%d zones without a zone set", n)
	}
	p.PutSet("work", []string{"day"})
	p.Active = "work"
	set := p.InForce()
	if len(set.Zones) != 1 || len(set.Zones[0].Members) != 3 {
		t.Errorf("in force %v", set)
	}
	p.PutZone("new", Zone{Members: parsed(t, "192.0.2.3")})
	if !p.Has("new") || p.Has("night") {
		t.Error("a zone that is added by one step is not in the active set")
	}
	p.DropZone("day")
	if err := p.Check(zone.Rules{}); err != nil {
		t.Error(err)
	}
}

func TestWhatIsWrongWithAPlanIsNamed(t *testing.T) {
	p := &Plan{Active: "Day"}
	p.PutAlias("Array", parsed(t, "127.0.0.1"))
	p.PutZone("a", Zone{Members: parsed(t, "192.0.2.1"), Aliases: []string{"array"}})
	p.PutZone("default", Zone{})
	p.PutSet("day", []string{"a", "b"})
	err := p.Check(zone.Rules{})
	for _, want := range []string{`alias "Array": member 127.0.0.1`, `zone "a": alias "array": no such alias; there is "Array"`, `zone "default" is always there`,
		`zone set "day": zone "b": no such zone`, `active zone set "Day": no such zone set; there is "day"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	if !errors.Is(err, ErrNoAlias) || !errors.Is(err, ErrNoZone) || !errors.Is(err, ErrNoSet) || !errors.Is(err, zone.ErrBadAddress) {
		t.Error(err)
	}
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"aliases":[{"name":"a","members":["192.0.2.1"]}],"zones":[{"name":"z","members":["alias:a","nqn.a at 192.0.2.0/24"]}],"zone_sets":[{"name":"s","zones":["z"]}],"active":"s"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, again Plan
		if json.Unmarshal(b, &p) != nil {
			return
		}
		_ = p.Check(zone.Rules{})
		text, err := json.Marshal(&p)
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || !p.Equal(&again) || p.Sum() != again.Sum() {
			t.Fatalf("%s came back as %s, %v", b, text, err)
		}
	})
}
