package model

import (
	"math"
	"math/bits"
)

// wheel is the event queue. What happens within the next few microseconds, which is
// nearly everything, hangs in slots of a fixed width, found again by a bitmap; the
// slot whose time has come is sorted into run and handled from there. What lies
// beyond waits in a heap until its slot has come. Scheduling costs a store in a list
// instead of a walk up a heap, and the order is exactly that of (time, key).
type wheel struct {
	run   []event // the present slot in order, from ri on
	ri    int
	cur   int64 // number of the present slot, counted from time 0
	shift uint
	heads *[wheelSlots]int32 // first entry of each slot, -1 = none
	bits  *[wheelSlots / 64]uint64
	ents  []entry
	free  int32
	near  int   // entries in slots
	far   heap4 // of later slots than the present one
}

type entry struct {
	at   Time
	key  uint32
	next int32
}

// Sizes of the wheel: slots of 2^shift ps.
const (
	wheelSlots    = 1 << 13
	wheelMask     = wheelSlots - 1
	minWheelShift = 7  // 128 ps
	maxWheelShift = 16 // 66 ns
)

// init chooses the width of a slot so that a busy fabric has about two events in it.
func (w *wheel) init(perSecond float64) {
	w.shift = minWheelShift
	for w.shift < maxWheelShift && perSecond*float64(int64(1)<<w.shift)/float64(Second) < 1 {
		w.shift++
	}
	w.heads, w.bits = new([wheelSlots]int32), new([wheelSlots / 64]uint64)
	for i := range w.heads {
		w.heads[i] = -1
	}
	w.free = -1
	w.cur = -1
}

func (w *wheel) len() int { return len(w.run) - w.ri + w.near + len(w.far) }

// schedule adds an event; at is not before the event being handled.
func (w *wheel) schedule(at Time, key uint32) {
	slot := int64(at) >> w.shift
	if d := slot - w.cur; uint64(d-1) >= wheelMask {
		w.outside(event{at: at, key: key}, d)
		return
	}
	i := w.free
	if i >= 0 {
		w.free = w.ents[i].next
	} else {
		i = int32(len(w.ents))
		w.ents = append(w.ents, entry{})
	}
	k := slot & wheelMask
	w.ents[i] = entry{at, key, w.heads[k]}
	w.heads[k] = i
	w.bits[k>>6] |= 1 << (k & 63)
	w.near++
}

// outside takes an event of the present slot, or one beyond the last.
func (w *wheel) outside(e event, d int64) {
	if d > 0 {
		w.far.push(e)
	} else {
		w.insert(e)
	}
}

// insert puts an event into its place in run.
func (w *wheel) insert(e event) {
	w.run = append(w.run, e)
	r := w.run
	i := len(r) - 1
	for i > w.ri && e.before(r[i-1]) {
		r[i] = r[i-1]
		i--
	}
	r[i] = e
}

// next takes the first event if it is not after until.
func (w *wheel) next(until Time) (event, bool) {
	if w.ri == len(w.run) && !w.advance() {
		return event{}, false
	}
	e := w.run[w.ri]
	if e.at > until {
		return e, false
	}
	w.ri++
	return e, true
}

// advance goes to the slot of the next event; false means there is none.
func (w *wheel) advance() bool {
	w.run, w.ri = w.run[:0], 0
	slot := int64(math.MaxInt64)
	if w.near > 0 {
		slot = w.cur + 1 + (w.find()-w.cur-1)&wheelMask
	} else if len(w.far) == 0 {
		return false
	}
	if len(w.far) > 0 {
		slot = min(slot, int64(w.far[0].at)>>w.shift)
	}
	w.cur = slot
	w.take(slot & wheelMask)
	for len(w.far) > 0 && int64(w.far[0].at)>>w.shift == slot {
		e := w.far[0]
		w.far.pop()
		w.insert(e)
	}
	return true
}

// take empties a slot into run, which is empty.
func (w *wheel) take(k int64) {
	w.bits[k>>6] &^= 1 << (k & 63)
	r, i := w.run, w.heads[k]
	w.heads[k] = -1
	for i >= 0 {
		n := &w.ents[i]
		e := event{at: n.at, key: n.key}
		i, n.next, w.free = n.next, w.free, i
		r = append(r, e)
		j := len(r) - 1
		for j > 0 && e.before(r[j-1]) {
			r[j] = r[j-1]
			j--
		}
		r[j] = e
	}
	w.near -= len(r)
	w.run = r
}

// each calls f with every event, in no order.
func (w *wheel) each(f func(e event)) {
	for _, e := range w.run[w.ri:] {
		f(e)
	}
	for _, e := range w.far {
		f(e)
	}
	for _, head := range w.heads {
		for i := head; i >= 0; i = w.ents[i].next {
			f(event{at: w.ents[i].at, key: w.ents[i].key})
		}
	}
}

// find gives the index of the first used slot after the present one.
func (w *wheel) find() int64 {
	from := (w.cur + 1) & wheelMask
	word := from >> 6
	b := w.bits[word] >> (from & 63) << (from & 63)
	for b == 0 {
		word = (word + 1) & (wheelMask >> 6)
		b = w.bits[word]
	}
	return word<<6 + int64(bits.TrailingZeros64(b))
}
