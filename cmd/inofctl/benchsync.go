package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/testbed/load"
)

// The limits of a reflector.
const (
	mostZones, mostHosts, mostMemberships = 160_000, 80_000, 320_000
)

func (a *app) benchSyncCmd() *cobra.Command {
	opt := load.SyncOptions{}
	var largest bool
	c := &cobra.Command{Use: "sync", Short: "The full sync of a client that asks for everything: time, bytes, memory", Args: arguments(0, 0)}
	c.Long = "Measure the full sync of a client that asks for everything: time, bytes and memory of the\nreflector, and how long a fault takes meanwhile. On a live reflector no record is touched.\n" + benchHelp
	b := a.newBenchFlags(c)
	f := c.Flags()
	f.IntVar(&opt.Zones, "zones", 10_000, "zones of a reflector of one's own")
	f.IntVar(&opt.Members, "members", 16, "members of each zone")
	f.IntVar(&opt.HostsUp, "hosts-up", 10_000, "hosts, spread over the feeders; each is in as many zones")
	f.IntVar(&opt.Feeders, "feeders", 100, "devices with hosts")
	f.IntVar(&opt.Count, "count", 10, "full syncs")
	f.BoolVar(&largest, "largest", false, fmt.Sprintf("the limits of a reflector: %d zones, %d hosts, %d memberships", mostZones, mostHosts, mostMemberships))
	c.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if largest {
			opt.Zones, opt.HostsUp, opt.Members = mostZones, mostHosts, mostMemberships/mostZones
		}
		for _, v := range []struct {
			name     string
			n, least int
			most     int
		}{{"zones", opt.Zones, 1, mostZones}, {"members", opt.Members, 1, mostMemberships / opt.Zones}, {"hosts-up", opt.HostsUp, opt.Members, mostHosts}, {"feeders", opt.Feeders, 1, 4000}, {"count", opt.Count, 1, 1000}} {
			if v.n < v.least || v.n > v.most {
				return usagef("--%s: %d, want %d..%d", v.name, v.n, v.least, v.most)
			}
		}
		if opt.Options, err = b.options(cmd, false); err != nil {
			return err
		}
		res, err := load.Sync(cmd.Context(), opt)
		if err != nil {
			return err
		}
		return a.print(res, func(w io.Writer) { printSync(w, res) })
	}
	return c
}

func printSync(w io.Writer, r *load.SyncResult) {
	fmt.Fprintf(w, "reflector: %s, %s; %d processors, load %s\n", r.Reflector, r.Auth, r.Machine.CPUs, r.Machine.Load)
	fmt.Fprintf(w, "a client that asks for everything gets %d zones, %d hosts and faults: %.2f MB in %d messages\n", r.Zones, r.Hosts, float64(r.Bytes)/1e6, r.Messages)
	if r.Peak > 0 {
		fmt.Fprintf(w, "the reflector listened %.2f s after its start, knew all hosts %.2f s later; its memory: %.0f MiB before, %.0f MiB at most\n", r.Start.Seconds(), r.Feed.Seconds(), r.Before, r.Peak)
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "ms\ttrials\tmin\tmedian\tp99\tmax\tmedian ratio\t\n")
	row := func(what string, q load.Quantiles, ratio string) {
		fmt.Fprintf(tw, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t\n", what, q.Trials, q.Min, q.Median, q.P99, q.Max, ratio)
	}
	row("full sync", r.Sync.Ours, fmt.Sprintf("%.2f", r.Sync.MedianRatio))
	row("bare socket, as many bytes", r.Sync.Bound, "")
	if r.Fault != nil {
		row("a fault meanwhile, to another device", *r.Fault, "")
	}
	tw.Flush()
}

func (a *app) benchFailoverCmd() *cobra.Command {
	opt := load.FailoverOptions{}
	c := &cobra.Command{Use: "failover", Short: "How long sessions are away when connections break or the reflector dies", Args: arguments(0, 0),
		Long: `Measure how long the sessions of many clients are away when all their connections break
at once, and when the process of the reflector is killed and started again. The reflector is
a process of its own on this machine; the clients dial as inofd does, with its back-off.`}
	opt.Auth = "hmac-sha256"
	f := c.Flags()
	f.Var(&oneOf{value: &opt.Auth, options: []string{"none", "hmac-sha256"}}, "auth", "authentication of the sessions")
	f.IntVar(&opt.Clients, "clients", 1000, "sessions")
	f.IntVar(&opt.ZoneSize, "zone-size", 16, "clients in each zone")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if opt.Clients < 1 || opt.Clients > 4000 || opt.ZoneSize < 1 {
			return usagef("--clients: want 1..4000; --zone-size: want 1 or more")
		}
		b := benchFlags{a: a, auth: opt.Auth, devices: load.DefaultDevices.String(), hosts: load.DefaultHosts.String()}
		var err error
		if opt.Options, err = b.options(cmd, false); err != nil {
			return err
		}
		res, err := load.Failover(cmd.Context(), opt)
		if err != nil {
			return err
		}
		return a.print(res, func(w io.Writer) { printFailover(w, res) })
	}
	return c
}

func printFailover(w io.Writer, r *load.FailoverResult) {
	fmt.Fprintf(w, "%d clients, %s; %d processors, load %s\n\n", r.Clients, r.Auth, r.Machine.CPUs, r.Machine.Load)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "ms after the loss\tfirst\tmedian\tlast\t\n")
	row := func(what string, v load.Return) {
		fmt.Fprintf(tw, "%s\t%.0f\t%.0f\t%.0f\t\n", what, v.First, v.Median, v.Last)
	}
	row("all connections broken: established", r.CutUp)
	row(fmt.Sprintf("synchronized, %d by resumption", r.Resumed), r.CutSync)
	row(fmt.Sprintf("reflector killed, back after %.0f ms: established", r.Restart), r.KillUp)
	row("synchronized, from nothing", r.KillSync)
	tw.Flush()
}
