package model

// Recorded is what a run took from its event queue, in order.
type Recorded struct {
	list    []event
	waiting int // on average
	rate    float64
}

// Record runs until a time, or until n events have happened.
func (s *Sim) Record(until Time, n int) *Recorded {
	s.sortStarts()
	r := &Recorded{rate: s.eventRate()}
	sum := 0
	for len(r.list) < n && s.heap.first() <= until {
		r.list = append(r.list, s.heap.run[s.heap.ri])
		sum += s.heap.len() - 1
		s.batch(until, 1)
	}
	r.waiting = max(1, sum/max(1, len(r.list)))
	return r
}

// ProgressEach has a fabric that is cut put together each n events to tell its progress.
func (s *Sim) ProgressEach(n int) { s.stop.cutEvery = n }

// LongestRTT gives the longest round trip as it is found, by walking between all pairs, and whether
// hops were counted instead.
func (s *Sim) LongestRTT() (found, walked Time, counted bool) {
	far := s.farHosts()
	_, counted = s.sameHops()
	return s.findLongestRTT(), s.longestByWalk(far), counted && len(far) > 1
}

// Events gives how many were recorded.
func (r *Recorded) Events() int { return len(r.list) }

// Replay puts the same events through a bare queue, in which as many wait as did on average, and
// reports whether they came out in order.
func (r *Recorded) Replay() bool {
	var w wheel
	w.init(r.rate)
	next := min(r.waiting, len(r.list))
	for _, e := range r.list[:next] {
		w.schedule(e.at, e.key)
	}
	for _, want := range r.list {
		e, ok := w.next(never - 1)
		if !ok || e.at != want.at {
			return false
		}
		if next < len(r.list) {
			w.schedule(r.list[next].at, r.list[next].key)
			next++
		}
	}
	return true
}
