package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/openinof/inof/model/scenario"
)

// topPorts is how many queues the summary shows.
const topPorts = 12

// Summary prints a result for a terminal.
func Summary(w io.Writer, r *scenario.Result) error {
	t := &r.Totals
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v of virtual time, %d events, %d frame-hops\n", r.Name, r.End, t.Events, t.FrameHops)
	if r.OneCore != "" {
		fmt.Fprintf(&b, "on one core: %s\n", r.OneCore)
	}
	if t.Lossless > 0 {
		fmt.Fprintf(&b, "\n!! LOSS ON A LOSSLESS QUEUE: %d frames found no room. Headroom or thresholds are wrong.\n", t.Lossless)
	}
	b.WriteByte('\n')
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(r.Loads) > 0 {
		fmt.Fprint(tw, "storage\tI/Os\tIOPS\tmean us\tworst ms\tretried\tlongest without I/O ms\t\n")
		for _, l := range r.Loads {
			fmt.Fprintf(tw, "%s\t%d\t%.0f\t%.1f\t%.3f\t%d\t%.3f\t\n", l.Name, l.Done, l.IOPS, l.Mean.Seconds()*1e6, l.Worst.Seconds()*1e3, l.Retried, l.Idle)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	if len(r.Jobs) > 0 {
		fmt.Fprint(tw, "reduction\tdone\ttook us\tchunks\twrong\tsent again\tduplicates\tslots at most\twaited for in vain\t\n")
		for _, j := range r.Jobs {
			fmt.Fprintf(tw, "%s\t%t\t%.1f\t%d\t%d\t%d\t%d\t%d\t%s\t\n", j.Name, j.Done, j.Took.Seconds()*1e6, j.Chunks, j.Wrong, j.Resends, j.Duplicates, j.PeakSlots, strings.Join(j.Stalled, " "))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	if len(r.Groups) > 0 {
		fmt.Fprint(tw, "traffic\tflows\tdone\tGb/s\tleast\tmost\tFCT p50 ms\tp99\tmax\tslowdown mean\tp99\tretx\t\n")
	}
	for _, g := range r.Groups {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%.2f\t%.2f\t%.2f\t%v\t%v\t%v\t%s\t%v\t%d\t\n", g.Name, g.Flows, g.Done, g.Goodput, finite(g.Least), g.Most, g.FCT[0], g.FCT[2], g.FCT[3], figure(g.Mean, g.Done > 0), g.Slowdown[2], g.Retx)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for i, e := range r.Incidents {
		if i == 0 {
			b.WriteByte('\n')
		}
		if i == 20 {
			fmt.Fprintf(&b, "and %d more incidents\n", len(r.Incidents)-i)
			break
		}
		fmt.Fprintf(&b, "%12.3f ms  %s  %s\n", e.At, e.Port, e.What)
	}
	if err := chains(tw, r); err != nil {
		return err
	}
	ports := slices.Clone(r.Ports)
	slices.SortStableFunc(ports, func(a, b scenario.PortResult) int {
		return cmp.Or(cmp.Compare(b.Stats.Peak, a.Stats.Peak), cmp.Compare(b.Stats.Paused, a.Stats.Paused))
	})
	shown := ports[:min(len(ports), topPorts)]
	fmt.Fprintf(&b, "\nqueues by peak depth (%d of %d)\n", len(shown), len(ports))
	fmt.Fprint(tw, "queue\tframes\tpeak KB\theadroom peak KB\tmarks\tXOFF rx\tXOFF tx\tpaused ms\tdeadlocks\tdrops\t\n")
	for _, p := range shown {
		s := &p.Stats
		fmt.Fprintf(tw, "%s/%d\t%d\t%.1f\t%.1f\t%d\t%d\t%d\t%.3f\t%d\t%d\t\n", p.Port, p.Queue, s.TxFrames, float64(s.Peak)/1e3, float64(s.PeakHeadroom)/1e3, s.Marks, s.RxXoff, s.TxXoff, s.Paused.Seconds()*1e3, s.Deadlocks, s.Drops)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\nXOFF sent %d, ECN marks %d, deadlocks %d, dropped: %s; in the fabric at the end: %d frames\n", t.TxXoff, t.Marks, t.Deadlocks, drops(t.Dropped), t.Live)
	_, err := io.WriteString(w, b.String())
	return err
}

// chains prints how faults came to be felt by hosts.
func chains(tw *tabwriter.Writer, r *scenario.Result) error {
	if r.Control == nil || len(r.Control.Chains) == 0 {
		return nil
	}
	fmt.Fprint(tw, "fault\tat s\thost\tafter ms\tstep\tat\t\n")
	for _, c := range r.Control.Chains {
		fmt.Fprintf(tw, "%s %s\t%.6f\t%s\t\t\t\t\n", c.Fault.What, c.Fault.Node, c.Fault.At.Seconds(), c.Host)
		for _, l := range c.Links {
			fmt.Fprintf(tw, "\t\t\t%.3f\t%s\t%s\t  %s\n", l.After, l.Step.Step, l.Node, l.What)
		}
	}
	return tw.Flush()
}

func finite(v float64) float64 {
	if math.IsInf(v, 0) {
		return 0
	}
	return v
}

func drops(m map[string]uint64) string {
	if len(m) == 0 {
		return "none"
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d %s", m[k], k))
	}
	return strings.Join(parts, ", ")
}

func figure(v float64, ok bool) string {
	if !ok || math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.6g", v)
}

func change(x, y float64, both bool) string {
	if !both || x == 0 || math.IsNaN(x) || math.IsNaN(y) {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", 100*(y/x-1))
}
