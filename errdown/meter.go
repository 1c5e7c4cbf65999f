package errdown

import "time"

// meter turns successive readings of a total into what was added in between.
type meter struct {
	based bool
	index int // of the port that the total is of
	total uint64
	at    time.Time
	step  uint64 // the last increment, if it was too much to be believed at once
}

// drop forgets the last reading: what comes until the next one is not counted.
func (m *meter) drop() { *m = meter{} }

// read gives the increment since the last reading and the time between them; false
// when there is none to trust: the first reading, a total that went back (wrapped
// or reset), one read at the same time. An increment above most (0: no such limit)
// is believed only as far as the one before was as large.
func (m *meter) read(total, most uint64, in *Input) (n uint64, span time.Duration, ok bool) {
	was := *m
	*m = meter{based: true, index: in.Port.Index, total: total, at: in.Reading.At}
	span = m.at.Sub(was.at)
	if !was.based || was.index != m.index || span <= 0 {
		return 0, span, false
	}
	if total < was.total {
		in.jump()
		return 0, span, false
	}
	n = total - was.total
	if most > 0 && n > most {
		m.step = n
		if was.step == 0 {
			in.jump()
			return 0, span, false
		}
		n = min(n, was.step)
	}
	return n, span, true
}

// fastest is more frames a second than any port can carry: 1.6 Tb/s of the
// smallest frames are 2.4 billion.
const fastest = 3e9

// maxRate is the most frames within a time.
func maxRate(span time.Duration) uint64 { return uint64(max(span.Seconds(), 0.001) * fastest) }

// pieces is into how many parts a window is divided: so much of what is about to
// leave it leaves too early.
const pieces = 64

// window sums up what was counted within a time until now.
type window struct{ list []piece }

type piece struct {
	at       time.Time // of the first of what is in it
	n, among uint64
}

func (w *window) empty() { w.list = nil }

// add counts n (among so many) at a time. It was spread over the span before it; of
// a span that is longer than the window only a share fell into the window.
func (w *window) add(n, among uint64, at time.Time, span, length time.Duration) {
	if span > length {
		share := float64(length) / float64(span)
		n, among = uint64(float64(n)*share), uint64(float64(among)*share)
	}
	if n == 0 && among == 0 {
		return
	}
	if last := len(w.list) - 1; last >= 0 && at.Sub(w.list[last].at) < length/pieces {
		w.list[last].n += n
		w.list[last].among += among
		return
	}
	w.expire(at, length)
	w.list = append(w.list, piece{at, n, among})
}

func (w *window) expire(at time.Time, length time.Duration) {
	gone := 0
	for gone < len(w.list) && at.Sub(w.list[gone].at) >= length {
		gone++
	}
	w.list = append(w.list[:0], w.list[gone:]...)
}

// sum is what was counted in the window that ends at a time.
func (w *window) sum(at time.Time, length time.Duration) (n, among uint64) {
	w.expire(at, length)
	for _, p := range w.list {
		n += p.n
		among += p.among
	}
	return n, among
}

// streak is a condition that has held in every reading for some time.
type streak struct {
	since    time.Time
	readings int
}

func (s *streak) end() { *s = streak{} }

// lasts notes that the condition holds from one time to another and reports whether
// it has, without a break and in more than one reading, for a length.
func (s *streak) lasts(from, to time.Time, length time.Duration) bool {
	if s.readings == 0 {
		s.since = from
	}
	s.readings++
	return s.readings > 1 && to.Sub(s.since) >= length
}

// worse gives the more serious of two signals.
func worse(a, b Signal) Signal {
	rank := [...]int{Quiet: 0, Clear: 1, Unwell: 2, Trip: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

func within(d, least, most time.Duration) time.Duration { return min(max(d, least), most) }
