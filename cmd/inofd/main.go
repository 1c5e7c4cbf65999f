// Command inofd is the iNOF daemon of one switch.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/fabric/linux"
	"github.com/openinof/inof/fabric/linux/bpfpins"
	"github.com/openinof/inof/fabric/linux/zonefilter"
	"github.com/openinof/inof/fabric/sonic"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/cgroup"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/daemon"
	"github.com/openinof/inof/internal/journald"
	"github.com/openinof/inof/internal/logbound"
	"github.com/openinof/inof/internal/manual"
	"github.com/openinof/inof/model/remote"
)

// clock is what the daemon reads the time from; nil: the system's. Only a build for tests sets it.
var clock func() time.Time

func main() {
	if err := command().Execute(); err != nil {
		text := "inofd: " + err.Error()
		if journald.Here() { // each line of it is a record of its own
			prefix := journald.Prefix(slog.LevelError)
			text = prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
		}
		fmt.Fprintln(os.Stderr, text)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use: "inofd", Short: "iNOF daemon of a switch",
		Long:         "inofd learns storage hosts by LLDP, watches their ports, and tells every host of the same zones within a millisecond or so when one of them cannot be reached.",
		SilenceUsage: true, SilenceErrors: true, Version: api.VersionText(),
	}
	var from source
	run := &cobra.Command{
		Use: "run", Short: "run until SIGTERM; SIGHUP reads the configuration again", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return run(&from) },
	}
	from.flags(run)
	check := checkCommand()
	root.AddCommand(run, check, bfdCommand(), manual.Command("8", api.Version))
	return root
}

func run(from *source) error {
	hup := make(chan os.Signal, 1) // from the first moment on: the default is to die
	signal.Notify(hup, syscall.SIGHUP)
	cfg, err := from.load()
	if err != nil {
		return err
	}
	limit, err := cgroup.MemoryLimit()
	if err != nil {
		return err
	}
	daemon.TuneRuntime(limit)
	level := new(slog.LevelVar)
	level.Set(cfg.Log.Level)
	log := newLog(cfg.Log.Format, level)
	env := daemon.Env{Log: log, Now: clock, Level: level, Ready: ready, Paths: paths(cfg), Memory: limit, Unsaved: unsaved(cfg.Management.Socket)}
	if cfg.Device.Roles.Access() {
		if err := openDataplane(cfg, &env, log); err != nil {
			return fmt.Errorf("dataplane: %w", err)
		}
	}
	d, err := daemon.New(cfg, env)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	told := make(chan struct{})
	go func() { defer close(told); reloads(ctx, d, hup) }()
	go watchdog(ctx, d)
	err = d.Run(ctx)
	stop()
	<-told // that the daemon stops; it must not end before that was said
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// openDataplane makes the dataplane that the configuration asks for.
func openDataplane(cfg *config.Config, env *daemon.Env, log *slog.Logger) error {
	if cfg.Dataplane == "model" {
		dp, err := remote.New(remote.Config{Socket: cfg.Model.Socket, Device: cfg.Model.Device, Access: cfg.Ports.Access})
		if err != nil {
			return err
		}
		env.Dataplane, env.Stats = dp, func() any { return dp.Stats() }
		return nil
	}
	dp, err := linux.New(linux.Config{Access: cfg.Ports.Access, Counters: cfg.Ports.Counters, Carrier: cfg.Ports.Carrier, Log: log})
	if err != nil {
		return err
	}
	env.Dataplane, env.Stats = dp, func() any { return dp.Stats() }
	address := cfg.Ports.SONiC
	env.HardZoning = func(cfg hardzone.Config) (hardzone.Dataplane, error) { return openFilter(cfg, address) }
	env.EndHardZoning = func(cfg hardzone.Config) error { return endFilter(cfg, address) }
	if address == "" { // else an ASIC forwards, and what the kernel drops says nothing
		guard := &portGuard{pins: cfg.HardZoning.Pins}
		env.PortGuard, env.Fence = guard.ports, guard.fence
	} else {
		switchDP := sonic.New(dp, address, log)
		env.Dataplane = switchDP
		env.Stats = func() any { return map[string]any{"linux": dp.Stats(), "sonic": switchDP.Stats()} }
		env.Fence = func() (fence.Dataplane, error) { return opened[fence.Dataplane](sonic.OpenFence(address)) }
		if cfg.Ports.SONiCGuard {
			env.PortGuard = func() (fabric.PortGuard, error) { return opened[fabric.PortGuard](sonic.OpenGuard(address)) }
		} else if err := sonic.RemoveGuard(address); err != nil { // of a process before this one
			log.Warn("rules that keep LLDP and SNSD frames on their link may be left", "err", err)
		}
	}
	return nil
}

// opened returns nothing, not a nil pointer, where there is an error.
func opened[I any, T comparable](v T, err error) (i I, _ error) {
	var none T
	if v == none {
		return i, err
	}
	return any(v).(I), err
}

// openFilter makes what keeps hosts apart: rules of the ASIC where it forwards, else programs in
// the kernel.
func openFilter(cfg hardzone.Config, sonicAddress string) (hardzone.Dataplane, error) {
	if inASIC(cfg, sonicAddress) {
		if sonicAddress == "" {
			return nil, errors.New("hard-zoning.attach asic needs ports.sonic-redis")
		}
		a, err := sonic.OpenACL(cfg, sonicAddress)
		if a == nil {
			return nil, err
		}
		return a, err
	}
	f, err := zonefilter.Open(cfg)
	if f == nil {
		return nil, err
	}
	return f, err
}

// endFilter takes away what a process before this one has left.
func endFilter(cfg hardzone.Config, sonicAddress string) error {
	if inASIC(cfg, sonicAddress) && sonicAddress != "" {
		return sonic.RemoveACL(sonicAddress)
	}
	return bpfpins.Remove(cfg.Pins)
}

func inASIC(cfg hardzone.Config, sonicAddress string) bool {
	return cfg.Attach == hardzone.AttachASIC || cfg.Attach == hardzone.AttachAuto && sonicAddress != ""
}

// newLog writes to standard error, within bounds.
func newLog(format string, level *slog.LevelVar) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	here := journald.Here()
	if here && format != "json" { // the journal has these itself
		opts.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return a
		}
	}
	lines := func(w io.Writer) slog.Handler {
		if format == "json" {
			return slog.NewJSONHandler(w, opts)
		}
		return slog.NewTextHandler(w, opts)
	}
	handler := lines(os.Stderr)
	if here {
		handler = journald.New(os.Stderr, lines)
	}
	return slog.New(logbound.New(handler))
}
