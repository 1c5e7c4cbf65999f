package main

import (
	"os"
	"os/signal"
	"path/filepath"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/testbed"
	"github.com/openinof/inof/testbed/vm"
)

// newVMCmd is the process of a node that is a virtual machine.
func newVMCmd() *cobra.Command {
	cfg := vm.Config{Ready: func() { _, _ = sd.SdNotify(false, sd.SdNotifyReady) }}
	c := &cobra.Command{Use: "vm", Hidden: true, Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			cfg.Bin = filepath.Dir(self)
			ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGTERM, unix.SIGINT)
			defer stop()
			return testbed.VMMain(ctx, cfg)
		}}
	c.Flags().StringVar(&cfg.Name, "name", "", "host name")
	c.Flags().StringVar(&cfg.Dir, "dir", "", "directory of the node")
	c.Flags().StringVar(&cfg.Socket, "socket", "", "where commands are taken")
	c.Flags().StringArrayVar(&cfg.Ports, "port", nil, "an interface that becomes a card of the machine")
	c.Flags().IntVar(&cfg.Memory, "memory", 512, "MiB")
	c.Flags().IntVar(&cfg.CPUs, "cpus", 1, "processors")
	return c
}

// newInVMCmd runs a command in a virtual machine and ends as it ends.
func newInVMCmd() *cobra.Command {
	c := &cobra.Command{Use: "in-vm SOCKET -- COMMAND [ARGUMENT...]", Hidden: true, Args: arguments(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := vm.Do(cmd.Context(), args[0], vm.Quote(args[1:]))
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(r.Output)
			if r.Status != 0 {
				os.Exit(r.Status)
			}
			return err
		}}
	return c
}
