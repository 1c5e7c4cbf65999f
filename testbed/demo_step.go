package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/testbed/truth"
)

// stepPlan is one step of the demo.
type stepPlan struct {
	title   string
	want    truth.Notices
	about   []netip.Addr              // subjects, to say why others were not told
	do      func() (time.Time, error) // acts and gives the time right before; nil: it happened already
	then    func() error              // waits for what else must hold
	quiet   time.Duration             // how long to watch for what must not come; 0: demoQuiet
	carrier bool                      // counts for the latency
	bulk    bool                      // too many notices to list each
	fault   string                    // goes into the summary as found
	by      string                    // what finds it
}

// step acts, waits for every notice that must come, watches for those that must
// not, and reports. Wrong notices are kept as problems; the error is for what makes
// going on pointless.
func (d *demo) step(ctx context.Context, p stepPlan) error {
	d.sum.Steps++
	d.say("")
	d.say("%s", d.colour(bold, fmt.Sprintf("%2d. %s", d.sum.Steps, p.title)))
	var at time.Time
	if p.do != nil {
		var err error
		if at, err = p.do(); err != nil {
			return err
		}
	}
	got, err := d.collect(ctx, p)
	d.judge(p, at, got)
	return err
}

// collect reads notices until all that are expected came, waits for what else must
// hold, and reads on for the quiet time.
func (d *demo) collect(ctx context.Context, p stepPlan) ([]heard, error) {
	var got []heard
	missing := make(truth.Notices, len(p.want))
	for n := range p.want {
		missing[n] = true
	}
	quiet := p.quiet
	if quiet == 0 {
		quiet = demoQuiet
	}
	limit := time.Now().Add(demoWait)
	var end time.Time
	for {
		hs, err := d.agents.read()
		if err != nil {
			return got, err
		}
		for _, h := range hs {
			got = append(got, h)
			delete(missing, h.Notice)
		}
		now := time.Now()
		if end.IsZero() && (len(missing) == 0 || now.After(limit)) {
			if p.then != nil {
				if err := p.then(); err != nil {
					return got, err
				}
			}
			end = time.Now().Add(quiet)
		}
		if !end.IsZero() && now.After(end) {
			return got, nil
		}
		select {
		case <-ctx.Done():
			return got, context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// judge compares what came with what had to come, and prints both.
func (d *demo) judge(p stepPlan, at time.Time, got []heard) {
	type frame struct {
		truth.Notice
		seq uint32
	}
	seen := make(map[truth.Notice]heard)
	frames := make(map[frame]bool)
	var wrong []heard
	repeats, answers := 0, 0
	for _, h := range got {
		n := h.Notice
		switch f := (frame{h.Notice, h.Seq}); {
		case frames[f]: // the same sequence number again: a retry whose ack was late
			repeats++
			continue
		default:
			frames[f] = true
		}
		_, twice := seen[n]
		if h.Again && (twice || !p.want[n]) {
			repeats++
			continue
		}
		known := d.agents.known(h)
		switch {
		case p.want[n] && !twice:
		case known && d.agents.answers(h):
			answers++
			continue
		default:
			wrong = append(wrong, h)
			continue
		}
		seen[n] = h
	}
	d.sum.Expected += len(p.want)
	d.sum.Received += len(seen) + len(wrong)
	d.sum.Unexpected += len(wrong)
	d.report(p, at, seen)
	for _, n := range p.want.Sorted() {
		if _, ok := seen[n]; !ok {
			d.wrong("missing: %s", d.words(n))
		}
	}
	for _, h := range wrong {
		d.wrong("unexpected: %s, %s, sequence number %d", d.words(h.Notice), h.Agent, h.Seq)
	}
	if repeats > 0 {
		d.say("   %s", d.colour(dim, fmt.Sprintf("%d frames came twice (a retry)", repeats)))
	}
	if answers > 0 {
		d.say("   %s", d.colour(dim, fmt.Sprintf("%d notices said once more what a host knew: the answer to its own zone query", answers)))
	}
	if p.fault != "" {
		d.found(p, at, seen)
	}
	if p.carrier {
		for _, h := range seen {
			d.samples = append(d.samples, h.At.Sub(at))
		}
	}
}

// found keeps the times of a fault for the summary.
func (d *demo) found(p stepPlan, at time.Time, seen map[truth.Notice]heard) {
	f := Found{Fault: p.fault, By: p.by}
	for _, h := range seen {
		us := micro(h.At.Sub(at))
		if f.First == 0 || us < f.First {
			f.First = us
		}
		f.Last = max(f.Last, us)
	}
	d.sum.Found = append(d.sum.Found, f)
}

// micro gives microseconds with one decimal.
func micro(t time.Duration) float64 { return float64(t.Nanoseconds()/100) / 10 }

// report prints who was told and who was rightly not.
func (d *demo) report(p stepPlan, at time.Time, seen map[truth.Notice]heard) {
	told := make(map[netip.Addr]bool)
	for n := range seen {
		told[n.Host] = true
	}
	switch {
	case p.bulk:
		d.say("   %s %d notices, each host of exactly the others in its zones", d.colour(green, "told:"), len(seen))
		for _, a := range d.truth.Places() {
			var of []string
			for _, n := range p.want.Sorted() {
				if _, ok := seen[n]; ok && n.Host == a.Addr {
					of = append(of, n.Subject.String())
				}
			}
			d.say("      %-20s %s", a, strings.Join(of, " "))
		}
		return
	case len(seen) == 0:
		d.say("   %s nobody, watched for %s", d.colour(green, "told:"), p.quiet)
		return
	}
	order := p.want.Sorted()
	slices.SortStableFunc(order, func(a, b truth.Notice) int { return seen[a].At.Compare(seen[b].At) })
	for _, n := range order {
		if h, ok := seen[n]; ok {
			reason := ""
			if n.State == truth.Inactive {
				reason = " (" + n.Reason + ")"
			}
			d.say("   %s %-20s at %s after %9s: %s is %s%s", d.colour(green, "told:"), d.truth.info(n.Host), d.truth.info(n.Host).Switch,
				showDelay(h.At.Sub(at)), d.truth.info(n.Subject), n.State, reason)
		}
	}
	var quiet []string
	for _, a := range d.truth.Places() {
		if !told[a.Addr] {
			quiet = append(quiet, fmt.Sprintf("%s (%s)", a, d.truth.silent(a.Addr, p.about)))
		}
	}
	if len(quiet) > 0 {
		d.say("   %s %s", d.colour(dim, "rightly not told:"), strings.Join(quiet, ", "))
	}
}

func (d *demo) words(n truth.Notice) string {
	s := fmt.Sprintf("%s about %s: %s", d.truth.info(n.Host), d.truth.info(n.Subject), n.State)
	if n.State != truth.Active {
		s += " (" + n.Reason + ")"
	}
	return s
}

func (d *demo) wrong(format string, args ...any) {
	s := fmt.Sprintf("step %d, ", d.sum.Steps) + fmt.Sprintf(format, args...)
	d.problem = append(d.problem, s)
	d.say("   %s %s", d.colour(red, "WRONG:"), s)
}

func showDelay(t time.Duration) string {
	if t < 10*time.Millisecond {
		return fmt.Sprintf("%.3f ms", float64(t.Nanoseconds())/1e6)
	}
	return fmt.Sprintf("%.1f ms", float64(t.Nanoseconds())/1e6)
}

func (d *demo) intro() {
	d.say("A fabric of real kernel links: spine (reflector), tor1 and tor2 (access switches of two planes),")
	d.say("initiators i1 and i2, targets t1 and t2, each with a port and an address in both planes.")
	d.say("Zones: oltp = i1 + t1; analytics = i2 + t2; replication = t1 + t2 in plane A.")
	d.say("Times run from right before the system call that made the fault to the kernel's receive")
	d.say("time stamp of the notice at the host.")
}

// finish computes the latency and prints the summary; its last line is JSON.
func (d *demo) finish(err error) Summary {
	slices.Sort(d.samples)
	if n := len(d.samples); n > 0 {
		d.sum.Latency = Latency{Min: micro(d.samples[0]), Median: micro(median(d.samples)), Max: micro(d.samples[n-1])}
	}
	d.say("")
	verdict := d.colour(green, "all as it must be")
	if err != nil {
		verdict = d.colour(red, "it ended early: "+err.Error())
	} else if len(d.problem) > 0 || d.sum.Received != d.sum.Expected || d.sum.Unexpected > 0 {
		verdict = d.colour(red, fmt.Sprintf("%d problems", len(d.problem)))
	}
	d.say("%s %d steps, %d notices expected, %d received, %d unexpected; pulled cable to notice %.0f us (median of %d): %s",
		d.colour(bold, "Summary:"), d.sum.Steps, d.sum.Expected, d.sum.Received, d.sum.Unexpected, d.sum.Latency.Median, len(d.samples), verdict)
	for _, f := range d.sum.Found {
		d.say("   %-58s told after %s to %s: %s", f.Fault, showMicro(f.First), showMicro(f.Last), f.By)
	}
	b, _ := json.Marshal(d.sum)
	d.say("%s", b)
	return d.sum
}

func showMicro(us float64) string { return showDelay(time.Duration(us * 1000)) }

// median of sorted values: the mean of the middle two when they are even in number.
func median(s []time.Duration) time.Duration {
	n := len(s)
	if n == 0 {
		return 0
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// SGR sequences (ECMA-48, 8.3.117).
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

func (d *demo) colour(c, s string) string {
	if !d.Colour {
		return s
	}
	return "\x1b[" + c + "m" + s + "\x1b[0m"
}

// say prints a line. A reader that went away (a pager that was left) ends the demo,
// which then still removes its lab.
func (d *demo) say(format string, args ...any) {
	if _, err := fmt.Fprintf(d.Out, format+"\n", args...); err != nil && d.stop != nil {
		d.stop(fmt.Errorf("output: %w", err))
	}
}
