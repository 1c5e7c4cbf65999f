package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

func (a *app) haltCmd() *cobra.Command {
	var o api.HaltOrder
	c := a.modeCmd(&cobra.Command{Use: "halt", Short: "Stop acting: notify no host, shut no port, block nothing, and go on deciding and recording",
		Long: "Have this device, or with --fabric all clients of this reflector, act on nothing until inofctl resume: no host is\n" +
			"notified, no port is shut, ports that error-down has shut are opened, every block is lifted. What would be done is\n" +
			"still decided and recorded (inofctl show notice). Hard zoning stays closed, unless --open-zoning says otherwise.\n" +
			"It survives restarts, and is in the audit. A port that an operator shut or drained stays shut."}, &o, &api.HaltDevices)
	c.Flags().BoolVar(&o.Fabric, "fabric", false, "all clients of this reflector")
	c.Flags().BoolVar(&o.OpenZoning, "open-zoning", false, "hard zoning lets everything pass meanwhile")
	c.Flags().StringVar(&o.Reason, "reason", "", "why, for others")
	return c
}

func (a *app) resumeCmd() *cobra.Command {
	var o api.HaltOrder
	c := a.modeCmd(&cobra.Command{Use: "resume", Short: "End a halt: hosts are notified of what is true now",
		Long: "End inofctl halt. Every host is then notified of what is active, and of what became inactive meanwhile; ports that\n" +
			"were to be shut are. A fabric is resumed at each reflector that was halted."}, &o, &api.ResumeDevices)
	c.Flags().BoolVar(&o.Fabric, "fabric", false, "all clients of this reflector")
	c.Flags().BoolVar(&o.Force, "force", false, "forget that a reflector said so, which will not come back")
	return c
}

func (a *app) modeCmd(c *cobra.Command, o *api.HaltOrder, do *api.Action[api.HaltOrder, api.Mode]) *cobra.Command {
	c.Args = arguments(0, 0)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
			m, err := do.Ask(ctx, cl, *o)
			if err != nil {
				return err
			}
			return a.print(m, func(w io.Writer) { fmt.Fprintln(w, "mode "+query.Printable(m.String())) })
		})
	}
	return c
}
