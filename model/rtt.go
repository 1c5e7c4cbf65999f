package model

// findLongestRTT walks between all pairs of access switches, from the host of each with the
// longest cable.
func (s *Sim) findLongestRTT() Time {
	type edge struct {
		nic  int32
		cost Time
	}
	far := map[int32]edge{} // by access switch
	for i := range s.nics {
		pt := &s.ports[s.nics[i].port]
		sw := s.ports[pt.peer].sw
		if sw < 0 {
			continue
		}
		c := s.hopCost(int32(i), pt)
		if e, ok := far[sw]; !ok || c > e.cost {
			far[sw] = edge{int32(i), c}
		}
	}
	longest := Time(0)
	for a, from := range far {
		for b, to := range far {
			if a == b && len(far) > 1 {
				continue
			}
			sum, sw := from.cost, a
			for range maxHops {
				pi := s.routeByHash(&s.switches[sw], int32(to.nic), 0)
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
