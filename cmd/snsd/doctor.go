package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// advice is one thing that doctor found.
type advice struct {
	Level string `json:"level"` // ok, hint or bad
	Text  string `json:"text"`
}

// doctorCmd says what of this host stands in the way of a fast fail-over. It changes nothing.
func doctorCmd() *cobra.Command {
	socket, output := hostagent.DefaultSocket, "text"
	c := &cobra.Command{Use: "doctor", Short: "Say what of this host stands in the way of a fast fail-over, and what would help", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := diagnose(hostkernel.Tree{}, hostkernel.CanDestroy)
			var f foresight
			err := ask(cmd.Context(), socket, "foresight", 2*foreseeWithin, &f)
			return prescribe(cmd.OutOrStdout(), output, append(list, adviseFences(&f, err)...))
		}}
	c.Flags().StringVar(&socket, "socket", socket, "of the agent")
	c.Flags().StringVarP(&output, "output", "o", output, "text or json")
	return c
}

// prescribe writes what was found; it is an error if something is bad.
func prescribe(out io.Writer, format string, found []advice) error {
	switch format {
	case "json":
		if err := json.NewEncoder(out).Encode(found); err != nil {
			return err
		}
	case "text":
		for _, a := range found {
			fmt.Fprintf(out, "%-4s %s\n", a.Level, a.Text)
		}
	default:
		return fmt.Errorf("--output %q: want text or json", format)
	}
	bad := 0
	for _, a := range found {
		if a.Level == "bad" {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of these keep I/O from leaving a dead path at once", bad)
	}
	return nil
}

// diagnose looks at a host.
func diagnose(t hostkernel.Tree, canDestroy func() error) (list []advice) {
	say := func(level, format string, args ...any) {
		list = append(list, advice{level, fmt.Sprintf(format, args...)})
	}
	switch on, err := t.Multipath(); {
	case errors.Is(err, fs.ErrNotExist):
		say("bad", "this kernel has no NVMe: modprobe nvme-tcp (or nvme-rdma)")
		return list
	case err != nil:
		say("bad", "native multipath: %v", err)
	case !on:
		say("bad", "native multipath is off: set nvme_core.multipath=Y and restart; I/O of a dead path has nowhere to go")
	default:
		say("ok", "native multipath is on")
	}
	if err := canDestroy(); err != nil {
		say("bad", "sockets cannot be destroyed: %v; paths are reset instead, which keeps a process for a minute", err)
	} else {
		say("ok", "sockets can be destroyed")
	}
	switch keys, err := t.Options(); {
	case err != nil:
		say("bad", "connecting: %v", err)
	case len(keys) == 0:
		say("hint", "this kernel does not say which connect options it knows: one that it does not know makes a connect fail")
	default:
		say("ok", "the kernel knows %d connect options", len(keys))
	}
	switch id, err := t.IdentityThere(); {
	case err != nil:
		say("bad", "%v", err)
	case id.Doubt() != "":
		say("hint", "%s", id.Doubt())
	case id.NQN != "" && id.ID != "":
		say("ok", "hostnqn and hostid name one host")
	}
	cs, err := t.Controllers()
	if err != nil {
		say("hint", "controllers: %v", err)
	}
	planes := map[string]map[netip.Addr]bool{}
	for i := range cs {
		c := &cs[i]
		if c.Discovery {
			continue
		}
		if planes[c.NQN] == nil {
			planes[c.NQN] = map[netip.Addr]bool{}
		}
		planes[c.NQN][c.Source] = true
		adviseTimes(t, c, say)
	}
	for nqn, sources := range planes {
		if len(sources) < 2 {
			say("bad", "%s has paths from one address of this host only: nothing to fail over to", nqn)
		}
	}
	adviseModule(t, say)
	return list
}

// adviseFences says what a running agent foresees of the fences of its paths.
func adviseFences(f *foresight, err error) (list []advice) {
	say := func(level, format string, args ...any) {
		list = append(list, advice{level, fmt.Sprintf(format, args...)})
	}
	if err != nil {
		say("hint", "fences: %v", err)
		return list
	}
	if f.Mode == string(hostagent.ModeObserve) {
		say("hint", "mode: observe: no path is left and no controller connected; mode: act ends that")
	}
	for _, p := range f.Ports {
		for _, w := range p.Warnings {
			say("bad", "%s: %s", p.Interface, w)
		}
	}
	for _, c := range f.Controllers {
		level := "ok"
		if c.Level < snsd.FenceArray {
			level = "hint"
		}
		best := "not fenced"
		if c.Level != snsd.FenceNone {
			best = fmt.Sprintf("fenced: %v by %v", c.Level, c.Way)
		}
		say(level, "%s (%v to %v): %s at best, fence: %v. Stall: %s. Data: %s", c.Controller, c.Source, c.Target, best, f.Fence, c.Stall, c.Data)
		for _, why := range c.Lacks {
			say(level, "%s: %s", c.Controller, why)
		}
	}
	return list
}

// adviseTimes looks at the times of one controller.
func adviseTimes(t hostkernel.Tree, c *hostkernel.Controller, say func(string, string, ...any)) {
	if v, err := t.Attribute(c, "ctrl_loss_tmo"); err == nil && v == "600" {
		say("hint", "%s: ctrl_loss_tmo 600: after ten minutes without its path the controller is gone for good; 1800, or -1, outlives a repair", c.Name())
	}
	if v, err := t.Attribute(c, "fast_io_fail_tmo"); err == nil && v == "off" {
		say("hint", "%s: fast_io_fail_tmo off: without any path I/O waits for ctrl_loss_tmo; with 60 it fails after a minute, for a cluster that moves elsewhere", c.Name())
	}
	if v, err := t.Attribute(c, "kato"); err == nil && v == "0" {
		say("hint", "%s: no keep-alive: what no switch tells of is never found", c.Name())
	}
}

// adviseModule looks at what all controllers have in common.
func adviseModule(t hostkernel.Tree, say func(string, string, ...any)) {
	if v, err := t.Parameter("io_timeout"); err == nil && v == "30" {
		say("hint", "nvme_core.io_timeout 30: I/O on a path that no notice names waits for up to 30 s; 10 is enough for flash arrays")
	}
	if v, err := t.Parameter("admin_timeout"); err == nil && v == "60" {
		say("hint", "nvme_core.admin_timeout 60: over RDMA a path that was reset while it was dead comes back after a minute; 10 makes that ten seconds")
	}
}
