package model

import (
	"slices"
	"testing"
)

// mesh is n switches, each joined with all others, with one host each.
func mesh(t testing.TB, n int) (*Sim, [][]LinkID) {
	t.Helper()
	net := &Network{}
	cables := make([][]LinkID, n)
	for i := range n {
		net.AddSwitch("s"+string(rune('a'+i)), ReferenceSwitch(16<<20, nil))
		cables[i] = make([]LinkID, n)
	}
	for i := range n {
		for k := range i {
			l, err := net.Connect(NodeID(i), NodeID(k), link100)
			if err != nil {
				t.Fatal(err)
			}
			cables[i][k], cables[k][i] = l, l
		}
	}
	for i := range n {
		if _, err := net.Connect(net.AddHost("h"+string(rune('a'+i)), ReferenceNIC(nil)), NodeID(i), link100); err != nil {
			t.Fatal(err)
		}
	}
	s, err := net.Build(Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s, cables
}

// hopsOf gives the ports that a switch takes towards each host.
func hopsOf(s *Sim, n NodeID) (out []int) {
	for e := range s.nics {
		ways := s.ECMPWays(n, EndpointID(e))
		out = append(out, ways)
		if ways > 1 {
			for h := range uint32(64) {
				out = append(out, s.ECMPChoice(n, h, ways))
			}
		}
	}
	return out
}

// When the switches of a fabric follow a fault one after the other, all paths are computed
// once, and anew after the next change; the tables are those of a reroute at once.
func TestPathsAreComputedOnceAChange(t *testing.T) {
	s, cables := mesh(t, 6)
	s.SetLink(cables[0][1], false)
	s.RerouteSwitch(0)
	first := s.paths
	for n := range NodeID(6) {
		s.RerouteSwitch(n)
	}
	if first == nil || s.paths != first {
		t.Fatal("the paths were computed again without a change")
	}
	var one [][]int
	for n := range NodeID(6) {
		one = append(one, hopsOf(s, n))
	}
	s.Reroute()
	for n := range NodeID(6) {
		if all := hopsOf(s, n); !slices.Equal(all, one[n]) {
			t.Errorf("switch %d: %v after its own reroute, %v after one of all", n, one[n], all)
		}
	}
	for _, change := range []func(){
		func() { s.SetLink(cables[0][1], true) }, func() { s.SetLink(cables[2][3], false) },
		func() { s.KillSwitch(4) }, func() { s.ReviveSwitch(4) },
	} {
		s.RerouteSwitch(0)
		before := s.paths
		change()
		s.RerouteSwitch(0)
		if s.paths == before {
			t.Error("the paths are those of before a change")
		}
	}
}
