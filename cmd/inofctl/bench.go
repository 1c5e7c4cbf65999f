package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/load"
)

// benchFlags are shared by the benchmarks of a reflector.
type benchFlags struct {
	a                          *app
	auth                       string
	reflector                  string
	password, cert, key, ca    string
	devices, hosts             string
	profiles                   string
	yes                        bool
	devicesWasSet, hostsWasSet func() bool
}

// benchHelp says what touching a live reflector means.
const benchHelp = `
Without --reflector the reflector is a process of its own on this machine, with a bare
loop beside it that writes the same bytes to as many sockets: the bound of the same run.
In mode tls a second one does so over bare TLS connections: what TLS itself costs.

With --reflector HOST:PORT it is a live one, which must let the device ids of --devices
in. Nothing but these devices, hosts of --hosts and zones named ` + load.ZonePrefix + `* is touched,
which asks for --yes, and all of it is withdrawn at the end. The zones are added and
removed through the management socket (--socket) of that reflector, so this runs on
its machine. In mode tls one certificate must be good for all of these device ids.`

// newBenchCmd puts load on a reflector; see package load.
func (a *app) benchCmd() *cobra.Command {
	c := group("bench", "Measure a reflector under load beside its bound", a.benchFanoutCmd(), a.benchSyncCmd(), a.benchFailoverCmd(), a.benchHostileCmd(), a.benchHardZoningCmd(), newBenchProcessCmd())
	c.Long = "Measure a reflector under load beside its bound.\n" + benchHelp
	return c
}

// newBenchProcessCmd is one of the processes of a benchmark.
func newBenchProcessCmd() *cobra.Command {
	return &cobra.Command{Use: "process ROLE DIR", Hidden: true, Args: arguments(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return load.Main(cmd.Context(), args[0], args[1], os.Stdin, os.Stdout)
		}}
}

func (a *app) newBenchFlags(c *cobra.Command) *benchFlags {
	b := &benchFlags{a: a, auth: "hmac-sha256"}
	f := c.Flags()
	f.Var(&oneOf{value: &b.auth, options: []string{"none", "hmac-sha256", "tls"}}, "auth", "authentication of the sessions of a reflector of one's own")
	f.StringVar(&b.reflector, "reflector", "", "HOST:PORT of a live reflector")
	f.StringVar(&b.password, "password-file", "", "its password")
	f.StringVar(&b.cert, "certificate-file", "", "certificate for a live reflector in mode tls")
	f.StringVar(&b.key, "key-file", "", "key of that certificate")
	f.StringVar(&b.ca, "ca-file", "", "CAs of the reflector's certificate")
	f.StringVar(&b.devices, "devices", load.DefaultDevices.String(), "device ids of the clients, FIRST-LAST or a prefix")
	f.StringVar(&b.hosts, "hosts", load.DefaultHosts.String(), "addresses of their hosts")
	f.StringVar(&b.profiles, "profiles", "", "directory for processor profiles of a reflector of one's own, one for each part")
	f.BoolVar(&b.yes, "yes", false, "yes, put records into the live reflector")
	b.devicesWasSet = func() bool { return f.Changed("devices") }
	b.hostsWasSet = func() bool { return f.Changed("hosts") }
	return b
}

// options checks the flags; writes reports whether a live reflector's records are touched.
func (b *benchFlags) options(cmd *cobra.Command, writes bool) (opt load.Options, err error) {
	self, err := os.Executable()
	if err != nil {
		return opt, err
	}
	opt.Auth, opt.Process.Command = b.auth, []string{self, "bench", "process"}
	opt.Profiles = b.profiles
	opt.Progress = func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) }
	if opt.Devices, err = load.ParseRange(b.devices); err != nil {
		return opt, usageError{fmt.Errorf("--devices: %w", err)}
	}
	if opt.Hosts, err = load.ParseRange(b.hosts); err != nil {
		return opt, usageError{fmt.Errorf("--hosts: %w", err)}
	}
	if b.reflector == "" {
		if b.password+b.cert+b.key+b.ca != "" || b.yes {
			return opt, usagef("--password-file, --certificate-file, --key-file, --ca-file and --yes go with --reflector")
		}
		return opt, nil
	}
	return opt, b.live(&opt, writes)
}

func (b *benchFlags) live(opt *load.Options, writes bool) error {
	addr, err := netip.ParseAddrPort(b.reflector)
	if err != nil {
		return usageError{fmt.Errorf("--reflector: %w", err)}
	}
	if !b.devicesWasSet() || writes && !b.hostsWasSet() {
		return usagef("a live reflector needs ranges that nobody uses: --devices, and --hosts where records are made")
	}
	if writes && !b.yes {
		return usagef("this puts devices %v, hosts %v and zones %s* into the reflector %s and removes them at the end: say --yes if that is all right", opt.Devices, opt.Hosts, load.ZonePrefix, addr)
	}
	opt.LiveZones = liveZones{api.NewClient(b.a.socket)}
	switch {
	case b.password != "" && b.cert == "":
		text, err := os.ReadFile(b.password)
		if err != nil {
			return err
		}
		first, _, _ := bytes.Cut(text, []byte("\n")) // the second line is the old one
		opt.Live, err = load.Password(addr, bytes.TrimRight(first, "\r"))
		return err
	case b.cert != "" && b.key != "" && b.ca != "" && b.password == "":
		opt.Live, err = load.Certificate(addr, b.cert, b.key, b.ca)
	default:
		return usagef("--reflector goes with --password-file, or with --certificate-file, --key-file and --ca-file")
	}
	return err
}

// liveZones changes zones through the management API.
type liveZones struct{ *api.Client }

func (z liveZones) RemoveZone(ctx context.Context, name string) error {
	err := z.Client.RemoveZone(ctx, name)
	if errors.Is(err, api.ErrNotFound) {
		return nil
	}
	return err
}

func (z liveZones) Hosts(ctx context.Context, prefix string) (n int, err error) {
	zones, err := api.Ask[[]api.Zone](ctx, z.Client, "zones", nil)
	for i := range zones {
		if strings.HasPrefix(zones[i].Name, prefix) {
			n += len(zones[i].Hosts)
		}
	}
	return n, err
}

func (a *app) benchFanoutCmd() *cobra.Command {
	var opt load.FanoutOptions
	c := &cobra.Command{Use: "fanout", Short: "Faults passed on to many clients: latency, bursts, processor time, memory", Args: arguments(0, 0)}
	c.Long = "Measure how faults are passed on: until the last client of a zone, and of all, has it;\nhow many a second in a burst; what that costs. A reflector of the bench's own has no limit\nto what a device may send at once, unless --paced.\n" + benchHelp
	b := a.newBenchFlags(c)
	f := c.Flags()
	f.IntVar(&opt.Clients, "clients", 1000, "sessions")
	f.IntVar(&opt.ZoneSize, "zone-size", 16, "clients in each zone")
	f.IntVar(&opt.Count, "count", 200, "faults of each kind")
	// Four changes of a port in a second are told at once, what comes after them is not.
	f.IntVar(&opt.Rate, "rate", 12, "faults a second, the bound's included; above 16 a port changes so often that some are told late")
	f.IntVar(&opt.Burst, "burst", 10000, "changes in a burst, 0: no burst")
	f.IntVar(&opt.Origins, "origins", 10, "devices that a burst comes from")
	f.BoolVar(&opt.Paced, "paced", false, "leave the reflector its defaults of what a device may send at once, which a burst exceeds")
	c.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		for _, v := range []struct {
			name        string
			n, from, to int
		}{{"clients", opt.Clients, 1, 4000}, {"zone-size", opt.ZoneSize, 1, 4000}, {"count", opt.Count, 1, 1e6}, {"rate", opt.Rate, 1, 10000}, {"burst", opt.Burst, 0, 65536}, {"origins", opt.Origins, 1, 64}} {
			if v.n < v.from || v.n > v.to {
				return usagef("--%s: %d, want %d..%d", v.name, v.n, v.from, v.to)
			}
		}
		if opt.Options, err = b.options(cmd, true); err != nil {
			return err
		}
		res, err := load.Fanout(cmd.Context(), opt)
		if err != nil {
			return err
		}
		return a.print(res, func(w io.Writer) { printFanout(w, res) })
	}
	return c
}

func printFanout(w io.Writer, r *load.FanoutResult) {
	fmt.Fprintf(w, "reflector: %s, %s; %d clients in zones of %d; %d processors, load %s\n", r.Reflector, r.Auth, r.Clients, r.ZoneSize, r.Machine.CPUs, r.Machine.Load)
	fmt.Fprintf(w, "all sessions established after %.2f s; a fault is a message of %d bytes, %d faults a second\n\n", r.Connect.Seconds(), r.Bytes, r.Rate)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "last client has it after, ms\tmin\tmedian\tp99\tmax\tbound median\tbound p99\tmedian ratio\tp99 ratio\t\n")
	row := func(what string, c *load.Compared) {
		fmt.Fprintf(tw, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", what, c.Ours.Min, c.Ours.Median, c.Ours.P99, c.Ours.Max, c.Bound.Median, c.Bound.P99, c.MedianRatio, c.P99Ratio)
		if b := c.TLS; b != nil {
			fmt.Fprintf(tw, "beside bare TLS\t\t\t\t\t%.2f\t%.2f\t%.2f\t%.2f\t\n", b.Median, b.P99, b.MedianRatio, b.P99Ratio)
		}
	}
	row(fmt.Sprintf("%d of a zone", min(r.ZoneSize, r.Clients)), &r.Zone)
	row(fmt.Sprintf("all %d", r.Clients), &r.All)
	tw.Flush()
	if r.HostBurst != nil {
		fmt.Fprintln(w)
		tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(tw, "burst from %d devices\tchanges\tdelivered M\tin s\tM/s\tbound M/s\tratio\tin messages\tCPU s per M\t\n", r.Origins)
		for _, b := range []struct {
			what string
			*load.Burst
		}{{"hosts come up", r.HostBurst}, {"their ports fail", r.FaultBurst}} {
			fmt.Fprintf(tw, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%.2f\t\n", b.what, b.Changes, float64(b.Deliveries)/1e6, b.Seconds, b.PerSecond/1e6, b.BoundPerSecond/1e6, b.Ratio, b.Messages, b.CPU)
			if b.TLSBoundPerSecond > 0 {
				fmt.Fprintf(tw, "beside bare TLS\t\t\t\t\t%.2f\t%.2f\t\t\t\n", b.TLSBoundPerSecond/1e6, b.TLSRatio)
			}
		}
		tw.Flush()
	}
	if m := r.Memory; m != nil {
		fmt.Fprintf(w, "\nmemory of a session, KiB: %.1f of objects, %.1f of stacks, %.1f of the process\n", m.Heap, m.Stack, m.RSS)
	}
}
