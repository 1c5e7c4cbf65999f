package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/testbed/truth"
)

// DemoOptions say how the demo runs.
type DemoOptions struct {
	Options
	Out    io.Writer
	Colour bool // the output goes to a terminal
	Keep   bool // leave the lab up, to look at it
}

// Summary is the demo's last line.
type Summary struct {
	Steps      int     `json:"steps"`
	Expected   int     `json:"notices_expected"`
	Received   int     `json:"notices_received"` // different ones, repeated frames counted once
	Unexpected int     `json:"unexpected"`
	Latency    Latency `json:"fault_to_notice_us"`
	// Found are the faults that no lost carrier tells of: when the first and the last
	// host was told.
	Found []Found `json:"found,omitempty"`
	// Apart is what hard zoning let through; nil: the kernel here does not let a switch filter.
	Apart *Apart `json:"hard_zoning,omitempty"`
}

// Found is a fault that had to be found.
type Found struct {
	Fault string  `json:"fault"`
	By    string  `json:"by"`
	First float64 `json:"first_notice_us"` // from right before the system call that made it
	Last  float64 `json:"last_notice_us"`
}

// Latency is what carrier faults took, in microseconds: from the moment right
// before the system call that pulled a cable to the kernel's receive time stamp of
// the notice at a host.
type Latency struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// Names of the labs that programs build for themselves, so that they never meet
// one that a user built from the same topology.
const (
	demoLab  = "inofctl-demo"
	benchLab = "inofctl-bench"
)

// Times of the demo.
const (
	demoWait    = 30 * time.Second        // for what must come
	demoQuiet   = 400 * time.Millisecond  // for what must not come, after everything expected came
	demoRestart = 2500 * time.Millisecond // the same after a restart: longer than two registrations and a reconnection
)

// demo is one run.
type demo struct {
	DemoOptions
	lab     *Lab
	truth   demoTruth
	agents  *agents
	sum     Summary
	samples []time.Duration
	problem []string
	stop    context.CancelCauseFunc
}

// RunDemo builds labs/demo.clab.yml, lets faults strike, and compares what the
// hosts were told with the demo's own table of truth. The error names what went
// wrong; the Summary is complete in any case.
func RunDemo(ctx context.Context, opt DemoOptions) (sum Summary, err error) {
	topo, err := LoadFS(labs.FS, labs.Demo)
	if err != nil {
		return sum, err
	}
	topo.Name, opt.Own, opt.Replace = demoLab, true, true // replaces only what a killed run left
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	d := &demo{DemoOptions: opt, truth: newDemoTruth(), stop: stop}
	d.intro()
	if d.lab, err = Up(ctx, topo, opt.Options); err != nil {
		return sum, err
	}
	down := false
	defer func() {
		if !down && !opt.Keep {
			err = errors.Join(err, d.lab.Down())
		}
	}()
	if d.agents, err = followAgents(d.lab); err != nil {
		return sum, err
	}
	defer d.agents.close()
	if err := d.steps(ctx); err != nil {
		return d.finish(err), err
	}
	if opt.Keep {
		d.lab.unlock()
		d.say("   the lab stays up in %s; remove it with: inofctl lab down %s", d.lab.Dir, d.lab.Name)
	} else {
		down = true
		if err := d.lab.Down(); err != nil {
			return d.finish(err), err
		}
		d.say("   the lab is gone: processes, namespaces, links and files")
	}
	sum = d.finish(nil)
	if len(d.problem) > 0 {
		return sum, fmt.Errorf("demo: %s", strings.Join(d.problem, "; "))
	}
	return sum, nil
}

func (d *demo) steps(ctx context.Context) error {
	all := make([]netip.Addr, 0, len(d.truth.Places()))
	for _, a := range d.truth.Places() {
		all = append(all, a.Addr)
	}
	steps := []func(context.Context) error{
		func(ctx context.Context) error { return d.register(ctx, all) },
		func(ctx context.Context) error { return d.pull(ctx, "t1", "A") },
		func(ctx context.Context) error { return d.plug(ctx, "t1", "A") },
		func(ctx context.Context) error { return d.pull(ctx, "t2", "B") },
		func(ctx context.Context) error { return d.plug(ctx, "t2", "B") },
		d.ageOut,
		d.comeBack,
		d.zoneJoin,
		d.zoneLeave,
		func(ctx context.Context) error { return d.restart(ctx, "tor1") },
		func(ctx context.Context) error { return d.restart(ctx, "spine") },
		func(ctx context.Context) error { return d.pull(ctx, "t1", "B") },
		func(ctx context.Context) error { return d.plug(ctx, "t1", "B") },
		d.pathFails,
		d.pathWorks,
		d.damaged,
		func(ctx context.Context) error { return d.recover(ctx, "i2", "A") },
		d.flapping,
		func(ctx context.Context) error { return d.recover(ctx, "t2", "A") },
		func(ctx context.Context) error { return d.goodbye(ctx, "t2", "A") },
		func(ctx context.Context) error { return d.goodbye(ctx, "t2", "B") },
		d.keptApart,
	}
	for _, s := range steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s(ctx); err != nil {
			return fmt.Errorf("step %d: %w", d.sum.Steps, err)
		}
	}
	return nil
}

// register waits for what started when the lab came up.
func (d *demo) register(ctx context.Context, all []netip.Addr) error {
	return d.step(ctx, stepPlan{
		title: "Four hosts register eight addresses by LLDP and are told of their zones' members",
		want:  d.truth.comes(all...), about: all, bulk: true,
		then: func() error { return d.everywhere(ctx, len(all)) },
	})
}

// everywhere waits until every switch knows what concerns it.
func (d *demo) everywhere(ctx context.Context, hosts int) error {
	return d.until(ctx, fmt.Sprintf("%d hosts known at spine, tor1 and tor2", hosts), func() error {
		for _, n := range []string{"spine", "tor1", "tor2"} {
			st, err := api.Ask[api.Status](ctx, d.client(n), "status", nil)
			if err != nil {
				return err
			}
			if got := st.Counts.HostsLocal + st.Counts.HostsRemote; got != hosts || !st.Synced {
				return fmt.Errorf("%s knows %d hosts (synced: %v)", n, got, st.Synced)
			}
		}
		return nil
	})
}

func (d *demo) pull(ctx context.Context, host, plane string) error {
	a := d.truth.info(d.truth.of(host, plane))
	return d.step(ctx, stepPlan{
		title: fmt.Sprintf("%s's cable to %s is pulled (%s behind %s %s)", host, a.Switch, a.Addr, a.Switch, a.Port),
		want:  d.truth.goes(truth.LinkDown, a.Addr), about: []netip.Addr{a.Addr}, carrier: true,
		do: func() (time.Time, error) { return d.lab.Fault(a.Switch, a.Port, false) },
	})
}

func (d *demo) plug(ctx context.Context, host, plane string) error {
	a := d.truth.info(d.truth.of(host, plane))
	return d.step(ctx, stepPlan{
		title: fmt.Sprintf("%s's cable to %s is plugged again: it registers, its peers and itself are told", host, a.Switch),
		want:  d.truth.comes(a.Addr), about: []netip.Addr{a.Addr},
		do: func() (time.Time, error) { return d.lab.Fault(a.Switch, a.Port, true) },
	})
}

func (d *demo) ageOut(ctx context.Context) error {
	a := d.truth.info(d.truth.of("i2", "B"))
	return d.step(ctx, stepPlan{
		title: fmt.Sprintf("The agent of %s's %s is killed without a word; its LLDP lives 4 s", a.Node, a.Addr),
		want:  d.truth.goes(truth.AgedOut, a.Addr), about: []netip.Addr{a.Addr},
		do: func() (time.Time, error) { return d.lab.Kill(a.Node, a.Agent) },
	})
}

func (d *demo) comeBack(ctx context.Context) error {
	a := d.truth.info(d.truth.of("i2", "B"))
	return d.step(ctx, stepPlan{
		title: "The agent is started again",
		want:  d.truth.comes(a.Addr), about: []netip.Addr{a.Addr},
		do: func() (time.Time, error) {
			at := time.Now()
			return at, d.lab.Start(ctx, a.Node, a.Agent)
		},
	})
}

func (d *demo) zoneJoin(ctx context.Context) error {
	a := d.truth.of("i2", "B")
	return d.step(ctx, stepPlan{
		title: fmt.Sprintf("inofctl zone member add replication %s (it sees t2 already, through analytics)", a),
		want:  d.truth.join("replication", a), about: []netip.Addr{a},
		do: func() (time.Time, error) { return d.inofctl(ctx, "zone", "member", "add", "replication", a.String()) },
	})
}

func (d *demo) zoneLeave(ctx context.Context) error {
	a := d.truth.of("i2", "B")
	return d.step(ctx, stepPlan{
		title: fmt.Sprintf("inofctl zone member remove replication %s", a),
		want:  d.truth.leave("replication", a), about: []netip.Addr{a},
		do: func() (time.Time, error) {
			return d.inofctl(ctx, "zone", "member", "remove", "replication", a.String())
		},
	})
}

// restart stops and starts a daemon. Nothing changed for any host, so no notice may come.
func (d *demo) restart(ctx context.Context, node string) error {
	what := "an access switch"
	if node == "spine" {
		what = "the reflector"
	}
	return d.step(ctx, stepPlan{
		title: fmt.Sprintf("The daemon of %s, %s, is restarted: nobody may be told anything", node, what),
		want:  truth.Notices{}, quiet: demoRestart,
		do: func() (time.Time, error) {
			at := time.Now()
			if err := d.lab.Stop(node, "inofd", StopGrace); err != nil {
				return at, err
			}
			return at, d.lab.Start(ctx, node, "inofd")
		},
		then: func() error {
			if err := d.established(ctx); err != nil {
				return err
			}
			return d.everywhere(ctx, len(d.truth.Places()))
		},
	})
}

// established waits for both sessions at the reflector.
func (d *demo) established(ctx context.Context) error {
	return d.until(ctx, "two established sessions at spine", func() error {
		peers, err := api.Ask[[]api.Peer](ctx, d.client("spine"), "peers", nil)
		if err != nil {
			return err
		}
		n := 0
		for _, p := range peers {
			if p.State == api.PeerEstablished {
				n++
			}
		}
		if n != 2 {
			return fmt.Errorf("%d are established", n)
		}
		return nil
	})
}

// goodbye lets an agent leave in good order: it says so by LLDP with TTL 0.
func (d *demo) goodbye(ctx context.Context, host, plane string) error {
	a := d.truth.info(d.truth.of(host, plane))
	return d.step(ctx, stepPlan{
		title: fmt.Sprintf("%s shuts its port in plane %s down in good order", host, plane),
		want:  d.truth.goes(truth.AgedOut, a.Addr), about: []netip.Addr{a.Addr},
		do: func() (time.Time, error) {
			at := time.Now()
			return at, d.lab.Stop(host, a.Agent, StopGrace)
		},
	})
}

func (d *demo) socket(node string) string {
	return filepath.Join(d.lab.NodeDir(node), "run", "inofd.sock")
}

// client asks a switch's daemon; the socket is a file, so no namespace matters.
func (d *demo) client(node string) *api.Client { return api.NewClient(d.socket(node)) }

// inofctl runs the operator's tool on the reflector.
func (d *demo) inofctl(ctx context.Context, args ...string) (time.Time, error) {
	bin, err := d.lab.binary("inofctl")
	if err != nil {
		return time.Time{}, err
	}
	at := time.Now()
	_, err = d.lab.Exec(ctx, "spine", append([]string{bin, "--socket", d.socket("spine")}, args...)...)
	return at, err
}

// until waits for a condition that check tells by a nil error.
func (d *demo) until(ctx context.Context, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, demoWait)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", demoWait, what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
