package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

func (a *app) showCmd() *cobra.Command {
	c := group("show", "Show hosts, zones, peers, ports, faults, notices, latency, events",
		a.showStatusCmd(), a.showHostCmd(), a.showZoneCmd(), a.showPeerCmd(), a.showPortCmd(),
		a.showBFDCmd(), a.showNoticeCmd(), a.showLatencyCmd(), a.showEventCmd(), a.showClusterCmd())
	for i := range query.All {
		c.AddCommand(a.queryCmd(&query.All[i]))
	}
	return c
}

// show makes a command that gets one value from the daemon and prints it.
func show[T any](a *app, c *cobra.Command, most int, get func(context.Context, *api.Client, []string) (T, error), table func(io.Writer, T, []string)) *cobra.Command {
	c.Args = arguments(0, most)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
			v, err := get(ctx, cl, args)
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) { table(w, v, args) })
		})
	}
	return c
}

// addrFlag is a flag that takes an IP address.
type addrFlag struct{ addr *netip.Addr }

func (f addrFlag) String() string {
	if f.addr == nil || !f.addr.IsValid() {
		return ""
	}
	return f.addr.String()
}

func (f addrFlag) Type() string { return "address" }

// Set implements pflag.Value.
func (f addrFlag) Set(s string) error {
	a, err := parseAddr(s)
	*f.addr = a
	return err
}

func parseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, fmt.Errorf("%q is not an IP address", s)
	}
	return a, nil
}

func addrVar(f *pflag.FlagSet, a *netip.Addr, name, usage string) {
	f.Var(addrFlag{a}, name, usage)
}

func (a *app) showStatusCmd() *cobra.Command {
	var check, warned bool
	c := &cobra.Command{Use: "status", Short: "The device at a glance, with what needs attention",
		Long: "The device at a glance, with what needs attention and what to do about it (docs/warnings.md has all\n" +
			"warnings). With --check the exit code is 3 while there is a warning, for scripts and monitors."}
	c.Flags().BoolVar(&check, "check", false, "exit with 3 if there is a warning")
	show(a, c, 0, func(ctx context.Context, cl *api.Client, _ []string) (api.Status, error) {
		s, err := cl.Status(ctx)
		warned = len(s.Warnings) > 0
		return s, err
	}, func(w io.Writer, s api.Status, _ []string) { a.statusTable(w, s) })
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil || !check || !warned {
			return err
		}
		return finding{errors.New("there are warnings")}
	}
	return c
}

func (a *app) showHostCmd() *cobra.Command {
	var q api.HostQuery
	c := &cobra.Command{Use: "host [ADDRESS]", Short: "Hosts known here, or all about one address",
		Example: "  inofctl show host --zone blue\n  inofctl show host 192.0.2.1"}
	f := c.Flags()
	f.StringVar(&q.Zone, "zone", "", "only hosts in this zone")
	f.StringVar(&q.Port, "port", "", "only hosts at this access port")
	addrVar(f, &q.Device, "device", "only hosts at this access device")
	f.Var(&oneOf{(*string)(&q.Type), []string{"local", "remote"}}, "type", "only local or remote hosts")
	f.Var(&oneOf{&q.State, []string{"active", "inactive"}}, "state", "only active or inactive hosts")
	must(c.RegisterFlagCompletionFunc("zone", a.complete(zoneNames)))
	must(c.RegisterFlagCompletionFunc("port", a.complete(portNames)))
	c.ValidArgsFunction = a.complete(hostNames)
	return show(a, c, 1, func(ctx context.Context, cl *api.Client, args []string) ([]api.Host, error) {
		if len(args) == 0 {
			return cl.Hosts(ctx, q)
		}
		addr, err := parseAddr(args[0])
		if err != nil {
			return nil, usageError{err}
		}
		q.Addr = addr
		list, err := cl.Hosts(ctx, q)
		if err == nil && len(list) == 0 {
			err = fmt.Errorf("no host %s is known here", addr)
		}
		return list, err
	}, func(w io.Writer, list []api.Host, args []string) {
		if len(args) == 1 {
			a.hostDetails(w, list)
			return
		}
		a.hostTable(w, list)
	})
}

func (a *app) showZoneCmd() *cobra.Command {
	var q api.ZoneQuery
	c := &cobra.Command{Use: "zone [NAME]", Short: "Zones, or all about one zone"}
	addrVar(c.Flags(), &q.Addr, "host", "only zones this host is in")
	c.Flags().BoolVar(&q.Inconsistent, "inconsistent", false, "only zones about which the reflectors differ")
	c.ValidArgsFunction = a.complete(zoneNames)
	return show(a, c, 1, func(ctx context.Context, cl *api.Client, args []string) ([]api.Zone, error) {
		if len(args) == 1 {
			q.Name = args[0]
		}
		list, err := cl.Zones(ctx, q)
		if err == nil && len(args) == 1 && len(list) == 0 {
			err = fmt.Errorf("no zone %q is known here", q.Name)
		}
		return list, err
	}, func(w io.Writer, list []api.Zone, args []string) {
		if len(args) == 1 {
			zoneDetails(w, list[0])
			return
		}
		if q.Inconsistent {
			inconsistentTable(w, list)
			return
		}
		zoneTable(w, list)
	})
}

func (a *app) showPeerCmd() *cobra.Command {
	c := &cobra.Command{Use: "peer [DEVICE]", Short: "Sessions to reflectors and clients, or all about those of one device"}
	return show(a, c, 1, func(ctx context.Context, cl *api.Client, args []string) ([]api.Peer, error) {
		list, err := cl.Peers(ctx)
		if err != nil || len(args) == 0 {
			return list, err
		}
		dev, err := parseAddr(args[0])
		if err != nil {
			return nil, usageError{err}
		}
		of := func(p api.Peer) bool {
			at, err := netip.ParseAddrPort(p.Address)
			return p.Device == dev || !p.Device.IsValid() && err == nil && at.Addr() == dev
		}
		list = slices.DeleteFunc(list, func(p api.Peer) bool { return !of(p) })
		if len(list) == 0 {
			return nil, fmt.Errorf("there is no session with device %s, and no attempt at one", dev)
		}
		return list, nil
	}, func(w io.Writer, list []api.Peer, args []string) {
		if len(args) == 1 {
			a.peerDetails(w, list)
			return
		}
		a.peerTable(w, list)
	})
}

func (a *app) showPortCmd() *cobra.Command {
	c := &cobra.Command{Use: "port [NAME]", Short: "Access ports with state and counters"}
	c.ValidArgsFunction = a.complete(portNames)
	return show(a, c, 1, func(ctx context.Context, cl *api.Client, args []string) ([]api.Port, error) {
		list, err := cl.Ports(ctx)
		if err != nil || len(args) == 0 {
			return list, err
		}
		list = only(list, func(p api.Port) bool { return p.Name == args[0] })
		if len(list) == 0 {
			err = fmt.Errorf("no access port %q on this device", args[0])
		}
		return list, err
	}, func(w io.Writer, list []api.Port, args []string) {
		if len(args) == 1 {
			a.portDetails(w, list[0])
			return
		}
		a.portTable(w, list)
	})
}

// only keeps what is wanted and is never nil, for JSON.
func only[T any](list []T, want func(T) bool) []T {
	out := []T{}
	for _, v := range list {
		if want(v) {
			out = append(out, v)
		}
	}
	return out
}

// queryCmd is the command of a registered query.
func (a *app) queryCmd(q *query.Query) *cobra.Command {
	c := &cobra.Command{Use: q.Name, Short: q.Short}
	words := map[query.Words]func(context.Context, *api.Client) ([]string, error){query.PortNames: portNames, query.HostAddrs: hostNames, query.ZoneNames: zoneNames}
	for _, f := range q.Filters {
		c.Flags().String(f.Name, "", f.Usage)
		if w := words[f.Words]; w != nil {
			must(c.RegisterFlagCompletionFunc(f.Name, a.complete(w)))
		}
	}
	c.Args = arguments(0, 0)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		filters := url.Values{}
		for _, f := range q.Filters {
			if v, _ := cmd.Flags().GetString(f.Name); v != "" {
				filters.Set(f.Name, v)
			}
		}
		return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
			answer, err := api.Ask[json.RawMessage](ctx, cl, q.Name, filters)
			if err != nil {
				return err
			}
			return errors.Join(a.print(answer, func(w io.Writer) { err = q.Table(w, answer, a.now()) }), err)
		})
	}
	return c
}

func (a *app) showNoticeCmd() *cobra.Command {
	q, times := api.NoticeQuery{Limit: 50}, false
	c := &cobra.Command{Use: "notice", Short: "What local hosts were told, and how long it took"}
	f := c.Flags()
	addrVar(f, &q.Host, "host", "only notices to this host")
	addrVar(f, &q.Subject, "subject", "only notices about this host")
	f.StringVar(&q.Port, "port", "", "only notices out of this port")
	f.Var(&oneOf{(*string)(&q.Status), []string{"queued", "sent", "acked", "superseded", "given-up"}}, "status", "only notices that got this far")
	f.Var(&positive{&q.Limit}, "limit", "newest ones to show, 0 for all")
	f.BoolVar(&times, "times", false, "the way of each from the fault to the ack, step by step")
	must(c.RegisterFlagCompletionFunc("port", a.complete(portNames)))
	return show(a, c, 0, func(ctx context.Context, cl *api.Client, _ []string) ([]api.Notice, error) {
		return cl.Notices(ctx, q)
	}, func(w io.Writer, list []api.Notice, _ []string) {
		if times {
			a.noticeTimesTable(w, list)
			return
		}
		a.noticeTable(w, list)
	})
}

// eventFlags are the filters of `show event` and `watch`.
func (a *app) eventFlags(c *cobra.Command, q *api.EventQuery) {
	f := c.Flags()
	f.StringVar(&q.Kind, "kind", "", "only events of this kind (port, host, zone, peer, fault, ...)")
	f.StringVar(&q.Port, "port", "", "only events of this port")
	f.StringVar(&q.Addr, "host", "", "only events about this host address")
	must(c.RegisterFlagCompletionFunc("port", a.complete(portNames)))
}

func (a *app) showEventCmd() *cobra.Command {
	q := api.EventQuery{Limit: 50}
	c := &cobra.Command{Use: "event", Short: "What happened lately (watch follows it)"}
	a.eventFlags(c, &q)
	c.Flags().Var(&positive{&q.Limit}, "limit", "newest ones to show, 0 for all")
	return show(a, c, 0, func(ctx context.Context, cl *api.Client, _ []string) ([]api.Event, error) {
		return cl.Events(ctx, q)
	}, func(w io.Writer, list []api.Event, _ []string) { a.eventTable(w, list) })
}

// positive is a flag that takes a whole number from 0 on.
type positive struct{ value *int }

func (p *positive) String() string {
	if p.value == nil {
		return "0"
	}
	return fmt.Sprint(*p.value)
}

func (p *positive) Type() string { return "number" }

// Set implements pflag.Value.
func (p *positive) Set(s string) error {
	var n int32
	if _, err := fmt.Sscanf(s+"\n", "%d\n", &n); err != nil || n < 0 {
		return fmt.Errorf("a whole number from 0 on")
	}
	*p.value = int(n)
	return nil
}
