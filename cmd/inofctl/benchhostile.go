package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/testbed/load"
)

func (a *app) benchHostileCmd() *cobra.Command {
	var opt load.HostileOptions
	c := &cobra.Command{Use: "hostile", Short: "What a client that sends without end does to a fault elsewhere, and to the reflector's memory", Args: arguments(0, 0)}
	c.Long = `Measure the harm that one authenticated client can do: how long a fault of another device
takes to reach the clients of its zone while that client sends one kind of message without
end, and the reflector's memory. Quiet slices, slices under a flood and controls take turns,
so that what else the machine does falls on all of them; each flood is by a device that has
not used up what it may send at once, and faults come from its first message on, by the
clock, whether or not those before have arrived. The reflector is a process of its own, and
one for each kind of flood; it and the clients that are measured have the priority of the
unit of inofd, where that is allowed, and threads of one real-time priority take turns of 4 ms, as
the package of inofd has it, until the measurement ends. Who floods, and the clients that are not measured, are another
process, of idle priority and on one processor: in a fabric they are other machines. In the
control it takes as much processor time as in the flood, and sends nothing. A ratio is of the
p99s of all slices; beside it stand the least, the median and the greatest of the slices.
Memory counts from its highest while hosts change.`
	b := &benchFlags{a: a, auth: "hmac-sha256", devices: load.DefaultDevices.String(), hosts: load.DefaultHosts.String()}
	f := c.Flags()
	f.Var(&oneOf{value: &b.auth, options: []string{"none", "hmac-sha256", "tls"}}, "auth", "authentication of the sessions")
	f.IntVar(&opt.Clients, "clients", 64, "sessions that hear of what the client sends")
	f.IntVar(&opt.ZoneSize, "zone-size", 16, "clients that hear of the fault")
	f.IntVar(&opt.Count, "count", 1600, "faults without, under each flood, and in its control")
	f.IntVar(&opt.Rounds, "rounds", 8, "times that a quiet slice, a flood and a control take turns")
	f.Var(&oneOf{value: &opt.Only, options: load.FloodNames()}, "only", "one kind of flood (default all)")
	f.IntVar(&opt.Rate, "rate", 200, "faults a second")
	f.StringVar(&b.profiles, "profiles", "", "directory for traces of the reflector under each flood")
	c.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		for _, v := range []struct {
			name        string
			n, from, to int
		}{{"clients", opt.Clients, 1, 4000}, {"zone-size", opt.ZoneSize, 1, 4000}, {"count", opt.Count, 1, 1e6}, {"rounds", opt.Rounds, 1, 24}, {"rate", opt.Rate, 1, 1000}} {
			if v.n < v.from || v.n > v.to {
				return usagef("--%s: %d, want %d..%d", v.name, v.n, v.from, v.to)
			}
		}
		if opt.Options, err = b.options(cmd, true); err != nil {
			return err
		}
		res, err := load.Hostile(cmd.Context(), opt)
		if err != nil {
			return err
		}
		return a.print(res, func(w io.Writer) { printHostile(w, res) })
	}
	return c
}

func printHostile(w io.Writer, r *load.HostileResult) {
	fmt.Fprintf(w, "%s, %d clients, %d faults a second; %d processors, load %s; who floods is %s; the reflector runs %s, threads of one priority take turns of %s ms\n\n", r.Auth, r.Clients, r.Rate, r.Machine.CPUs, r.Machine.Load, r.Flooder, r.Process, r.Turns)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "flood\tsent\tfaults\tquiet, ms: median\tp99\tflood: median\tp99\tmax\tp99 ratio\tof slices\tcontrol: p99\tratio\tof slices\tCPU, s: flooder\treflector\tMiB at most: quiet\tflood\tratio\tin use: quiet\tflood\t\n")
	of := func(x load.Ratio) string { return fmt.Sprintf("%.1f %.1f %.1f", x.Min, x.Median, x.Max) }
	for i := range r.Floods {
		f := &r.Floods[i]
		fmt.Fprintf(tw, "%s\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t%.2f\t%.2f\t%s\t%.1f\t%.1f\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t\n", f.Name, f.Sent, f.Fault.Trials,
			f.Quiet.Median, f.Quiet.P99, f.Fault.Median, f.Fault.P99, f.Fault.Max, f.Ratio.All, of(f.Ratio), f.Control.P99, f.ControlRatio.All, of(f.ControlRatio),
			f.CPU.Seconds(), f.ReflectorCPU.Seconds(), f.QuietPeak, f.Peak, f.MemoryRatio, f.QuietLive, f.Live)
	}
	tw.Flush()
	fmt.Fprint(w, "\np99 of the parts of a fault's way, ms: until the reflector has read it, until it has made what tells it, until the last client has that\n\n")
	fmt.Fprint(tw, "flood\tquiet: in\tthrough\tout\tflood: in\tthrough\tout\t\n")
	for i := range r.Floods {
		f := &r.Floods[i]
		q, u := f.QuietHops, f.FaultHops
		fmt.Fprintf(tw, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", f.Name, q.In, q.Through, q.Out, u.In, u.Through, u.Out)
	}
	tw.Flush()
	fmt.Fprintln(w)
	for i := range r.Floods {
		fmt.Fprintf(w, "%s: %s\n", r.Floods[i].Name, r.Floods[i].What)
	}
}
