package zone_test

import (
	"slices"
	"testing"

	"github.com/openinof/inof/zone"
)

func TestDifferencesNameZonesAndMembers(t *testing.T) {
	set := func(zones ...zone.Zone) zone.Set { return zone.Set{Zones: zones} }
	z := func(name string, members ...string) zone.Zone {
		out := zone.Zone{Name: name}
		for _, m := range members {
			v, err := zone.ParseMember(m)
			if err != nil {
				t.Fatal(err)
			}
			out.Members = append(out.Members, v)
		}
		return out
	}
	old := set(z("a", "192.0.2.1", "192.0.2.2"), z("b", "192.0.2.3"), z("same", "192.0.2.9"))
	now := set(z("a", "192.0.2.1", "192.0.2.4"), z("c"), z("same", "192.0.2.9"))
	want := []string{"- member 192.0.2.2 of zone a", "+ member 192.0.2.4 of zone a", "+ zone c with 0 member(s)", "- zone b with 1 member(s)"}
	if got := zone.Differences(old, now, 10); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := zone.Differences(old, now, 3); !slices.Equal(got, append(want[:3:3], "and 1 more")) {
		t.Errorf("limited: %q", got)
	}
	if got := zone.Differences(now, now, 3); len(got) != 0 {
		t.Errorf("of the same set: %q", got)
	}
}
