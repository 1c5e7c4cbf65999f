package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
	"github.com/openinof/inof/zone"
)

func (a *app) zoneCmd() *cobra.Command {
	add := a.zoneChangeCmd(api.ZoneAdd, &cobra.Command{Use: "add NAME [MEMBER...]", Short: "Make a zone",
		Long:    "Make a zone. " + memberHelp,
		Example: "  inofctl zone add blue 192.0.2.1 192.0.2.16-192.0.2.31 port:192.0.2.250/Ethernet4"}, 1, -1)
	remove := a.zoneChangeCmd(api.ZoneRemove, &cobra.Command{Use: "remove NAME", Short: "Remove a zone"}, 1, 1)
	memberAdd := a.zoneChangeCmd(api.MembersAdd, &cobra.Command{Use: "add NAME MEMBER...", Short: "Add members to a zone",
		Long: "Add members to a zone. " + memberHelp}, 2, -1)
	memberRemove := a.zoneChangeCmd(api.MembersRemove, &cobra.Command{Use: "remove NAME MEMBER...", Short: "Remove members from a zone"}, 2, -1)
	for _, c := range []*cobra.Command{remove, memberAdd, memberRemove} {
		c.ValidArgsFunction = a.complete(zoneNames)
	}
	c := group("zone", "Change the zones of a reflector or standalone device", add, remove, a.exportCmd(),
		group("member", "Change the members of a zone", memberAdd, memberRemove),
		a.zoneEditCmd(), a.zoneCommitCmd(), a.zoneImportCmd(),
		a.zoneSettleCmd("confirm", "Keep a change that waits for its confirmation", true),
		a.zoneSettleCmd("abort", "Take a change back that waits for its confirmation", false),
		a.zoneExtendCmd(), a.zoneHistoryCmd(), a.zoneShowCmd(), a.zoneRollbackCmd())
	c.AddCommand(a.zoneReviewCmds()...)
	c.AddCommand(a.zonePlanCmds()...)
	return c
}

// zoneChangeCmd makes a command that changes a zone and says what was done.
func (a *app) zoneChangeCmd(do api.ZoneDo, c *cobra.Command, least, most int) *cobra.Command {
	var dry bool
	c.Args = arguments(least, most)
	c.Flags().BoolVar(&dry, "dry-run", false, "change nothing, and say which hosts would be told what")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		members := joinPlaces(args[1:])
		if err := checkMembers(members); err != nil {
			return err
		}
		return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
			done, err := cl.ChangeZone(ctx, api.ZoneOrder{Do: do, Name: args[0], Members: members, DryRun: dry})
			if err != nil {
				return err
			}
			return a.print(done, func(w io.Writer) {
				fmt.Fprintln(w, query.Printable(zoneChangedText(do, done)))
				if done.Impact != nil {
					impactTable(w, done.Impact)
				}
			})
		})
	}
	return c
}

// zoneChangedText says in one line what was done to a zone, or would be.
func zoneChangedText(do api.ZoneDo, c api.ZoneChanged) string {
	text := "zone " + c.Zone
	switch {
	case do == api.ZoneAdd:
		text += " added, members: " + query.Cell(query.FewText(c.Added, 3))
	case do == api.ZoneRemove:
		text += " removed"
	case len(c.Added) > 0:
		text += ": added " + query.FewText(c.Added, 3)
	case len(c.Removed) > 0:
		text += ": removed " + query.FewText(c.Removed, 3)
	default:
		text += ": nothing has changed"
	}
	if len(c.Present) > 0 {
		text += "; there already: " + query.FewText(c.Present, 3)
	}
	if c.DryRun {
		text += " (dry run: nothing was changed)"
	}
	return text
}

// impactTable shows which hosts would be told what.
func impactTable(w io.Writer, x *zone.Impact) {
	least := ""
	if x.AtLeast {
		least = "at least "
	}
	fmt.Fprintf(w, "hosts would be told: %s%d active, %d inactive\n", least, x.Active, x.Inactive)
	rows := [][]string{}
	for _, t := range x.Told {
		rows = append(rows, []string{t.Host.String(), t.Subject.String(), t.State.String(), query.Because(t.Reason)})
	}
	if len(rows) > 0 {
		query.Table(w, "HOST SUBJECT STATE REASON", rows)
	}
	if more := x.Active + x.Inactive - len(rows); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}
