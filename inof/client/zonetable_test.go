package client

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// What comes of what several reflectors say of a zone; numbers are hosts, nil: does not say it.
func TestWhatReflectorsSayOfAZone(t *testing.T) {
	addrs := func(hosts []int) (ms []zone.Member) {
		for _, h := range hosts {
			ms = append(ms, inoftest.AddrMember(inoftest.HostIP(h)))
		}
		return ms
	}
	for _, c := range []struct {
		what                string
		said                [][]int
		identical, reserved []int // in force with agreement identical, and reserved then; nil: not in force
		union               []int
		differs             bool
	}{
		{"one alone", [][]int{{1, 2}}, []int{1, 2}, nil, []int{1, 2}, false},
		{"an empty zone", [][]int{{}}, []int{}, nil, []int{}, false},
		{"nobody says it", [][]int{nil, nil}, nil, nil, nil, false},
		{"both", [][]int{{1, 2}, {1, 2}}, []int{1, 2}, nil, []int{1, 2}, false},
		{"one only", [][]int{{1, 2}, nil}, nil, []int{1, 2}, []int{1, 2}, true},
		{"the other only", [][]int{nil, {1, 2}}, nil, []int{1, 2}, []int{1, 2}, true},
		{"one has more", [][]int{{1}, {1, 2}}, []int{1}, []int{2}, []int{1, 2}, true},
		{"different ones", [][]int{{1, 2}, {2, 3}}, []int{2}, []int{1, 3}, []int{1, 2, 3}, true},
		{"nothing in common", [][]int{{1}, {2}}, []int{}, []int{1, 2}, []int{1, 2}, true},
		{"three", [][]int{{1, 2, 3}, {2, 3}, {3, 4}}, []int{3}, []int{1, 2, 4}, []int{1, 2, 3, 4}, true},
		{"two of three", [][]int{{1}, nil, {1}}, nil, []int{1}, []int{1}, true},
	} {
		var words []word
		for _, hosts := range c.said {
			w := word{said: hosts != nil}
			if w.said {
				w.members = wire.PackMembers(addrs(hosts))
			}
			words = append(words, w)
		}
		for rule, want := range map[Agreement]verdict{
			AgreeIdentical: {inForce: c.identical != nil, differs: c.differs, members: addrs(c.identical), reserved: addrs(c.reserved)},
			AgreeUnion:     {inForce: c.union != nil, differs: c.differs, members: addrs(c.union)},
		} {
			if diff := cmp.Diff(want, rule.of(words), inoftest.CmpOpts, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("%s, %v (-want +got):\n%s", c.what, rule, diff)
			}
		}
	}
}
