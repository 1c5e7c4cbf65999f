package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/internal/progress"
	"github.com/openinof/inof/testbed"
	"github.com/openinof/inof/testbed/agentlog"
	"github.com/openinof/inof/testbed/truth"
)

// Options say how a run is made. The zero value, but for Out, is right for users.
type Options struct {
	testbed.Options
	Name     string        // of the lab; empty: inofctl-chaos
	Duration time.Duration // no round begins after it; 0: 3 minutes
	Storm    time.Duration // how long faults strike in a round; 0: 12 s
	Settle   time.Duration // how long a round may take to heal; 0: 90 s
	Seed     uint64
	Kinds    []Kind // empty: all
	// ClockSteps says that the daemons are built with the tag clocksteps: their clocks can be set.
	ClockSteps bool
	Keep       string // directory for the logs of a run that fails; empty: a new one in the temporary directory
	Out        io.Writer
	Progress   *progress.Teller // hears of the time that is left
}

// quietFor is how long after everything was told nothing may follow: longer than two
// registrations, two keepalives, and the time for which repeated queries are put off.
const quietFor = 2500 * time.Millisecond

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	set(&o.Duration, 3*time.Minute)
	set(&o.Storm, 12*time.Second)
	set(&o.Settle, 90*time.Second)
	set(&o.ReadyTimeout, time.Minute)
	if o.Name == "" {
		o.Name = labName
	}
	if len(o.Kinds) == 0 {
		o.Kinds = Kinds
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	o.Own, o.Replace = true, true // replaces only what a killed run left
	return o
}

// runner is one run.
type runner struct {
	Options
	fab    *fabric
	lab    *testbed.Lab
	filter *packetFilter
	output agentlog.Follower
	report Report
	begun  time.Time

	zoneTurn sync.Mutex // zone changes follow each other
	mu       sync.Mutex // truth, judge and what follows
	truth    *truth.History
	judge    *truth.Judge
	aways    []*away
	done     []string // faults of all rounds as they were done
	clean    []time.Duration
	dirty    []time.Duration
	settled  []time.Duration
}

// Run builds the lab, lets faults strike, judges, and takes the lab away. The report
// is complete in any case; the error tells why the run could not go on, and nothing
// about what it found.
func Run(ctx context.Context, opt Options) (*Report, error) {
	r := &runner{Options: opt.withDefaults()}
	r.report = Report{Seed: r.Seed, Faults: map[Kind]int{}, LeftOut: []string{}, Findings: []truth.Finding{}}
	r.leaveOut()
	if len(r.Kinds) == 0 {
		return &r.report, errors.New("no fault of the kinds asked for can be made here")
	}
	var err error
	if r.fab, err = loadFabric(r.Name); err != nil {
		return &r.report, err
	}
	remove, err := r.clocks()
	if err != nil {
		return &r.report, err
	}
	defer remove()
	r.begin()
	r.NoDaemons = true // until their configuration is tuned
	ejectDisks(r.Options.Options, r.Name)
	defer ejectDisks(r.Options.Options, r.Name)
	if r.lab, err = testbed.Up(ctx, r.fab.topo, r.Options.Options); err != nil {
		return &r.report, err
	}
	r.filter = &packetFilter{lab: r.lab, device: r.fab.device, rules: map[string][]Fault{}}
	if err = r.start(ctx); err == nil {
		err = r.rounds(ctx)
	}
	r.finish(err)
	ejectDisks(r.Options.Options, r.Name)
	return &r.report, errors.Join(err, r.lab.Down())
}

// start tunes the configuration of the switches and starts all programs.
func (r *runner) start(ctx context.Context) error {
	if err := r.disks(); err != nil {
		return err
	}
	for _, n := range r.fab.reflectors {
		if err := r.configure(n, tune); err != nil {
			return err
		}
	}
	for _, n := range r.fab.switches {
		if err := r.configure(n, tuneAccess); err != nil {
			return err
		}
	}
	for _, n := range r.lab.Nodes() {
		if err := r.lab.Start(ctx, n, ""); err != nil {
			return err
		}
	}
	return nil
}

// configure adds to the configuration of a node.
func (r *runner) configure(node, text string) error {
	f, err := os.OpenFile(r.lab.ConfigFile(node), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// leaveOut drops the kinds of faults that this machine cannot make.
func (r *runner) leaveOut() {
	if !r.ClockSteps && slices.Contains(r.Kinds, Clock) {
		r.report.LeftOut = append(r.report.LeftOut, string(Clock)+": inofd is not built with -tags clocksteps")
		r.Kinds = slices.DeleteFunc(slices.Clone(r.Kinds), func(k Kind) bool { return k == Clock })
	}
	if _, err := exec.LookPath("nft"); err == nil {
		return
	}
	needs := []Kind{Drop, Cut, Path, Hole}
	for _, k := range needs {
		if slices.Contains(r.Kinds, k) {
			r.report.LeftOut = append(r.report.LeftOut, string(k)+": nft(8) is not installed")
		}
	}
	r.Kinds = slices.DeleteFunc(slices.Clone(r.Kinds), func(k Kind) bool { return slices.Contains(needs, k) })
}

// begin starts the truth: nobody was told anything yet.
func (r *runner) begin() {
	now := time.Now()
	r.begun = now
	zones := baseZones()
	for _, z := range extraZones {
		zones[z] = nil
	}
	r.truth = truth.NewHistory(r.fab.places, zones, now)
	r.judge = truth.NewJudge(r.truth, now)
	r.judge.News, r.judge.Lost, r.judge.Restarted, r.judge.Paused = r.news, r.lostQuery, r.restarted, r.paused
	for _, p := range r.fab.places {
		r.truth.SetAgent(p.Addr, true, now)
	}
}

// rounds runs until the time is over, or something was wrong.
func (r *runner) rounds(ctx context.Context) error {
	defer r.output.Close()
	for _, a := range r.fab.targets().agents {
		p, err := r.lab.Process(a.node, a.name)
		if err != nil {
			return err
		}
		r.output.Add(a.String(), p.Output)
	}
	for _, z := range extraZones {
		if err := r.setZone(ctx, z, nil); err != nil {
			return err
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.clocksStep(); err != nil {
		return err
	}
	r.begun = time.Now()
	for !r.failed() && time.Since(r.begun) < r.Duration {
		r.report.Rounds++
		spent := time.Since(r.begun)
		r.Progress.At(int(spent.Seconds()), int(r.Duration.Seconds()), spent)
		if err := r.round(ctx); err != nil {
			return err
		}
	}
	return nil
}

// failed reports whether something wrong was found.
func (r *runner) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.judge.Findings) > 0 || r.judge.Tally.Unexpected > 0
}

// round lets faults strike and heals them.
func (r *runner) round(ctx context.Context) error {
	length := min(r.Storm, max(time.Until(r.begun.Add(r.Duration)), time.Second))
	plan := planRound(r.Seed, r.report.Rounds, r.Storm, r.Kinds, r.fab.targets())
	plan = slices.DeleteFunc(plan, func(f Fault) bool { return f.At > length })
	r.report.last = nil
	storm := time.Now()
	var wg sync.WaitGroup
	errs := make(chan error, len(plan)+1)
	turns := make(map[string]*sync.Mutex)
	for _, f := range plan {
		if turns[f.target()] == nil {
			turns[f.target()] = new(sync.Mutex)
		}
	}
	follow, cancel := context.WithCancel(ctx)
	followed := make(chan error, 1)
	go func() { followed <- r.follow(follow) }()
	for _, f := range plan {
		r.sleep(ctx, time.Until(storm.Add(f.At)))
		if ctx.Err() != nil {
			break
		}
		r.report.Faults[f.Kind]++
		turn := turns[f.target()]
		wg.Go(func() {
			turn.Lock()
			defer turn.Unlock()
			from := time.Now()
			err := r.strike(ctx, f)
			r.log(f, from, err)
			if err != nil {
				errs <- fmt.Errorf("%s: %w", f, err)
			}
		})
	}
	wg.Wait()
	cancel()
	close(errs)
	all := []error{ctx.Err(), <-followed}
	for err := range errs {
		all = append(all, err)
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	return r.settle(ctx)
}

// log keeps what was done.
func (r *runner) log(f Fault, from time.Time, err error) {
	s := fmt.Sprintf("round %d %s..%s %s", r.report.Rounds, from.Format("15:04:05.000000"), time.Now().Format("15:04:05.000000"), f)
	if err != nil {
		s += ": " + err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, s)
	r.report.last = append(r.report.last, s)
}

// follow reads what agents print until ctx ends.
func (r *runner) follow(ctx context.Context) error {
	for {
		if err := r.read(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(30 * time.Millisecond):
		}
	}
}

func (r *runner) read() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.Read(func(agent string, l agentlog.Line) { r.judge.Hear(r.fab.owns(agent), l) })
}

// lostQuery reports whether the switch of a host had no daemon around a moment: a
// query is lost too when the daemon dies before it has read it.
func (r *runner) lostQuery(host netip.Addr, asked time.Time) bool {
	p, _ := r.truth.Place(host)
	return slices.ContainsFunc(r.aways, func(a *away) bool {
		return a.daemon && a.node == p.Switch && asked.After(a.from.Add(-diedBefore)) && (a.to.IsZero() || asked.Before(a.to))
	})
}

// restarted reports whether the switch of a host was without its daemon in this round.
func (r *runner) restarted(host netip.Addr) bool {
	p, _ := r.truth.Place(host)
	return slices.ContainsFunc(r.aways, func(a *away) bool {
		return a.daemon && a.node == p.Switch && (a.to.IsZero() || a.to.After(r.judge.Begin()))
	})
}

// paused reports whether the switch of a subject was stopped in this round.
func (r *runner) paused(subject netip.Addr) bool {
	p, _ := r.truth.Place(subject)
	return slices.ContainsFunc(r.aways, func(a *away) bool {
		return a.node == p.Switch && (a.to.IsZero() || a.to.After(r.judge.Begin()))
	})
}

// diedBefore is how long a starved daemon may leave a query unread.
const diedBefore = 5 * time.Second

// news measures how long a pulled cable took to be told.
func (r *runner) news(n truth.Notice, since, at time.Time) {
	if since.IsZero() || n.Reason != truth.LinkDown {
		return
	}
	host, _ := r.truth.Place(n.Host)
	subject, _ := r.truth.Place(n.Subject)
	disturbed := slices.ContainsFunc(r.aways, func(a *away) bool {
		concerned := a.node == host.Switch || a.node == subject.Switch || a.node == host.Node || slices.Contains(r.fab.reflectors, a.node)
		return concerned && a.from.Before(at) && (a.to.IsZero() || a.to.Add(aftermath).After(since))
	})
	if disturbed {
		r.dirty = append(r.dirty, at.Sub(since))
	} else {
		r.clean = append(r.clean, at.Sub(since))
	}
}

// aftermath is how long after a disturbance sessions may still be missing.
const aftermath = 2 * time.Second
