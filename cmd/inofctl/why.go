package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/health"
	"github.com/openinof/inof/internal/query"
	"github.com/openinof/inof/snsd"
)

func (a *app) whyCmd() *cobra.Command {
	c := &cobra.Command{Use: "why HOST HOST", Short: "What is between two hosts: zones, state, what each was told, the last fault",
		Long: `What is between two hosts, on one screen: where both are, their zones and state, the faults that
stand, what each was told of the other and whether it has acked, and the way of the last fault
from its cause to the ack. Ask a device that one of them is attached to, or a reflector.

The verdict is the first thing that keeps them from each other. The exit code is 0 when nothing
does, 3 when something does, and 1 when it could not be asked.`,
		Example: "  inofctl why 192.0.2.101 192.0.2.9"}
	c.ValidArgsFunction = a.complete(hostNames)
	c.Args = arguments(2, 2)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		var hosts [2]netip.Addr
		for i := range hosts {
			addr, err := parseAddr(args[i])
			if err != nil {
				return usageError{err}
			}
			hosts[i] = addr
		}
		return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
			y, err := api.Ask[api.Why](ctx, cl, "why", api.Where("a", hosts[0].String(), "b", hosts[1].String()))
			if err != nil {
				return err
			}
			if err := a.print(y, func(w io.Writer) { a.whyScreen(w, &y) }); err != nil || y.Good {
				return err
			}
			return finding{errors.New("something is between them")}
		})
	}
	return c
}

func (a *app) whyScreen(w io.Writer, y *api.Why) {
	rows := [][2]string{{"Verdict", y.Verdict}}
	if y.Do != "" {
		rows = append(rows, [2]string{"", y.Do})
	}
	for i := range y.Hosts {
		h := &y.Hosts[i]
		rows = append(rows, [2]string{"Host", h.Addr.String() + ": " + a.whereText(h)})
		for j := range h.Faults {
			rows = append(rows, [2]string{"Fault", health.FaultText(&h.Faults[j])})
		}
	}
	shared := "none"
	if len(y.Shared) > 0 {
		shared = query.FewText(y.Shared, 6)
	}
	rows = append(rows, [2]string{"Shared zones", shared})
	for i := range y.Told {
		rows = append(rows, [2]string{"Told", health.ToldText(&y.Told[i])})
	}
	if y.Hard != nil {
		rows = append(rows, [2]string{"Hard zoning", hardText(y.Hard)})
	}
	nameLines(w, rows)
	if len(y.Notices) > 0 {
		fmt.Fprintln(w, "\nLast notices")
		a.whyNotices(w, y.Notices)
	}
	if len(y.Chain) > 0 {
		fmt.Fprintln(w, "\nLast fault")
		a.chainTable(w, y.Chain)
	}
}

// nameLines writes name: value lines; one without a name goes on under the value before.
func nameLines(w io.Writer, rows [][2]string) {
	for _, r := range rows {
		name := r[0]
		if name != "" {
			name += ":"
		}
		fmt.Fprintf(w, "%-14s %s\n", name, query.Printable(r[1]))
	}
}

// whereText is where a host is attached, in which state and zones.
func (a *app) whereText(h *api.WhyHost) string {
	if len(h.Attachments) == 0 {
		return "not known here"
	}
	first := &h.Attachments[0]
	var at []string
	for _, x := range h.Attachments {
		where := fmt.Sprintf("device %s port %s", x.Device, x.Port)
		if x.Type == api.Local {
			where = "port " + x.Port + " here"
		}
		if x.Conflict {
			where += " (claimed by another host too)"
		}
		if !slices.Contains(at, where) {
			at = append(at, where)
		}
	}
	state := first.State.String()
	if first.State != snsd.Active {
		state += " (" + first.Reason.String() + ")"
	}
	zones := "in no zone"
	if len(first.Zones) > 0 {
		zones = "in " + query.FewText(first.Zones, 4)
	}
	return strings.Join([]string{first.Role.String(), state, query.FewText(at, 3), zones, "for " + a.page(nil).Age(first.Since)}, ", ")
}

func (a *app) whyNotices(w io.Writer, list []api.Notice) {
	rows := [][]string{}
	for i := range list {
		n := &list[i]
		when := ""
		if n.Queued != nil {
			when = a.page(nil).Stamp(*n.Queued)
		}
		rows = append(rows, []string{when, query.Addr(n.Host), query.Addr(n.Subject), n.State.String(), query.Because(n.Reason), string(n.Status),
			query.Count(n.Retries), query.Micros(n.SentToAcked)})
	}
	query.Table(w, "TIME HOST TOLD-OF STATE REASON STATUS RETRIES ACKED-AFTER", rows)
}

func (a *app) chainTable(w io.Writer, steps []api.Step) {
	rows := [][]string{}
	for i, s := range steps {
		device, after := "reflector", ""
		if s.Device.IsValid() {
			device = s.Device.String()
		}
		switch {
		case s.After != nil:
			after = "+" + query.Micros(s.After)
		case i > 0:
			after = "clock"
		}
		rows = append(rows, []string{a.page(nil).Stamp(s.At), after, device, s.What})
	}
	query.Table(w, "TIME AFTER DEVICE WHAT", rows)
}
