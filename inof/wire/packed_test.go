package wire_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

func TestPackedMembersAreTheMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := zone.Zone{Members: rapid.SliceOfN(rapid.Custom(drawAnyMember), 0, 10).Draw(t, "members")}.Canonical().Members
		p := wire.PackMembers(members)
		if diff := cmp.Diff(members, p.Unpack(), inoftest.CmpOpts); diff != "" || p.Count() != len(members) {
			t.Fatalf("%d of %d members (-want +got):\n%s", p.Count(), len(members), diff)
		}
		if slices.Reverse(members); wire.PackMembers(members) != p {
			t.Fatal("the order of members makes another form")
		}
	})
}
