package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

// drainDevice is the word for all ports of a device.
const drainDevice = "device"

func (a *app) drainCmd() *cobra.Command {
	var undo, async bool
	var wait time.Duration
	c := &cobra.Command{
		Use: "drain PORT|" + drainDevice, Short: "Take a port, or all ports, out of service without a fault: hosts move first, then it is shut", Args: arguments(1, 1),
		Long: "Take a port, or all ports of the device, out of service in order. The peers of its hosts are told that these have left, and its hosts that their peers have " +
			"(reason aged-out, upon which an agent takes its controllers out at once). Two seconds after the last ack, or when --wait is over, the port is shut. " +
			"It stays so over restarts until --undo, which puts back all that was done. The command returns when it is done.",
		Example: "  inofctl drain Ethernet4\n  inofctl drain Ethernet4 --undo\n  inofctl drain device --wait 30s",
		RunE: func(cmd *cobra.Command, args []string) error {
			o := api.DrainOrder{Port: args[0], Undo: undo}
			if cmd.Flags().Changed("wait") {
				o.Wait = (*api.Duration)(&wait)
			}
			if o.Port == drainDevice {
				o.Port = ""
			}
			return a.drain(cmd, o, async)
		},
	}
	f := c.Flags()
	f.BoolVar(&undo, "undo", false, "put it into service again")
	f.DurationVar(&wait, "wait", 0, "longest time until the port is shut, 0s: at once (default 10s)")
	f.BoolVar(&async, "no-wait", false, "return at once")
	c.ValidArgsFunction = a.complete(func(ctx context.Context, c *api.Client) ([]string, error) {
		names, err := portNames(ctx, c)
		return append(names, drainDevice), err
	})
	return c
}

func (a *app) drain(cmd *cobra.Command, o api.DrainOrder, async bool) error {
	var d api.Drained
	err := a.call(cmd, func(ctx context.Context, cl *api.Client) (err error) {
		d, err = api.DrainPorts.Ask(ctx, cl, o)
		return err
	})
	if err != nil {
		return err
	}
	if !o.Undo && !async && len(d.Ports) > 0 {
		if err := a.awaitDrained(cmd, d.Ports); err != nil {
			return err
		}
	}
	return a.print(d, func(w io.Writer) {
		what := "drained and shut"
		switch {
		case o.Undo:
			what = "in service again"
		case async:
			what = "being drained"
		}
		if len(d.Ports) == 0 {
			fmt.Fprintln(w, "nothing to do")
			return
		}
		fmt.Fprintf(w, "%s, %d host address(es): %s\n", query.Printable(strings.Join(d.Ports, ", ")), d.Hosts, what)
	})
}

// awaitDrained waits until no port of the list is on its way any more.
func (a *app) awaitDrained(cmd *cobra.Command, ports []string) error {
	for {
		var list []api.Port
		err := a.call(cmd, func(ctx context.Context, cl *api.Client) (err error) {
			list, err = api.Ask[[]api.Port](ctx, cl, "ports", nil)
			return err
		})
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(list, func(p api.Port) bool { return !slices.Contains(ports, p.Name) || p.State == api.PortDrained })
		if i := slices.IndexFunc(left, func(p api.Port) bool { return p.State != api.PortDraining }); i >= 0 {
			return fmt.Errorf("port %s is %s: somebody ended its draining", left[i].Name, left[i].State)
		}
		if len(left) == 0 {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		}
	}
}

func (a *app) testNoticeCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "test-notice HOST", Short: "Send a host a notice that changes nothing for it, and time its ack", Args: arguments(1, 1),
		Long: "Send a host of this switch a notice that its agent acks and that changes nothing for it (it says that the host's own address, as an initiator's, is inactive), " +
			"over each port the host is on, up to three times. The ack proves the chain from this daemon to the agent. The exit code is 0 only if all were acked.",
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := parseAddr(args[0])
			if err != nil {
				return usageError{err}
			}
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				list, err := api.SendTestNotice.Ask(ctx, cl, api.HostAddr{Host: host})
				if err != nil {
					return err
				}
				if err := a.print(list, func(w io.Writer) { testNoticeLines(w, list) }); err != nil {
					return err
				}
				if i := slices.IndexFunc(list, func(t api.TestNotice) bool { return !t.Acked }); i >= 0 {
					return fmt.Errorf("host %s acked nothing over port %s: see that its agent runs, and the frames of the port: inofctl show port %s", host, list[i].Port, list[i].Port)
				}
				return nil
			})
		},
	}
	c.ValidArgsFunction = a.complete(hostNames)
	return c
}

func testNoticeLines(w io.Writer, list []api.TestNotice) {
	for _, t := range list {
		switch {
		case t.Error != "":
			fmt.Fprintf(w, "%s over %s: %s\n", t.Host, query.Printable(t.Port), query.Printable(t.Error))
		case !t.Acked:
			fmt.Fprintf(w, "%s (%s) over %s: no ack of %d frames\n", t.Host, t.MAC, query.Printable(t.Port), t.Sent)
		default:
			fmt.Fprintf(w, "%s (%s) over %s: acked in %s, frame %d\n", t.Host, t.MAC, query.Printable(t.Port), query.Micros(t.RoundTrip), t.Sent)
		}
	}
}
