package model

import (
	"cmp"
	"fmt"
	"slices"
)

// farHost is the host of an access switch with the longest cable, and what that hop costs.
type farHost struct {
	sw, nic int32
	cost    Time
}

// findLongestRTT gives the longest round trip between two access switches, from the host of each
// with the longest cable.
func (s *Sim) findLongestRTT() Time {
	far := s.farHosts()
	if hop, ok := s.sameHops(); ok && len(far) > 1 {
		return s.longestByHops(far, hop)
	}
	return s.longestByWalk(far)
}

// farHosts gives one for each access switch, in their order.
func (s *Sim) farHosts() (far []farHost) {
	of := make([]farHost, len(s.switches))
	for i := range s.nics {
		pt := &s.ports[s.nics[i].port]
		sw := s.ports[pt.peer].sw
		if sw < 0 {
			continue
		}
		if c := s.hopCost(int32(i), pt); c > of[sw].cost {
			of[sw] = farHost{sw, int32(i), c}
		}
	}
	for _, f := range of {
		if f.cost > 0 {
			far = append(far, f)
		}
	}
	return far
}

// sameHops gives the cost of a hop between switches if all are alike, for the frames of every host.
func (s *Sim) sameHops() (cost Time, same bool) {
	for i := range s.nics {
		if s.nics[i].prof.MTU != s.nics[0].prof.MTU {
			return 0, false
		}
	}
	for i := range s.ports {
		pt := &s.ports[i]
		if pt.sw < 0 || s.ports[pt.peer].sw < 0 {
			continue
		}
		switch c := s.hopCost(0, pt); {
		case cost == 0:
			cost = c
		case c != cost:
			return 0, false
		}
	}
	return cost, true
}

// longestByHops counts hops, all of which cost the same: to one of each family of switches with the
// same neighbours, as all of a family are equally far from everybody else.
func (s *Sim) longestByHops(far []farHost, hop Time) (longest Time) {
	near := make([][]int32, len(s.switches))
	r := &router{s: s}
	for i := range near {
		near[i] = r.neighbours(int32(i), nil)
	}
	families := map[string][]farHost{}
	var order []string
	for _, f := range far {
		if len(near[f.sw]) == 0 {
			continue // nobody reaches it
		}
		key := fmt.Sprint(near[f.sw])
		if families[key] == nil {
			order = append(order, key)
		}
		families[key] = append(families[key], f)
	}
	dist := make([]int32, len(near))
	for _, key := range order {
		family := families[key]
		slices.SortStableFunc(family, func(a, b farHost) int { return cmp.Compare(b.cost, a.cost) })
		if len(family) > 1 { // over a neighbour of both
			longest = max(longest, family[0].cost+family[1].cost+2*hop)
		}
		hopsFrom(family[0].sw, near, dist)
		for _, f := range far {
			if d := dist[f.sw]; d > 0 && f.sw != family[0].sw {
				longest = max(longest, f.cost+family[0].cost+Time(d)*hop)
			}
		}
	}
	return longest
}

// hopsFrom counts the hops from one switch to all others; -1 = there is no way.
func hopsFrom(sw int32, near [][]int32, dist []int32) {
	for i := range dist {
		dist[i] = -1
	}
	dist[sw] = 0
	queue := []int32{sw}
	for k := 0; k < len(queue); k++ {
		for _, next := range near[queue[k]] {
			if dist[next] < 0 {
				dist[next] = dist[queue[k]] + 1
				queue = append(queue, next)
			}
		}
	}
}

// longestByWalk follows the tables between all pairs.
func (s *Sim) longestByWalk(far []farHost) (longest Time) {
	for _, from := range far {
		for _, to := range far {
			if from.sw == to.sw && len(far) > 1 {
				continue
			}
			sum, sw := from.cost, from.sw
			for range maxHops {
				pi := s.routeByHash(&s.switches[sw], to.nic, 0)
				if pi < 0 {
					sum = 0
					break
				}
				sum += s.hopCost(from.nic, &s.ports[pi])
				if sw = s.ports[s.ports[pi].peer].sw; sw < 0 {
					break
				}
			}
			longest = max(longest, sum)
		}
	}
	return longest
}

// hopCost is what a hop adds to a round trip: its delay twice and the payload of a frame.
func (s *Sim) hopCost(nic int32, pt *port) Time {
	return 2*pt.delay + Time(uint64(s.nics[nic].prof.MTU)*pt.psb>>serBits)
}

// stamps remembers when the frames in flight were sent last.
type stamps struct {
	base uint32 // of at[0]
	at   []Time
}

func (t *stamps) sent(psn uint32, now Time) {
	if len(t.at) == 0 {
		t.base = psn
	}
	switch i := psn - t.base; {
	case psn < t.base: // it went back beyond what is remembered
	case i < uint32(len(t.at)):
		t.at[i] = now
	case i == uint32(len(t.at)):
		t.at = append(t.at, now)
	}
}

// answered gives the round trip of the frame before psn, which an ACK answers, and forgets
// those before it.
func (t *stamps) answered(psn uint32, now Time) (rtt Time, ok bool) {
	i := psn - 1 - t.base
	if psn <= t.base || i >= uint32(len(t.at)) {
		return 0, false
	}
	rtt = now - t.at[i]
	t.base, t.at = psn, t.at[i+1:]
	return rtt, true
}

// measure enters a round trip into what is shown.
func (st *ControlState) measure(rtt Time) {
	if st.RTTs == 0 || rtt < st.RTTMin {
		st.RTTMin = rtt
	}
	st.RTTs, st.RTTSum, st.RTTMax = st.RTTs+1, st.RTTSum+rtt, max(st.RTTMax, rtt)
}
