package daemon

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/inof"
)

// Both ends of a path make the same keys from the password, every other pair has others,
// and a password is rotated without a moment in which an end signs with what the other
// does not take.
func TestPathsAreAuthenticatedWithThePasswordOfTheSessions(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.11"), netip.MustParseAddr("2001:db8::12"), netip.MustParseAddr("10.0.0.13")
	before, after := inof.PasswordOfKey([32]byte{1}), inof.PasswordOfKey([32]byte{2})
	one := pathAuth([]inof.Password{before}, a, b).Keys[0]
	for _, other := range []bfd.AuthKey{pathAuth([]inof.Password{before}, a, c).Keys[0], pathAuth([]inof.Password{after}, a, b).Keys[0]} {
		if bytes.Equal(one.Secret, other.Secret) {
			t.Error("the key of another pair or password")
		}
	}
	takes := func(x *bfd.Auth, k bfd.AuthKey) bool {
		for _, o := range x.Keys {
			if o.ID == k.ID && bytes.Equal(o.Secret, k.Secret) {
				return true
			}
		}
		return false
	}
	steps := [][]inof.Password{{before}, {before, after}, {after, before}, {after}}
	for i := range steps {
		for _, j := range []int{i - 1, i, i + 1} { // the other end is a step behind or ahead
			if j < 0 || j >= len(steps) {
				continue
			}
			x, y := pathAuth(steps[i], a, b), pathAuth(steps[j], b, a)
			if err := x.Validate(); err != nil || len(x.Keys) != len(steps[i]) {
				t.Errorf("%+v: %v", x, err)
			}
			if !takes(y, x.Keys[0]) || !takes(x, y.Keys[0]) {
				t.Errorf("steps %d and %d: one end refuses what the other signs", i, j)
			}
		}
	}
}

func TestEachPathHasItsOwnKey(t *testing.T) {
	p := []inof.Password{inof.PasswordOfKey([32]byte{1})}
	self, x, y := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	if a, b := pathAuth(p, self, x), pathAuth(p, self, y); len(a.Keys) != 1 || len(b.Keys) != 1 || bytes.Equal(a.Keys[0].Secret, b.Keys[0].Secret) {
		t.Errorf("%+v and %+v", a, b)
	}
}
