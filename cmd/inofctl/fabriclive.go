package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/remote"
	"github.com/openinof/inof/model/scenario"
	"github.com/openinof/inof/model/serve"
)

// fabricServeCmd runs a fabric in real time for daemons with dataplane: model.
func fabricServeCmd() *cobra.Command {
	var socket string
	c := &cobra.Command{Use: "serve FILE", Short: "Run a fabric in real time for daemons with `dataplane: model`", Args: arguments(1, 1),
		Long: `Runs the fabric of a scenario in real time: its switches wait for daemons (inofd with
dataplane: model), its hosts register and react to notices, its storage load runs. Prints what
happens until it is interrupted. See docs/model.md.`,
		Example: "  inofctl fabric serve docs/examples/model/fabric.yaml --fabric /tmp/inof-model/fabric.sock",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := scenario.Load(args[0])
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			events := make(chan serve.Event, 1024)
			s, err := serve.New(f, func(e serve.Event) {
				select {
				case events <- e:
				default: // whoever reads our output is too slow
				}
			})
			if err != nil {
				return err
			}
			l, err := api.Listen(socket, 0o600, "")
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx, l) }()
			fmt.Fprintf(out, "fabric %s runs; its socket is %s\n", f.Name, socket)
			for {
				select {
				case e := <-events:
					if err := printServed(cmd, e); err != nil {
						return err
					}
				case err := <-done:
					if ctx.Err() != nil {
						return nil
					}
					return err
				}
			}
		}}
	c.Flags().StringVar(&socket, "fabric", config.DefaultFabric, "unix socket to listen on")
	return c
}

func printServed(cmd *cobra.Command, e serve.Event) error {
	if asJSON(cmd) {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(e)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s  %-8s %s\n", e.Time.Format("15:04:05.000000"), e.Node, e.Text)
	return err
}

// faultKinds are the faults of a fabric that runs and what they strike.
var faultKinds = map[string]string{"link-down": "LINK", "link-up": "LINK", "black": "LINK", "clear": "LINK", "loss": "LINK", "switch-down": "SWITCH", "switch-up": "SWITCH", "storm": "HOST"}

// fabricFaultCmd breaks something in a fabric that runs.
func fabricFaultCmd() *cobra.Command {
	var socket, every, lasts string
	var queues []int
	var loss float64
	c := &cobra.Command{Use: "fault KIND WHERE", Short: "Break or mend something in a fabric that `serve` runs", Args: arguments(2, 2),
		Long: `KIND and WHERE are: link-down, link-up, black (swallows frames, carrier stays), loss, clear (no
black, no loss) with a link such as t0-leaf1; switch-down, switch-up with a switch; storm with a
host's port such as t0/0.`,
		Example: "  inofctl fabric fault link-down t0-leaf1",
		RunE: func(cmd *cobra.Command, args []string) error {
			f := scenario.Fault{Kind: args[0]}
			switch faultKinds[args[0]] {
			case "LINK":
				f.Link = args[1]
			case "SWITCH":
				f.Switch = args[1]
			case "HOST":
				f.Host = args[1]
			default:
				return usagef("%q is not a kind of fault: %s", args[0], cmd.UseLine())
			}
			if f.Kind == "loss" {
				f.Loss = loss
			}
			if f.Kind == "storm" {
				var err1, err2 error
				f.Queues = queues
				f.Every, err1 = model.ParseTime(every)
				f.For, err2 = model.ParseTime(lasts)
				if err := errors.Join(err1, err2); err != nil {
					return usageError{err}
				}
			}
			text, err := json.Marshal(f)
			if err != nil {
				return err
			}
			_, err = remote.Do(cmd.Context(), socket, remote.Request{Fault: text})
			return err
		}}
	c.Flags().StringVar(&socket, "fabric", config.DefaultFabric, "unix socket of the fabric")
	c.Flags().IntSliceVar(&queues, "queues", []int{3}, "storm: the classes that are paused")
	c.Flags().StringVar(&every, "every", "1ms", "storm: time between two PFC frames")
	c.Flags().StringVar(&lasts, "for", "10s", "storm: how long it lasts")
	c.Flags().Float64Var(&loss, "probability", 0.01, "loss: share of frames that are damaged")
	return c
}

// fabricStatusCmd shows a fabric that runs.
func fabricStatusCmd() *cobra.Command {
	var socket string
	c := &cobra.Command{Use: "status", Short: "Show a fabric that `serve` runs: switches, hosts, what they were told, I/O", Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := remote.Do(cmd.Context(), socket, remote.Request{Status: true})
			if err != nil {
				return err
			}
			var st serve.Status
			if err := json.Unmarshal(r.Status, &st); err != nil {
				return err
			}
			if asJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), st)
			}
			return printFabric(cmd.OutOrStdout(), &st)
		}}
	c.Flags().StringVar(&socket, "fabric", config.DefaultFabric, "unix socket of the fabric")
	return c
}

func printFabric(w io.Writer, st *serve.Status) error {
	fmt.Fprintf(w, "fabric %s, running for %v", st.Name, st.Now.Duration().Round(time.Millisecond))
	if st.Behind > 50 {
		fmt.Fprintf(w, "; %.0f ms behind: this machine is too slow for the load", st.Behind)
	}
	fmt.Fprint(w, "\n\n")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "SWITCH\tDAEMON\tPORTS")
	for _, s := range st.Switches {
		daemon := "none"
		switch {
		case s.Off:
			daemon = "off"
		case s.Attached:
			daemon = "attached"
		}
		var ports []string
		for _, p := range s.Ports {
			ports = append(ports, fmt.Sprintf("%s>%s %s", p.Name, p.Peer, lit(p.Carrier)))
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", s.Name, daemon, strings.Join(ports, ", "))
	}
	fmt.Fprintln(tw, "\nHOST\tROLE\tPORT\tADDRESS\tLINK\tTOLD")
	for _, h := range st.Hosts {
		role := "target"
		if h.Initiator {
			role = "initiator"
		}
		if !h.Agent {
			role += ", no agent"
		}
		for _, p := range h.Ports {
			var told []string
			for _, n := range p.Heard {
				text := fmt.Sprintf("%s %s", n.Subject, n.State)
				if n.Reason != 0 {
					text += fmt.Sprintf(" (%s)", n.Reason)
				}
				told = append(told, text)
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", h.Name, role, p.Name, p.Addr, lit(p.Carrier), strings.Join(told, ", "))
		}
	}
	if len(st.Loads) > 0 {
		fmt.Fprintln(tw, "\nSTORAGE\tIOPS\tPATHS UP\tI/Os\tRETRIED\tWORST ms")
		for _, l := range st.Loads {
			fmt.Fprintf(tw, "%s\t%.0f\t%d of %d\t%d\t%d\t%.1f\n", l.Name, l.IOPS, l.PathsUp, l.Paths, l.Done, l.Retried, l.Worst.Seconds()*1e3)
		}
	}
	return tw.Flush()
}

func lit(up bool) string {
	if up {
		return "up"
	}
	return "down"
}
