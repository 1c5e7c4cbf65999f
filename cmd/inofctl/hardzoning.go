package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/fabric/linux/bpfpins"
	"github.com/openinof/inof/fabric/linux/portguard"
	"github.com/openinof/inof/fabric/sonic"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

func (a *app) hardZoningCmd() *cobra.Command {
	order := func(use, short, long, order, done string) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Long: long, Args: arguments(0, 0), RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				if err := api.OrderHardZoning.Do(ctx, cl, api.HardOrder{Order: order}); err != nil {
					return err
				}
				return a.print(api.HardOrder{Order: order}, func(w io.Writer) { fmt.Fprintln(w, done) })
			})
		}}
	}
	show := &cobra.Command{Use: "show", Short: "How this switch enforces zones: state, rows, filters of the ports, frames", Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				h, err := api.Ask[api.HardZoning](ctx, cl, "hard-zoning", nil)
				if err != nil {
					return err
				}
				return a.print(h, func(w io.Writer) { hardScreen(w, &h) })
			})
		}}
	var pins, redis string
	remove := &cobra.Command{Use: "remove", Short: "Take the filters of a daemon that does not run any more out of the kernel", Args: arguments(0, 0),
		Long: "Take tables and programs out of the kernel that a daemon left there which does not run any more, those of the port guard and blocks too: everything passes then.\nOf a daemon that runs: inofctl hard-zoning off.",
		RunE: func(*cobra.Command, []string) error {
			if redis != "" {
				return sonic.RemoveACL(redis)
			}
			return errors.Join(portguard.RemovePins(pins), bpfpins.Remove(pins))
		}}
	remove.Flags().StringVar(&pins, "pins", hardzone.DefaultPins, "hard-zoning.pins of the daemon")
	remove.Flags().StringVar(&redis, "sonic-redis", "", "ports.sonic-redis of the daemon: take the rules out of the ASIC instead")
	return group("hard-zoning", "How this switch keeps hosts of different zones apart", show,
		order("off", "Let everything pass on this switch, for an emergency", "Let everything pass on this switch from now on, also after a restart of the daemon, until inofctl hard-zoning on.\nFilters stay in place and rows are kept up to date. Of a daemon that does not answer: inofctl hard-zoning remove.",
			api.HardSuspend, "hard zoning is suspended on this switch: everything passes"),
		order("on", "End that", "", api.HardResume, "hard zoning is in force again"),
		order("flush", "Close at once what waits for acks, and compare all rows with what they should be", "", api.HardFlush, "all rows are as the zones say"), remove)
}

func hardScreen(w io.Writer, h *api.HardZoning) {
	state := string(h.State)
	if h.Suspended {
		state += ", suspended by an operator: everything passes"
	}
	rows := [][2]string{{"State", state}}
	for _, why := range h.Why {
		rows = append(rows, [2]string{"", query.Printable(why)})
	}
	rows = append(rows, [2]string{"Hosts", fmt.Sprintf("%d, %d of them here", h.Hosts, h.Local)},
		[2]string{"Pairs", fmt.Sprintf("%d may talk, %d are being closed, %d have no room", h.Pairs, h.Closing, h.NoRoom)})
	if h.Unheard > 0 {
		rows = append(rows, [2]string{"Unheard", fmt.Sprintf("%d hosts of before the start", h.Unheard)})
	}
	if h.Audited != nil {
		rows = append(rows, [2]string{"Audit", fmt.Sprintf("%s ago, %d rows repaired since the start", query.Human(time.Since(*h.Audited)), h.Repaired)})
	}
	nameLines(w, rows)
	n := func(v uint64) string { return strconv.FormatUint(v, 10) }
	var cells [][]string
	for _, p := range h.Ports {
		attach := p.Attach
		if p.Error != "" {
			attach = strings.TrimSpace(attach + " " + query.Printable(p.Error))
		}
		cells = append(cells, []string{query.Printable(p.Port), attach, n(p.Passed), n(p.Permitted), n(p.Other), n(p.NoPair), n(p.BadSource), n(p.Unlearned), n(p.Malformed)})
	}
	fmt.Fprintln(w)
	query.Table(w, "PORT FILTER PASSED PERMITTED OTHER NO-PAIR BAD-SOURCE UNLEARNED MALFORMED", cells)
	cells = nil
	for _, z := range h.Zones {
		name := z.Zone
		if name == "" {
			name = "(others)"
		}
		cells = append(cells, []string{query.Printable(name), n(z.Passed), n(z.Denied)})
	}
	if len(cells) > 0 {
		fmt.Fprintln(w)
		query.Table(w, "ZONE PASSED DENIED", cells)
	}
}

// hardText says what a switch enforces between two hosts.
func hardText(h *api.WhyHard) string {
	text := "the kernel of this switch "
	switch {
	case !h.Here:
		return "neither is attached to this switch"
	case h.Closing != nil:
		text = "they may talk no more; until " + h.Closing.Format("15:04:05.000") + " at the latest the kernel "
	}
	text += h.Kernel
	if h.NoRoom {
		text += ", for want of room"
	}
	if !h.Agrees {
		text += " (not what it should do)"
	}
	return text
}
