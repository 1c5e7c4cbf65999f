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

// Ways that switches with the same neighbours share are those that a search for each of them finds,
// in random fabrics with parallel links, dead links and dead switches.
func TestFamiliesTakeTheWaysThatASearchFinds(t *testing.T) {
	shared := 0
	for seed := range 60 {
		rng := RNG(seed)
		net := &Network{}
		tops, leaves := 1+rng.Intn(4), 2+rng.Intn(6)
		for range tops + leaves {
			net.AddSwitch("s", ReferenceSwitch(64<<20, nil))
		}
		var cables []LinkID
		join := func(a, b int) {
			l, err := net.Connect(NodeID(a), NodeID(b), link100)
			if err != nil {
				t.Fatal(err)
			}
			cables = append(cables, l)
		}
		for i := range leaves {
			for k := range tops {
				for range 1 + rng.Intn(8)/6 {
					join(tops+i, k)
				}
			}
			if rng.Intn(6) == 0 && i > 0 {
				join(tops+i, tops+rng.Intn(i))
			}
		}
		for i := range leaves {
			if _, err := net.Connect(net.AddHost("h", ReferenceNIC(nil)), NodeID(tops+i), link100); err != nil {
				t.Fatal(err)
			}
		}
		s, err := net.Build(Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for range rng.Intn(4) {
			s.SetLink(cables[rng.Intn(len(cables))], false)
		}
		if rng.Intn(3) == 0 {
			s.KillSwitch(NodeID(rng.Intn(tops + leaves)))
		}
		got, want := s.newRouter(), s.newRouter()
		for i := range want.paths {
			for c := range want.paths[i] {
				want.paths[i][c] = routeNone
			}
			want.groups[i], want.starts[i] = nil, nil
		}
		searched := 0
		for c, d := range s.homes {
			if !s.switches[d].dead {
				want.towards(d, int32(c))
				searched++
			}
		}
		members := func(r *router, i int, e uint16) []int32 {
			if e == routeNone || e < routeGroup {
				return []int32{int32(e)}
			}
			at := r.starts[i][e-routeGroup]
			return r.groups[i][at+1 : at+1+r.groups[i][at]]
		}
		for i := range want.paths {
			for c := range want.paths[i] {
				g, w := members(got, i, got.paths[i][c]), members(want, i, want.paths[i][c])
				if !slices.Equal(g, w) {
					t.Fatalf("fabric %d, switch %d, column %d: %v, a search finds %v", seed, i, c, g, w)
				}
			}
			if !slices.Equal(got.groups[i], want.groups[i]) {
				t.Fatalf("fabric %d, switch %d: other groups", seed, i)
			}
		}
		if searched > tops+1 {
			shared++
		}
	}
	if shared == 0 {
		t.Error("no fabric has a family")
	}
}
