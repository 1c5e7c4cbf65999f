package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/openinof/inof/fabric/linux/carrier"
	"github.com/openinof/inof/internal/progress"
	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/testbed/truth"
)

// BenchOptions say how the fault-to-notice benchmark runs.
type BenchOptions struct {
	Options
	Trials int       // 0: 200
	Out    io.Writer // the result; nil: nothing
	// Progress hears of each trial.
	Progress *progress.Teller
	// Relay is the command line of the program that calls RelayMain.
	Relay []string
	// RelayEnv is added to its environment.
	RelayEnv []string
	// BesideBin and BesideEnv ask for a second lab, whose trials come by turns with those of the
	// first: with the programs of another directory, or with more in the environment of its
	// daemons.
	BesideBin string
	BesideEnv map[string]string
	// Telemetry asks for one whose switches are scraped each second, and the one at which the cable
	// is pulled followed by so many streams of gNMI.
	Telemetry int
}

// BenchResult is fault-to-notice beside its bound.
type BenchResult struct {
	// Realtime: the switches' daemons and the relays of the bound ran with SCHED_RR.
	Realtime bool `json:"realtime"`
	// Notice runs from right before the system call that takes the carrier of a
	// port at tor1 to the kernel's receive time stamp of the notice at a host of tor2.
	Notice Quantiles `json:"fault_to_notice"`
	// Loss runs from the same moment until the kernel function at tor1 has noticed the
	// loss of carrier, the part that no control plane can shorten; without trials where nothing can
	// be heard of it.
	Loss Quantiles `json:"fault_to_loss"`
	// LossToNotice is the rest.
	LossToNotice Quantiles `json:"loss_to_notice"`
	// Kernel runs from the system call until a program in tor1 has read the kernel's
	// netlink message about the carrier.
	Kernel Quantiles `json:"fault_to_netlink"`
	// Bound runs from right before a TCP write in tor1, passed on by a relay in spine
	// and one in tor2, to the kernel's receive time stamp of the raw frame at the same host.
	Bound       Quantiles `json:"bound"`
	MedianRatio float64   `json:"median_ratio"` // Notice to Bound
	P99Ratio    float64   `json:"p99_ratio"`
	// LossRatio and LossP99Ratio are LossToNotice to Bound.
	LossRatio    float64 `json:"loss_median_ratio"`
	LossP99Ratio float64 `json:"loss_p99_ratio"`
	// Hops are the way of the notices, step by step.
	Hops []BenchHop `json:"hops"`
	// Beside is a second lab, each trial after one of the first.
	Beside *BenchBeside `json:"beside,omitempty"`
}

// BenchBeside is what another program or configuration needed in the same run.
type BenchBeside struct {
	Notice       Quantiles `json:"fault_to_notice"`
	LossToNotice Quantiles `json:"loss_to_notice"`
	MedianRatio  float64   `json:"median_ratio"` // of its notices to those of the first lab
	P99Ratio     float64   `json:"p99_ratio"`
	LossRatio    float64   `json:"loss_median_ratio"` // of its LossToNotice to the bound
	LossP99Ratio float64   `json:"loss_p99_ratio"`
	// Median and P99 compare its LossToNotice, or its Notice where no loss is heard, with that of
	// the first lab.
	Median BenchRatio `json:"beside_to_first_median"`
	P99    BenchRatio `json:"beside_to_first_p99"`
	Hops   []BenchHop `json:"hops"`
}

// The cable that is pulled, and the host across the fabric that is told.
const (
	benchPulled = "t1" // plane A, at tor1
	benchTold   = "i1" // plane B, at tor2
)

// benchWay is the way of a notice, the reflector in the middle.
var benchWay = []string{"tor1", "spine", "tor2"}

// benchPuller is above the daemons of all of them.
var benchPuller = unitPriority + uint32(len(benchWay))

// benchAside is how long the bench keeps off the processors after a fault: what it waits for
// carries its own time stamp.
const benchAside = 4 * time.Millisecond

// benchApart is at least between two faults of a lab. A port that changes more than four times in a
// second is one that flaps: what it does then is told when nothing else is to do, and the bench
// asks how long it takes until a cable that was pulled is told.
const benchApart = 550 * time.Millisecond

// benchRest is for what the last trial started (acks, registrations) to come to rest.
const benchRest = 20 * time.Millisecond

// benchPort is the TCP port of the relays.
const benchPort = 19999

// Bench measures fault to notice on the demo's fabric, and its bound: a message of
// the same way through the same namespaces without any control plane.
func Bench(ctx context.Context, opt BenchOptions) (res BenchResult, err error) {
	if opt.Trials == 0 {
		opt.Trials = 200
	}
	if opt.Out == nil {
		opt.Out = io.Discard
	}
	if opt.Realtime {
		if err := onOwnThread(func() error { return realtime(benchPuller) }); err != nil {
			fmt.Fprintf(opt.Out, "at normal priority, unlike dist/systemd/inofd.service: %v\n", err)
			opt.Realtime = false
		}
	}
	opt.way = benchWay
	b := &bench{BenchOptions: opt, truth: newDemoTruth()}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ctx, benchLab, opt.BinDir, nil); err != nil {
		return res, err
	}
	if opt.BesideBin != "" || len(opt.BesideEnv) > 0 || opt.Telemetry > 0 {
		env := maps.Clone(opt.BesideEnv)
		if opt.Telemetry > 0 {
			dir, err := os.MkdirTemp("", "inof-bench-")
			if err != nil {
				return res, err
			}
			defer os.RemoveAll(dir)
			if env, err = telemetryEnv(dir); err != nil {
				return res, err
			}
			maps.Copy(env, opt.BesideEnv)
		}
		if err := b.open(ctx, benchLab+"-2", cmp.Or(opt.BesideBin, opt.BinDir), env); err != nil {
			return res, err
		}
		if opt.Telemetry > 0 {
			f, err := follow(ctx, b.sides[1].lab, opt.Telemetry)
			if err != nil {
				return res, err
			}
			begun := time.Now()
			defer func() {
				err = errors.Join(err, f.close())
				fmt.Fprintf(opt.Out, "%d streams, and a scrape each second, took %.0f messages a second\n", opt.Telemetry, float64(f.got.Load())/time.Since(begun).Seconds())
			}()
		}
	}
	if err := b.trials(ctx); err != nil {
		return res, err
	}
	kernel, err := b.kernel(ctx)
	if err != nil {
		return res, err
	}
	first := b.sides[0]
	res = BenchResult{Realtime: opt.Realtime, Notice: quantiles(first.notice), Loss: quantiles(first.loss), LossToNotice: quantiles(first.rest),
		Kernel: quantiles(kernel), Bound: quantiles(b.bounds), Hops: first.hops.rows()}
	res.MedianRatio, res.P99Ratio = res.Notice.Median/res.Bound.Median, res.Notice.P99/res.Bound.P99
	res.LossRatio, res.LossP99Ratio = res.LossToNotice.Median/res.Bound.Median, res.LossToNotice.P99/res.Bound.P99
	if len(b.sides) > 1 {
		side := b.sides[1]
		other := &BenchBeside{Notice: quantiles(side.notice), LossToNotice: quantiles(side.rest), Hops: side.hops.rows()}
		other.LossRatio, other.LossP99Ratio = other.LossToNotice.Median/res.Bound.Median, other.LossToNotice.P99/res.Bound.P99
		other.MedianRatio, other.P99Ratio = other.Notice.Median/res.Notice.Median, other.Notice.P99/res.Notice.P99
		mine, theirs := first.rest, side.rest
		if len(mine) == 0 || len(theirs) == 0 {
			mine, theirs = first.notice, side.notice
		}
		other.Median = ratioOf(mine, theirs, func(q Quantiles) float64 { return q.Median })
		other.P99 = ratioOf(mine, theirs, func(q Quantiles) float64 { return q.P99 })
		res.Beside = other
	}
	b.print(res)
	return res, nil
}

type bench struct {
	BenchOptions
	lab    *Lab // the first
	truth  demoTruth
	sides  []*benchSide
	bounds []time.Duration
}

// benchSide is one lab with its measurements.
type benchSide struct {
	lab                *Lab
	agents             *agents
	cable              *benchCable
	watch              *carrier.Watch // nil: the kernel function cannot be heard
	pulled             time.Time      // the cable, the last time
	notice, loss, rest []time.Duration
	hops               hops
}

// open starts a lab.
func (b *bench) open(ctx context.Context, name, bin string, env map[string]string) error {
	topo, err := LoadFS(labs.FS, labs.Demo)
	if err != nil {
		return err
	}
	opt := b.Options
	topo.Name, opt.BinDir, opt.Own, opt.Replace = name, bin, true, true // replaces only what a killed run left
	for i := range topo.Nodes {
		if n := &topo.Nodes[i]; len(env) > 0 && n.Kind == KindSwitch {
			n.Env = maps.Clone(n.Env)
			if n.Env == nil {
				n.Env = map[string]string{}
			}
			maps.Copy(n.Env, env)
		}
	}
	lab, err := Up(ctx, topo, opt)
	if err != nil {
		return err
	}
	if b.lab == nil {
		b.lab = lab
	}
	s := &benchSide{lab: lab}
	b.sides = append(b.sides, s)
	if s.agents, err = followAgents(lab); err != nil {
		return err
	}
	at := b.truth.info(b.truth.of(benchPulled, "A"))
	if s.cable, err = lab.openCable(at.Switch, at.Port); err != nil {
		return err
	}
	return lab.Do(at.Switch, func() error {
		port, err := net.InterfaceByName(at.Port)
		if err != nil {
			return err
		}
		if s.watch, _ = carrier.Open(carrier.Ways()...); s.watch == nil {
			return nil
		}
		return s.watch.Add(port.Index)
	})
}

func (b *bench) close() (err error) {
	for _, s := range b.sides {
		if s.agents != nil {
			s.agents.close()
		}
		if s.watch != nil {
			s.watch.Close()
		}
		if s.cable != nil {
			s.cable.close()
		}
		err = errors.Join(err, s.lab.Down())
	}
	return err
}

// trials pulls and plugs the cable of each lab again and again, and measures the bound in between.
func (b *bench) trials(ctx context.Context) error {
	bound, err := b.openBound()
	if err != nil {
		return err
	}
	defer bound.close()
	for _, s := range b.sides {
		subject, host := b.truth.of(benchPulled, "A"), b.truth.of(benchTold, "B")
		if _, err := waitNotice(ctx, s.agents, host, subject, truth.Active); err != nil {
			return err
		}
	}
	begun := time.Now()
	for i := range b.Trials {
		b.Progress.At(i, b.Trials, time.Since(begun))
		sides := slices.Clone(b.sides)
		if i%2 == 1 {
			slices.Reverse(sides) // neither has the better place
		}
		for _, s := range sides {
			if err := b.trial(ctx, s); err != nil {
				return fmt.Errorf("lab %s, trial %d: %w", s.lab.Name, i+1, err)
			}
		}
		took, err := bound.trial(ctx)
		if err != nil {
			return fmt.Errorf("bound, trial %d: %w", i+1, err)
		}
		b.bounds = append(b.bounds, took)
	}
	return nil
}

func (b *bench) trial(ctx context.Context, s *benchSide) error {
	subject, host := b.truth.of(benchPulled, "A"), b.truth.of(benchTold, "B")
	at := b.truth.info(subject)
	rest := benchRest
	if b.Telemetry > 0 {
		rest = telemetryRest
	}
	if err := pause(ctx, max(rest, time.Until(s.pulled.Add(benchApart)))); err != nil {
		return err
	}
	if _, err := s.lost(); err != nil { // of the plugging before
		return err
	}
	fault, err := s.cable.pull(b.Realtime)
	if err != nil {
		return err
	}
	s.pulled = fault
	if err := pause(ctx, benchAside); err != nil {
		return err
	}
	h, err := waitNotice(ctx, s.agents, host, subject, truth.Inactive)
	if err != nil {
		return err
	}
	s.notice = append(s.notice, h.At.Sub(fault))
	lost, err := s.lost()
	if err != nil {
		return err
	}
	if !lost.IsZero() {
		s.loss, s.rest = append(s.loss, lost.Sub(fault)), append(s.rest, h.At.Sub(lost))
	}
	way, err := s.way(ctx, b.truth.info(host).Switch, host, subject)
	if err != nil {
		return err
	}
	s.hops.add(fault, lost, way, h.At)
	if _, err := s.lab.Fault(at.Switch, at.Port, true); err != nil {
		return err
	}
	_, err = waitNotice(ctx, s.agents, host, subject, truth.Active)
	return err
}

// lost is when the kernel function noticed the first loss since the last call; zero: it was not
// heard of.
func (s *benchSide) lost() (at time.Time, err error) {
	for s.watch != nil {
		w, ok, err := s.watch.There()
		if err != nil || !ok {
			return at, err
		}
		if at.IsZero() && !w.Carrier {
			at = w.At.Round(0) // the agents' clock is the wall's
		}
	}
	return at, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// waitNotice reads the agents until host is told that subject is in a state.
func waitNotice(ctx context.Context, ag *agents, host, subject netip.Addr, state string) (heard, error) {
	for end := time.Now().Add(demoWait); time.Now().Before(end); {
		hs, err := ag.read()
		if err != nil {
			return heard{}, err
		}
		for _, h := range hs {
			if !h.Again && h.Host == host && h.Subject == subject && h.State == state {
				return h, nil
			}
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return heard{}, err
		}
	}
	return heard{}, fmt.Errorf("%s is not told within %s that %s is %s", host, demoWait, subject, state)
}

func (b *bench) print(res BenchResult) {
	row := func(name string, q Quantiles) {
		fmt.Fprintf(b.Out, "%-52s %6d %9.1f %9.1f %9.1f %9.1f\n", name, q.Trials, q.Min, q.Median, q.P99, q.Max)
	}
	fmt.Fprintf(b.Out, "%-52s %6s %9s %9s %9s %9s\n", "microseconds", "trials", "min", "median", "p99", "max")
	row("cable of tor1 pulled to notice at a host of tor2", res.Notice)
	row("of that, until the kernel of tor1 noticed", res.Loss)
	row("and from there on", res.LossToNotice)
	row("(the cable pulled until netlink told tor1)", res.Kernel)
	row("bound: TCP write at tor1, relayed, raw frame", res.Bound)
	fmt.Fprintf(b.Out, "%-52s %6s %9s %8.2fx %8.2fx\n", "ratio of notice to bound", "", "", res.MedianRatio, res.P99Ratio)
	fmt.Fprintf(b.Out, "%-52s %6s %9s %8.2fx %8.2fx\n", "ratio of what follows the loss to bound", "", "", res.LossRatio, res.LossP99Ratio)
	if o := res.Beside; o != nil {
		row("the same beside it: cable pulled to notice", o.Notice)
		row("of that, after the kernel noticed", o.LossToNotice)
		fmt.Fprintf(b.Out, "%-52s %6s %9s %8.2fx %8.2fx\n", "ratio of that beside it to this", "", "", o.MedianRatio, o.P99Ratio)
		fmt.Fprintf(b.Out, "%-52s %6s %9s %8.2fx %8.2fx\n", "ratio of what follows the loss beside it to bound", "", "", o.LossRatio, o.LossP99Ratio)
		fmt.Fprintf(b.Out, "what follows the loss, beside it to this, and where 90 of 100 such ratios lie: median %v, p99 %v\n", o.Median, o.P99)
	}
	var beside []BenchHop
	if res.Beside != nil {
		beside = res.Beside.Hops
	}
	printHops(b.Out, res.Hops, beside)
}
