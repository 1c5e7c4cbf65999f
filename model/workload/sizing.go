package workload

import (
	"github.com/openinof/inof/model"
)

// Sizing is what one lossless class of a long link needs, in bytes, and the proof.
type Sizing struct {
	Headroom model.Headroom `json:"link"`
	Period   model.Time     `json:"braking_period_ps"`
	B2T      int64          `json:"b2t"`
	Xoff     int64          `json:"xoff"`
	Room     int64          `json:"headroom"`
	Classic  int64          `json:"classic_buffer"`
	Braking  int64          `json:"braking_buffer"` // 0 = the link is too short for it
	Proof    []Trial        `json:"proof,omitempty"`
}

// Trial is one size simulated against all drain patterns.
type Trial struct {
	What  string      `json:"what"`
	Worst TrialResult `json:"worst"` // most loss, else least use
	OK    bool        `json:"ok"`    // it went as the law says
}

// TrialResult is a LongResult with the pattern that gave it.
type TrialResult struct {
	Pattern string `json:"pattern"`
	LongResult
}

// BrakingPeriod gives a period of point braking that suits a link: a fiftieth of the
// round trip, at most 20 us. The drain stands idle for about one period each time it
// resumes, so a longer one costs throughput.
func BrakingPeriod(delay model.Time) model.Time {
	return min(max(2*delay/50, model.Microsecond), 20*model.Microsecond)
}

// NewSizing computes the sizes; period 0 = BrakingPeriod.
func NewSizing(h model.Headroom, period model.Time) *Sizing {
	if period == 0 {
		period = BrakingPeriod(h.Delay)
	}
	a := &Sizing{Headroom: h, Period: period, B2T: h.Rate.Bytes(2 * h.Delay), Xoff: h.Xoff(), Room: h.Bytes(), Classic: h.ClassicBuffer()}
	if h.Delay >= model.KM(brakingKM) && 2*h.Delay >= 35*period && a.B2T >= 100*int64(h.MTU) {
		a.Braking = h.BrakedBuffer(period, 0)
	}
	return a
}

// brakingKM is the least length for which point braking is meant: below, its decision
// periods are not short beside the round trip.
const brakingKM = 10

// leastUse is the share of the drain that counts as no loss of throughput.
const leastUse = 0.99

// Prove simulates the sizes, and smaller ones that must fail.
func (a *Sizing) Prove() error {
	h := a.Headroom
	base := LongLink{Rate: h.Rate, Delay: h.Delay, MTU: h.MTU, Reaction: h.Reaction, Period: a.Period}
	classic := base
	classic.Xoff, classic.Headroom = a.Xoff, a.Room
	tight, low := classic, classic
	// On a short link most of the headroom is for frames that may just have begun; the patterns
	// below need not meet the worst of them, so there what is left is the wire's alone.
	tight.Headroom = max(1, min(a.Room-a.Room/10, h.Rate.Bytes(2*h.Delay+h.Reaction)))
	less10 := "classic, a tenth less headroom"
	if tight.Headroom < a.Room-a.Room/10 {
		less10 = "classic, no headroom for frames"
	}
	low.Xoff = a.Xoff * 8 / 10
	type trial struct {
		what      string
		l         LongLink
		loss, use bool // whether it may lose, and need not use the drain
	}
	trials := []trial{{"classic PFC at these sizes", classic, false, false}}
	if tight.Headroom > 8*int64(h.MTU) { // else a few frames decide, and whether they meet is chance
		trials = append(trials, trial{less10, tight, true, false})
	}
	if a.Braking > 0 { // on short links XOFF is a few frames and has no law to break
		brake := base
		brake.ABS, brake.Buffer = true, a.Braking
		less := brake
		less.Buffer = a.Braking * 9 / 10
		trials = append(trials, []trial{
			{"classic, XOFF a fifth lower", low, false, true},
			{"point braking at this size", brake, false, false},
			{"braking, a tenth less buffer", less, true, false},
		}...)
	}
	a.Proof = a.Proof[:0]
	for _, t := range trials {
		worst, err := a.worst(t.l)
		if err != nil {
			return err
		}
		ok := (worst.Drops > 0) == t.loss
		if long := h.Delay >= model.KM(4*brakingKM); !t.loss && (long || !t.l.ABS) {
			ok = ok && (worst.Use < leastUse) == t.use
		}
		a.Proof = append(a.Proof, Trial{t.what, worst, ok})
	}
	return nil
}

// worst runs all patterns and gives the one with the most loss, else the least use.
func (a *Sizing) worst(l LongLink) (TrialResult, error) {
	var worst TrialResult
	for i, p := range Drains(2*l.Delay, l.Rate) {
		l.Pattern = p
		r, err := l.Run()
		if err != nil {
			return worst, err
		}
		if i == 0 || r.Drops > worst.Drops || r.Drops == worst.Drops && r.Use < worst.Use {
			worst = TrialResult{p.Name, r}
		}
	}
	return worst, nil
}
