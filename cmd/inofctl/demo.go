package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/testbed"
)

// demoLimit ends a demo that hangs.
const demoLimit = 5 * time.Minute

// newDemoCmd runs the demo of package testbed.
func newDemoCmd() *cobra.Command {
	opt := testbed.DemoOptions{}
	c := &cobra.Command{Use: "demo", Short: "Watch a fabric on real kernel links: hosts register, faults strike, notices arrive", Args: arguments(0, 0),
		Long: `Builds a spine, two access switches and four storage hosts from network namespaces,
lets faults strike, and compares what every host is told with a table of truth.

Works as root, or in a user namespace where the kernel allows that. The last line is
one JSON object; the exit code is 0 only if every notice came and no other did.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) // a reader that goes away must not keep the lab from being removed
			if err := privileged(cmd.Context()); err != nil {
				return err
			}
			opt.Out = cmd.OutOrStdout()
			opt.Colour = colourful(os.Stdout)
			ctx, cancel := context.WithTimeout(cmd.Context(), demoLimit)
			defer cancel()
			_, err := testbed.RunDemo(ctx, opt)
			return err
		}}
	c.Flags().StringVar(&opt.BinDir, "bin-dir", "", "directory of inofd, inofctl and snsd (default: beside inofctl)")
	c.Flags().StringVar(&opt.Root, "root", "", "directory that holds the lab while the demo runs")
	c.Flags().BoolVar(&opt.Keep, "keep", false, "leave the lab up at the end; lab down removes it")
	return c
}

// colourful reports whether f is a terminal that may be coloured (https://no-color.org).
func colourful(f *os.File) bool {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
