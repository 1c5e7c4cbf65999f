package testbed

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/truth"
)

// This file holds the demo's faults that no lost carrier tells of.

// Numbers of labs/demo/tor1.yaml and spine.yaml.
const (
	demoDamaged = 5 // frames; 3 in 10 s trip
	demoFlaps   = 5 // changes of carrier in 10 s trip
	demoDetect  = "BFD between tor1 and tor2, 100 ms x 3"
)

// pathFails has spine drop what the switches send each other; every carrier stays.
func (d *demo) pathFails(ctx context.Context) error {
	if err := d.pathState(ctx, "up"); err != nil {
		return err
	}
	return d.step(ctx, stepPlan{
		title: "The path between tor1 and tor2 goes silent: spine drops what it should pass on, no carrier is lost",
		want:  d.truth.path(false), about: d.all(),
		do:    func() (time.Time, error) { return d.lab.Forward("spine", false) },
		fault: "silent path", by: demoDetect,
	})
}

func (d *demo) pathWorks(ctx context.Context) error {
	return d.step(ctx, stepPlan{
		title: "spine passes packets on again: the path is told once it has worked for the hold-up time of 1 s",
		want:  d.truth.path(true), about: d.all(),
		do:   func() (time.Time, error) { return d.lab.Forward("spine", true) },
		then: func() error { return d.pathState(ctx, "up") },
	})
}

// pathState waits until both switches report this of the path.
func (d *demo) pathState(ctx context.Context, report string) error {
	for _, n := range []string{"tor1", "tor2"} {
		err := d.until(ctx, n+" to report its path "+report, func() error {
			b, err := api.Ask[api.BFD](ctx, d.client(n), "bfd", nil)
			if err != nil {
				return err
			}
			if len(b.Sessions) != 1 || b.Sessions[0].Report != report {
				return fmt.Errorf("%d sessions: %+v", len(b.Sessions), b.Sessions)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// damaged has a host send frames that its switch counts as damaged: the port is shut.
func (d *demo) damaged(ctx context.Context) error {
	a := d.truth.info(d.truth.of("i2", "A"))
	return d.step(ctx, stepPlan{
		title: fmt.Sprintf("%s sends %d frames that %s refuses, counted as CRC errors (a veth has no CRC: frames above its MTU stand for damaged ones)", a.Node, demoDamaged, a.Switch),
		want:  d.truth.goes(truth.Damaged, a.Addr), about: []netip.Addr{a.Addr},
		do:    func() (time.Time, error) { return d.lab.Damage(a.Node, a.NIC, demoDamaged) },
		then:  func() error { return d.errorDown(ctx, a, "crc") },
		fault: fmt.Sprintf("damaged frames at %s %s", a.Switch, a.Port), by: "the kernel's rx_dropped of the port, named as its CRC counter; error-down crc, 3 in 10 s",
	})
}

// flapping pulls and plugs a cable until the port is shut. The host's agent is held
// meanwhile: it registers within a millisecond or two of each contact, and everybody
// would be told of each, which is true and not what this step is about.
func (d *demo) flapping(ctx context.Context) error {
	a := d.truth.info(d.truth.of("t2", "A"))
	return d.step(ctx, stepPlan{
		title: fmt.Sprintf("%s's cable to %s has a loose contact: %d changes of carrier (the agent is held, else it would register at each)", a.Node, a.Switch, demoFlaps),
		want:  d.truth.goes(truth.LinkDown, a.Addr), about: []netip.Addr{a.Addr},
		do: func() (time.Time, error) {
			if at, err := d.lab.Signal(a.Node, a.Agent, unix.SIGSTOP); err != nil {
				return at, err
			}
			var first time.Time
			for i := range demoFlaps {
				at, err := d.lab.Fault(a.Switch, a.Port, i%2 == 1)
				if i == 0 {
					first = at
				}
				if err != nil {
					return first, err
				}
				if err := pause(ctx, 30*time.Millisecond); err != nil {
					return first, err
				}
			}
			_, err := d.lab.Fault(a.Switch, a.Port, true) // the contact is good again, the port stays shut
			return first, err
		},
		then: func() error {
			if err := d.errorDown(ctx, a, "link-flap"); err != nil {
				return err
			}
			_, err := d.lab.Signal(a.Node, a.Agent, unix.SIGCONT)
			return err
		},
		fault: fmt.Sprintf("flapping cable at %s %s", a.Switch, a.Port), by: "carrier; then error-down link-flap, 5 changes in 10 s, shuts the port",
	})
}

// errorDown waits until a port is shut for a cause, and says when that was.
func (d *demo) errorDown(ctx context.Context, a truth.Place, cause string) error {
	return d.until(ctx, fmt.Sprintf("error-down of %s %s", a.Switch, a.Port), func() error {
		list, err := api.Ask[[]api.ErrorDown](ctx, d.client(a.Switch), "error-down", nil)
		if err != nil {
			return err
		}
		for _, e := range list {
			if e.Port == a.Port && e.Cause == cause {
				d.say("   %s inofctl show error-down at %s: port %s is shut for %s, recovery by hand", d.colour(dim, "seen:"), a.Switch, e.Port, e.Cause)
				return nil
			}
		}
		return fmt.Errorf("it shows %+v", list)
	})
}

// recover opens a port that was shut: its host comes back.
func (d *demo) recover(ctx context.Context, host, plane string) error {
	a := d.truth.info(d.truth.of(host, plane))
	return d.step(ctx, stepPlan{
		title: fmt.Sprintf("inofctl port recover %s at %s: %s registers, its peers and itself are told", a.Port, a.Switch, a.Node),
		want:  d.truth.comes(a.Addr), about: []netip.Addr{a.Addr},
		do: func() (time.Time, error) {
			at := time.Now()
			return at, api.RecoverPort.Do(ctx, api.NewClient(d.socket(a.Switch)), api.PortName{Port: a.Port})
		},
	})
}

func (d *demo) all() []netip.Addr {
	var out []netip.Addr
	for _, a := range d.truth.Places() {
		out = append(out, a.Addr)
	}
	return out
}
