package hostagent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/snsd"
)

// FenceMode says what must be known of the copies of a write that are still under way before the
// path that they were sent over is left: what is left at once is sent again over another path, and
// a late copy overwrites what was acknowledged there meanwhile.
type FenceMode uint8

// The modes.
const (
	FencePrefer  FenceMode = iota // wait for a fence for a while; without one leave a path that does not answer
	FenceRequire                  // without level "array" leave it to the kernel's timers
	FenceOff                      // leave at once, whatever is still under way
)

var fenceModeNames = []string{"prefer", "require", "off"}

func (m FenceMode) String() string { return fenceModeNames[m] }

// MarshalText returns the name.
func (m FenceMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (m *FenceMode) UnmarshalText(b []byte) error {
	i := slices.Index(fenceModeNames, string(b))
	if i < 0 {
		return fmt.Errorf("%q: want one of %v", b, fenceModeNames)
	}
	*m = FenceMode(i)
	return nil
}

// networkRest is how long after level "network" a path is left with FencePrefer: a copy that had
// reached the array is executed meanwhile, unless the array is slower than that.
const networkRest = time.Second

const maxDoubts = 8 // that are said

// verdict is what is to be done about the controllers of a path now.
type verdict uint8

const (
	verdictWait  verdict = iota // until a time, or the next input
	verdictProbe                // ask for an answer, and hand over what came
	verdictLeave
	verdictStay // the kernel's timers decide; a fence that comes later still counts
	verdictKeep // it answers: ask again, as by Probe
)

// probed is what a Keep Alive led to.
type probed uint8

const (
	unprobed probed = iota
	answered
	unanswered
)

// fencing decides when controllers that have one target in common are left: the table "Policy" of
// docs/hosts.md. It is a pure machine with one owner; its inputs are levels, answers and the time.
type fencing struct {
	mode   FenceMode
	wait   time.Duration  // for a fence
	settle *time.Duration // how long a write may wait in the array and be executed there; nil: not known
	need   time.Duration  // how long a switch must hold its block; 0: no block is long enough
	most   time.Duration  // how long an array that is at work is waited for
	since  time.Time      // of the notice

	awaited bool // the switch may still confirm a fence
	asking  bool // an answer of the Fencer is still to come
	probed  probed
	working time.Time // when the array had begun to work on it; zero: it has not

	network   *snsd.Fence // what counts of it
	confirmed time.Time   // when it was heard of
	array     *snsd.Fence
	doubts    []string // why there is nothing better
}

// hear takes the fence that a notice carries; nil: the switch knows nothing of fences.
func (f *fencing) hear(x *snsd.Fence, now time.Time) {
	switch {
	case x == nil:
		f.awaited = false
		f.doubt("the switch announces no fence")
	case x.Level == snsd.FenceNone:
		f.awaited = true
	default:
		f.awaited = x.Level < snsd.FenceArray // the target's agent may tell it more
		f.take(x, now)
	}
}

// asked takes what a Fencer came to.
func (f *fencing) asked(x snsd.Fence, err error, now time.Time) {
	f.asking = false
	if err != nil {
		f.doubt(err.Error())
		return
	}
	f.take(&x, now)
}

// works takes that the array is at work: it alone knows how long its commands take.
func (f *fencing) works(now time.Time) {
	if f.working.IsZero() {
		f.working = now
	}
}

func (f *fencing) take(x *snsd.Fence, now time.Time) {
	switch {
	case x.Level == snsd.FenceArray:
		f.array = x
	case x.Level != snsd.FenceNetwork || f.network != nil:
	case f.need == 0:
		f.doubt("without a keep-alive the array holds a dead connection for longer than any block")
	case x.Hold < f.need:
		f.doubt(fmt.Sprintf("the switch holds its block for %v, and the array a dead connection for up to %v", x.Hold, f.need))
	default:
		f.network, f.confirmed = x, now
	}
}

func (f *fencing) doubt(why string) {
	if len(f.doubts) < maxDoubts && !slices.Contains(f.doubts, why) {
		f.doubts = append(f.doubts, why)
	}
}

// decide returns what is to be done now, and until when that holds where nothing else comes.
func (f *fencing) decide(now time.Time) (v verdict, until time.Time) {
	patience := f.patience()
	switch {
	case f.mode == FenceOff || f.array != nil || f.settled(now):
		return verdictLeave, now
	case f.asking && !f.working.IsZero() && now.Before(patience):
		if f.network != nil && f.settle != nil && f.confirmed.Add(*f.settle).Before(patience) {
			patience = f.confirmed.Add(*f.settle)
		}
		return verdictWait, patience
	case f.network != nil && f.mode == FenceRequire && f.settle == nil:
		return hold(verdictStay, patience, now)
	case f.network != nil:
		return hold(verdictLeave, f.ripe(), now)
	case now.Before(patience):
		return verdictWait, patience
	case f.mode == FenceRequire:
		return verdictStay, time.Time{}
	}
	return [...]verdict{unprobed: verdictProbe, answered: verdictKeep, unanswered: verdictLeave}[f.probed], time.Time{}
}

// patience is until when a fence is waited for.
func (f *fencing) patience() time.Time {
	until := f.since
	if f.awaited || f.asking {
		until = until.Add(f.wait)
	}
	if end := f.working.Add(f.most); f.asking && !f.working.IsZero() && end.After(until) {
		return end
	}
	return until
}

// settled reports whether what the network let through has been executed by now, as the operator says.
func (f *fencing) settled(now time.Time) bool {
	return f.network != nil && f.settle != nil && !now.Before(f.confirmed.Add(*f.settle))
}

// hold is a verdict from a time on.
func hold(v verdict, from, now time.Time) (verdict, time.Time) {
	if now.Before(from) {
		return verdictWait, from
	}
	return v, time.Time{}
}

// ripe is when level "network" is enough.
func (f *fencing) ripe() time.Time {
	rest := networkRest
	if f.settle != nil && (*f.settle < rest || f.mode == FenceRequire) {
		rest = *f.settle
	}
	return f.confirmed.Add(rest)
}

// result is what is known of the fence now.
func (f *fencing) result(now time.Time) *Fenced {
	switch {
	case f.mode == FenceOff:
		return &Fenced{Why: "fence: off"}
	case f.array != nil:
		return &Fenced{Fence: *f.array}
	case f.settled(now):
		return &Fenced{Fence: snsd.Fence{Level: snsd.FenceArray, Way: snsd.FenceBySettle, Hold: f.network.Hold, Took: f.network.Took + *f.settle}}
	case f.network != nil:
		return &Fenced{Fence: *f.network}
	}
	why := f.doubts
	if f.awaited || f.asking {
		why = append(slices.Clip(why), fmt.Sprintf("nothing was confirmed within %v", f.patience().Sub(f.since).Round(time.Millisecond)))
	}
	if len(why) == 0 {
		why = []string{"nothing could confirm a fence"}
	}
	return &Fenced{Why: strings.Join(why, "; ")}
}

// Fenced is what was known of the fence of a path when something was done about it.
type Fenced struct {
	snsd.Fence
	Why string `json:"why,omitempty"` // without a fence
}

func (f *Fenced) String() string {
	if f.Level == snsd.FenceNone {
		return "not fenced: " + f.Why
	}
	return "fenced: " + f.Fence.String()
}
