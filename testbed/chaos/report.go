package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/testbed/truth"
)

// Report is what a run found.
type Report struct {
	Seed     uint64       `json:"seed"`
	Duration float64      `json:"duration_s"` // in which faults could strike, settling included
	Rounds   int          `json:"rounds"`
	Faults   map[Kind]int `json:"faults"`
	LeftOut  []string     `json:"left_out"` // kinds that cannot be made here, and why
	Notices  truth.Tally  `json:"notices"`
	// FaultToNotice is from right before a cable was pulled to the kernel's time stamp
	// of the notice at a host, where nothing else was wrong on the way meanwhile.
	FaultToNotice Times `json:"fault_to_notice_ms"`
	// Disturbed is the same where something was: a daemon away, a link lossy.
	Disturbed Times           `json:"fault_to_notice_disturbed_ms"`
	Settling  Times           `json:"settling_ms"` // from the healing of all faults to the truth at all hosts
	Findings  []truth.Finding `json:"findings"`
	Kept      string          `json:"kept,omitempty"` // directory with all logs of a run that failed
	last      []string        // faults of the last round as they were done
}

// Times are a distribution, in milliseconds.
type Times struct {
	N   int     `json:"n"`
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// timesOf sorts the samples.
func timesOf(s []time.Duration) Times {
	slices.Sort(s)
	n := len(s)
	if n == 0 {
		return Times{}
	}
	at := func(q int) float64 { // nearest rank
		i := max((n*q+99)/100, 1)
		return float64(s[i-1].Microseconds()) / 1000
	}
	return Times{N: n, Min: at(0), P50: at(50), P90: at(90), P99: at(99), Max: at(100)}
}

func (t Times) String() string {
	if t.N == 0 {
		return "none"
	}
	return fmt.Sprintf("%d samples, min %.3f, median %.3f, p90 %.3f, p99 %.3f, max %.3f ms", t.N, t.Min, t.P50, t.P90, t.P99, t.Max)
}

// Failed reports whether something was wrong.
func (r *Report) Failed() bool {
	return r.Notices.Unexpected > 0 || r.Notices.Missing > 0 || len(r.Findings) > 0
}

// Text prints the report for people.
func (r *Report) Text(w io.Writer) {
	n, total, kinds := r.Notices, 0, []string{}
	for _, k := range slices.Sorted(maps.Keys(r.Faults)) {
		total += r.Faults[k]
		kinds = append(kinds, fmt.Sprintf("%s %d", k, r.Faults[k]))
	}
	fmt.Fprintf(w, "seed %d, %.0f s, %d rounds, %d faults: %s\n", r.Seed, r.Duration, r.Rounds, total, strings.Join(kinds, ", "))
	for _, s := range r.LeftOut {
		fmt.Fprintf(w, "left out: %s\n", s)
	}
	fmt.Fprintf(w, "notices: at least %d expected, %d received, %d answers, %d repeated frames; %d unexpected, %d missing\n",
		n.Expected, n.Received, n.Answers, n.Resent, n.Unexpected, n.Missing)
	for _, word := range slices.Sorted(maps.Keys(n.Words)) {
		fmt.Fprintf(w, "  %-24s %d\n", word, n.Words[word])
	}
	if n.Forgotten > 0 {
		fmt.Fprintf(w, "zone queries lost with a switch's daemon left agents without an answer about %d pairs\n", n.Forgotten)
	}
	fmt.Fprintf(w, "fault to notice: %s\n", r.FaultToNotice)
	fmt.Fprintf(w, "  with something else wrong on the way: %s\n", r.Disturbed)
	fmt.Fprintf(w, "settling after a round: %s\n", r.Settling)
	if !r.Failed() {
		return
	}
	fmt.Fprintf(w, "\nfindings:\n")
	for _, f := range r.Findings {
		fmt.Fprintf(w, "  %s\n", f)
	}
	fmt.Fprintf(w, "\nfaults of the last round:\n")
	for _, s := range r.last {
		fmt.Fprintf(w, "  %s\n", s)
	}
	if r.Kept != "" {
		fmt.Fprintf(w, "\nall logs, what the agents printed and every fault: %s\n", r.Kept)
	}
	fmt.Fprintf(w, "the same faults again: inofctl lab chaos --seed %d\n", r.Seed)
}
