package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/progress"
	"github.com/openinof/inof/testbed/chaos"
)

// chaosCmd breaks a lab at random and judges what hosts are told.
func (f *labFlags) chaosCmd() *cobra.Command {
	opt := chaos.Options{}
	var kinds string
	var verbose bool
	c := &cobra.Command{Use: "chaos", Short: "Break a lab at random, and judge every notice", Args: arguments(0, 0),
		Long: `Builds a lab of its own with two reflectors and three access switches, and lets faults
strike in rounds: cables pulled and flapping, daemons and host agents killed, ended
and stopped, daemons that can open no more files, packets lost, holes for long ones, and sessions reset on the way to the reflectors, ports shut
because damaged frames arrive and opened again, zones changed meanwhile. Every notice
that a host agent receives is compared with what was done to the lab. After each
round everything is healed, and every host's last word about every other one must be
the truth.

Virtual links have no CRC: frames above the MTU, which the kernel counts as dropped at
the port, stand for damaged ones.

Exits with 1 when a notice was unexpected or missing; then all logs are kept. The
same --seed gives the same faults.`,
		Example: `  inofctl lab chaos
  inofctl lab chaos --duration 30m --faults kill,flap
  inofctl lab chaos --seed 7 -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) // a reader that goes away must not keep the lab from being removed
			ks, err := chaos.ParseKinds(kinds)
			if err != nil {
				return usagef("--faults: %v", err)
			}
			if opt.Duration < time.Second || opt.Storm < time.Second || opt.Settle < time.Second {
				return usagef("--duration %s, --storm %s, --settle %s: want 1s or more each", opt.Duration, opt.Storm, opt.Settle)
			}
			if err := privileged(cmd.Context()); err != nil {
				return err
			}
			if !cmd.Flags().Changed("seed") {
				opt.Seed = rand.Uint64N(1_000_000)
			}
			opt.Options, opt.Kinds = f.options(), ks
			opt.Progress = progress.To(cmd.ErrOrStderr(), "seconds")
			if verbose {
				opt.Out = cmd.ErrOrStderr()
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "seed %d\n", opt.Seed)
			rep, err := chaos.Run(cmd.Context(), opt)
			if asJSON(cmd) {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				err = errors.Join(err, enc.Encode(rep))
			} else {
				rep.Text(cmd.OutOrStdout())
			}
			if err == nil && rep.Failed() {
				err = fmt.Errorf("chaos: %d unexpected and %d missing notices, %d findings", rep.Notices.Unexpected, rep.Notices.Missing, len(rep.Findings))
			}
			return err
		}}
	fl := c.Flags()
	fl.DurationVar(&opt.Duration, "duration", 3*time.Minute, "no round begins after this time")
	fl.DurationVar(&opt.Storm, "storm", 12*time.Second, "how long faults strike in a round")
	fl.DurationVar(&opt.Settle, "settle", 90*time.Second, "how long the fabric may take to be whole after a round")
	fl.Uint64Var(&opt.Seed, "seed", 0, "of the faults (default: a random one, which is printed)")
	fl.StringVar(&kinds, "faults", "", "kinds of faults, separated by commas: "+chaos.KindNames()+" (default: all)")
	fl.StringVar(&opt.Keep, "keep", "", "new directory for the logs of a run that fails (default: one in the temporary directory)")
	fl.BoolVarP(&verbose, "verbose", "v", false, "tell how each round ended")
	return c
}
