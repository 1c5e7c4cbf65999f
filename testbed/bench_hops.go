package testbed

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

// BenchHop is one step of the way from a pulled cable to the notice at a host, in the order of
// the way. All clocks are this machine's.
type BenchHop struct {
	Name string `json:"name"` // what begins with the end of the hop before it and ends with this one
	Quantiles
}

// hopNames are what the hops of a notice end with.
var hopNames = [...]string{
	"the kernel of tor1 noticed",
	"the owner of tor1's state took it up",
	"handed to tor1's sessions",
	"read by the reflector",
	"passed on by the reflector",
	"read by tor2",
	"the owner of tor2's state took it up",
	"frame handed to the port of tor2",
	"received by the kernel of the host",
}

// hops are the durations of one lab, a list for each of hopNames.
type hops [len(hopNames)][]time.Duration

// add takes the way of a notice in: from pulling the cable at fault, of which the kernel function
// noticed at noticed (zero: nothing hears it), to its arrival. The daemon's own program may run
// before that of the bench, at the same place of the kernel.
func (h *hops) add(fault, noticed time.Time, n *api.Notice, arrived time.Time) {
	if seen := n.FaultAt; seen != nil && (noticed.IsZero() || seen.Before(noticed)) {
		noticed = *seen
	}
	last := fault
	for i, at := range [len(hopNames)]*time.Time{&noticed, n.DecidedAt, n.SentAt, n.ReflectorAt, n.ReflectedAt, n.ReceivedAt, n.Queued, n.Sent, &arrived} {
		if at == nil {
			continue
		}
		h[i] = append(h[i], at.Sub(last))
		last = *at
	}
}

// rows are the hops' quantiles.
func (h *hops) rows() (rows []BenchHop) {
	for i, ds := range h {
		rows = append(rows, BenchHop{Name: hopNames[i], Quantiles: quantiles(ds)})
	}
	return rows
}

// way asks tor2 for the newest notice of a loss to a host, with the times of its way.
func (s *benchSide) way(ctx context.Context, told string, host, subject netip.Addr) (*api.Notice, error) {
	list, err := api.Ask[[]api.Notice](ctx, api.NewClient(s.lab.Socket(told)), "notices",
		api.Where("host", host.String(), "subject", subject.String()))
	if err != nil {
		return nil, err
	}
	var newest *api.Notice
	for i := range list {
		n := &list[i]
		if n.State == snsd.Inactive && (newest == nil || n.Queued != nil && newest.Queued != nil && n.Queued.After(*newest.Queued)) {
			newest = n
		}
	}
	if newest == nil {
		return nil, fmt.Errorf("%s has no notice to %s about the loss of %s", told, host, subject)
	}
	return newest, nil
}

// printHops prints the ways of the labs beside each other.
func printHops(w io.Writer, first, beside []BenchHop) {
	fmt.Fprintf(w, "\n%-52s %9s %9s", "hop by hop, microseconds, until", "median", "p99")
	if beside != nil {
		fmt.Fprintf(w, " %9s %9s", "beside", "p99")
	}
	fmt.Fprintln(w)
	for i := range first {
		fmt.Fprintf(w, "%-52s %9.1f %9.1f", first[i].Name, first[i].Median, first[i].P99)
		if beside != nil {
			fmt.Fprintf(w, " %9.1f %9.1f", beside[i].Median, beside[i].P99)
		}
		fmt.Fprintln(w)
	}
}
