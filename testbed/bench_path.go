package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/testbed/truth"
)

// PathBench is how long a silent path takes to be told, at one detection time.
type PathBench struct {
	Interval   string  `json:"interval"`
	DetectMult int     `json:"detect_mult"`
	Detection  float64 `json:"detection_time_us"`
	// Decided runs from the last packet that got through, as the kernel of tor2 received
	// it, until BFD there has decided; Notice until the kernel of a host of tor2 has
	// received the notice.
	Decided     Quantiles `json:"last_packet_to_decision"`
	Notice      Quantiles `json:"last_packet_to_notice"`
	MedianRatio float64   `json:"median_ratio"` // Notice to Detection
	MaxRatio    float64   `json:"max_ratio"`
}

// Intervals that BenchPath measures, each times three.
var pathIntervals = []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}

const (
	pathMult   = 3
	pathTrials = 20
	pathConfig = "bfd: {interval: 100ms, detect-multiplier: 3}" // as in labs/demo/spine.yaml
)

// BenchPath measures on the demo's fabric how long after the last packet a host is
// told of a path that went silent: through BFD's process, the daemon, and a raw frame.
// The bound is the detection time itself.
func BenchPath(ctx context.Context, opt BenchOptions) (res []PathBench, err error) {
	if opt.Trials == 0 {
		opt.Trials = pathTrials
	}
	if opt.Out == nil {
		opt.Out = io.Discard
	}
	topo, err := LoadFS(labs.FS, labs.Demo)
	if err != nil {
		return nil, err
	}
	topo.Name, opt.Own, opt.Replace = benchLab, true, true // replaces only what a killed run left
	lab, err := Up(ctx, topo, opt.Options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lab.Down()) }()
	ag, err := followAgents(lab)
	if err != nil {
		return nil, err
	}
	defer ag.close()
	b := &pathBench{bench: bench{BenchOptions: opt, lab: lab, truth: newDemoTruth()}, agents: ag}
	b.subject, b.host = b.truth.of(benchPulled, "A"), b.truth.of(benchTold, "B")
	config, err := os.ReadFile(lab.ConfigFile("spine"))
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(config), pathConfig) {
		return nil, fmt.Errorf("the configuration of spine has no line %q", pathConfig)
	}
	b.config = string(config)
	b.begun = time.Now()
	for _, iv := range pathIntervals {
		row, err := b.measure(ctx, iv)
		if err != nil {
			return nil, fmt.Errorf("%s x %d: %w", iv, pathMult, err)
		}
		res = append(res, row)
	}
	b.print(res)
	return res, nil
}

type pathBench struct {
	bench
	agents        *agents
	subject, host netip.Addr
	config        string // of spine
	begun         time.Time
	done          int // trials
}

// measure sets the timers at the reflector and makes the path silent again and again.
func (b *pathBench) measure(ctx context.Context, iv time.Duration) (PathBench, error) {
	row := PathBench{Interval: iv.String(), DetectMult: pathMult, Detection: micro(pathMult * iv)}
	line := fmt.Sprintf("bfd: {interval: %s, detect-multiplier: %d}", iv, pathMult)
	if err := os.WriteFile(b.lab.ConfigFile("spine"), []byte(strings.Replace(b.config, pathConfig, line, 1)), 0o600); err != nil {
		return row, err
	}
	if _, err := b.lab.Signal("spine", "inofd", unix.SIGHUP); err != nil {
		return row, err
	}
	var decided, notices []time.Duration
	for i := range b.Trials {
		d, n, err := b.trial(ctx, pathMult*iv)
		if err != nil {
			return row, fmt.Errorf("trial %d: %w", i+1, err)
		}
		b.done++
		b.Progress.At(b.done, len(pathIntervals)*b.Trials, time.Since(b.begun))
		decided, notices = append(decided, d), append(notices, n)
	}
	row.Decided, row.Notice = quantiles(decided), quantiles(notices)
	row.MedianRatio, row.MaxRatio = row.Notice.Median/row.Detection, row.Notice.Max/row.Detection
	return row, nil
}

// trial makes the path silent once, and well again.
func (b *pathBench) trial(ctx context.Context, detection time.Duration) (decided, notice time.Duration, err error) {
	if err := b.paths(ctx, "up", func(s *api.BFDSession) bool {
		return s.Report == "up" && !s.Fault && time.Duration(s.DetectTime) == detection
	}); err != nil {
		return 0, 0, err
	}
	if err := pause(ctx, 2*detection); err != nil {
		return 0, 0, err
	}
	if _, err := b.agents.read(); err != nil { // what came before
		return 0, 0, err
	}
	before, err := b.lastPathEvent(ctx)
	if err != nil {
		return 0, 0, err
	}
	if _, err := b.lab.Forward("spine", false); err != nil {
		return 0, 0, err
	}
	h, err := waitNotice(ctx, b.agents, b.host, b.subject, truth.Inactive)
	if err != nil {
		return 0, 0, err
	}
	ev, err := b.lastPathEvent(ctx)
	if err != nil {
		return 0, 0, err
	}
	if ev.ID == before.ID || ev.Fields["state"] != "down" {
		return 0, 0, fmt.Errorf("tor2 has no event of its path: %+v", ev)
	}
	heard, err := time.Parse(time.RFC3339Nano, ev.Fields["last_heard"])
	if err != nil {
		return 0, 0, err
	}
	// A session that flaps is damped. New processes remember that the path failed, not
	// how often.
	for _, n := range []string{"tor1", "tor2"} {
		if err := b.lab.Stop(n, BFDProcess, StopGrace); err != nil {
			return 0, 0, err
		}
	}
	if _, err := b.lab.Forward("spine", true); err != nil {
		return 0, 0, err
	}
	_, err = waitNotice(ctx, b.agents, b.host, b.subject, truth.Active)
	return ev.Time.Sub(heard), h.At.Sub(heard), err
}

// paths waits until both switches say this of their path.
func (b *pathBench) paths(ctx context.Context, what string, good func(*api.BFDSession) bool) error {
	for _, n := range []string{"tor1", "tor2"} {
		c := api.NewClient(b.lab.Socket(n))
		for end := time.Now().Add(2 * demoWait); ; {
			p, err := api.Ask[api.BFD](ctx, c, "bfd", nil)
			if err == nil && len(p.Sessions) == 1 && good(&p.Sessions[0]) {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("the path of %s is not %s: %+v, %w", n, what, p.Sessions, err)
			}
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastPathEvent is the newest event of tor2's path; zero while there is none.
func (b *pathBench) lastPathEvent(ctx context.Context) (api.Event, error) {
	list, err := api.Ask[[]api.Event](ctx, api.NewClient(b.lab.Socket("tor2")), "events", api.Where("kind", "path"))
	if err != nil || len(list) == 0 {
		return api.Event{}, err
	}
	return list[len(list)-1], nil
}

func (b *pathBench) print(res []PathBench) {
	fmt.Fprintf(b.Out, "%-52s %6s %9s %9s %9s %9s\n", "microseconds, silent path between tor1 and tor2", "trials", "min", "median", "p99", "max")
	for _, r := range res {
		name := fmt.Sprintf("%s x %d: last packet in to decision", r.Interval, r.DetectMult)
		for _, q := range []struct {
			name string
			Quantiles
		}{{name, r.Decided}, {strings.Repeat(" ", len(name)-len("last packet in to decision")) + "last packet in to notice at a host", r.Notice}} {
			fmt.Fprintf(b.Out, "%-52s %6d %9.1f %9.1f %9.1f %9.1f\n", q.name, q.Trials, q.Min, q.Median, q.P99, q.Max)
		}
		fmt.Fprintf(b.Out, "%-52s %6s %9s %8.3fx %9s %8.3fx\n", "   ratio of notice to the detection time", "", "", r.MedianRatio, "", r.MaxRatio)
	}
	j, _ := json.Marshal(res)
	fmt.Fprintln(b.Out, strings.TrimSpace(string(j)))
}
