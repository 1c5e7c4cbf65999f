package virtual

import (
	"slices"
	"testing"
	"time"
)

// clock is a World in nanoseconds.
type clock struct {
	now   int64
	queue Queue
}

func (c *clock) Now() int64               { return c.now }
func (c *clock) At(at int64, fn func())   { c.queue.Put(max(at, c.now), fn) }
func (c *clock) Time() time.Time          { return Wall(time.Duration(c.now)) }
func (c *clock) Moment(t time.Time) int64 { return int64(Since(t)) }

func (c *clock) run() {
	for at, ok := c.queue.Next(); ok; at, ok = c.queue.Next() {
		c.now = at
		c.queue.Take()()
	}
}

func TestWhatIsPlannedForOneMomentHappensInTheOrderOfPlanning(t *testing.T) {
	var c clock
	var got []int
	for i, at := range []int64{5, 3, 5, 3, 9} {
		c.At(at, func() {
			got = append(got, i)
			if i == 1 {
				c.At(0, func() { got = append(got, 10) }) // past: now, behind what was planned for now
			}
		})
	}
	c.run()
	if want := []int{1, 3, 10, 0, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAMachineIsLookedAtOnceAtTheEarliestMomentAskedFor(t *testing.T) {
	var c clock
	var l Look
	var at []int64
	alive := true
	look := func() { at = append(at, c.now) }
	plan := func(when int64) {
		l.Plan(&c, Wall(time.Duration(when)), func() bool { return alive }, look)
	}
	plan(50)
	plan(80) // later: 50 comes first
	plan(20) // earlier
	c.run()
	if want := []int64{20}; !slices.Equal(at, want) {
		t.Errorf("looked at %v, want %v", at, want)
	}
	c.At(60, func() { plan(0) }) // past: now
	plan(70)
	c.run()
	if want := []int64{20, 60}; !slices.Equal(at, want) {
		t.Errorf("looked at %v, want %v", at, want)
	}
	plan(100)
	alive = false
	c.run()
	if len(at) != 2 {
		t.Errorf("looked at %v when it was no more", at)
	}
	l.Forget()
	alive = true
	plan(120)
	c.run()
	if want := []int64{20, 60, 120}; !slices.Equal(at, want) {
		t.Errorf("looked at %v, want %v", at, want)
	}
}
