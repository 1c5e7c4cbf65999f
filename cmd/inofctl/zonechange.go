package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/query"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// candidateRules are those of the tool; the daemon has its own.
var candidateRules = zone.Rules{AllowLoopback: true}

// readCandidate reads a candidate from a file.
func readCandidate(path string) (api.ZoneCandidate, error) {
	p, base, err := config.LoadPlan(path, candidateRules)
	return api.ZoneCandidate{Plan: p, Base: base}, err
}

func (a *app) zoneEditCmd() *cobra.Command {
	return &cobra.Command{Use: "edit FILE", Short: "Write the zones in force to a file as a candidate, and open it with $EDITOR", Args: arguments(1, 1),
		Long: "Write the zones in force to a file as a candidate, with the version that they are, and open it with $EDITOR where there is one and a terminal. " +
			"A file that is there already is only opened. Then: zone check FILE, zone impact FILE, zone commit FILE.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				if _, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) {
					z, err := cl.Zoning(ctx)
					if err != nil {
						return err
					}
					if err := writeCandidate(args[0], z.Plan, z.Version.Base); err != nil {
						return err
					}
					if err := a.print(map[string]any{"file": args[0], "version": z.Version.Number, "base": z.Version.Base}, func(w io.Writer) {
						fmt.Fprintf(w, "%s is version %d; next: inofctl zone check %s\n", args[0], z.Version.Number, args[0])
					}); err != nil {
						return err
					}
				}
				editor := os.Getenv("EDITOR")
				if in, err := os.Stdin.Stat(); editor == "" || err != nil || in.Mode()&os.ModeCharDevice == 0 {
					return nil
				}
				c := exec.CommandContext(cmd.Context(), "sh", "-c", editor+` "$1"`, "sh", args[0])
				c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
				return c.Run()
			})
		}}
}

// writeCandidate writes a new file; one that is there is never overwritten.
func writeCandidate(path string, p *change.Plan, base string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return config.WritePlan(f, p, base)
}

// reviewCmd makes a command that shows something of what a candidate would do. It exits with
// exitFinding where what it looks for is there.
func (a *app) reviewCmd(c *cobra.Command, table func(w io.Writer, r api.ZoneReview), bad func(r api.ZoneReview) bool) *cobra.Command {
	c.Args = arguments(1, 1)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
			x, err := readCandidate(args[0])
			if err != nil {
				return err
			}
			r, err := api.CheckZones.Ask(ctx, cl, x)
			if err != nil {
				return err
			}
			if err := a.print(r, func(w io.Writer) { table(w, r) }); err != nil {
				return err
			}
			if bad(r) {
				return finding{}
			}
			return nil
		})
	}
	return c
}

func (a *app) zoneReviewCmds() []*cobra.Command {
	return []*cobra.Command{
		a.reviewCmd(&cobra.Command{Use: "check FILE", Short: "Say what is wrong with a candidate; exits with 3 when it has errors or is too old"}, checkLines, unfit),
		a.reviewCmd(&cobra.Command{Use: "diff FILE", Short: "Say what a candidate changes; exits with 3 when it has errors or is too old"}, diffLines, unfit),
		a.reviewCmd(&cobra.Command{Use: "impact FILE", Short: "Say which hosts a candidate joins and takes apart; exits with 3 when that needs --force"}, impactLines,
			func(r api.ZoneReview) bool { return unfit(r) || r.Loss != "" }),
	}
}

func textLines(w io.Writer, head string, list []string) {
	for _, l := range list {
		fmt.Fprintln(w, head+query.Printable(l))
	}
}

// unfit reports whether a candidate cannot be committed as it is.
func unfit(r api.ZoneReview) bool { return len(r.Errors) > 0 || r.Conflict != "" }

func unfitLines(w io.Writer, r api.ZoneReview) {
	textLines(w, "error: ", r.Errors)
	if r.Conflict != "" {
		textLines(w, "conflict: ", []string{r.Conflict})
	}
}

func diffLines(w io.Writer, r api.ZoneReview) {
	unfitLines(w, r)
	changeLines(w, r.Changes)
}

func checkLines(w io.Writer, r api.ZoneReview) {
	unfitLines(w, r)
	textLines(w, "warning: ", r.Warnings)
	if !unfit(r) {
		fmt.Fprintf(w, "good, on version %d; %d change(s)\n", r.Version.Number, len(r.Changes))
	}
}

func changeLines(w io.Writer, list []string) {
	if len(list) == 0 {
		fmt.Fprintln(w, "nothing is changed")
	}
	textLines(w, "", list)
}

func impactLines(w io.Writer, r api.ZoneReview) {
	unfitLines(w, r)
	x := r.Impact
	if x == nil {
		return
	}
	least := ""
	if x.AtLeast {
		least = "at least "
	}
	(&query.Page{Writer: w}).Pairs([][2]string{
		{"Pairs", fmt.Sprintf("%d now, %s%d gained, %s%d lost (%d of them can be reached now)", x.PairsBefore, least, x.PairsGained, least, x.PairsLost, x.LostActive)},
		{"Last paths", fmt.Sprintf("%d services lose their last path to a host", x.CutOff)},
		{"Alone", fmt.Sprintf("%d hosts are left without a partner", x.Alone)},
		{"Notices", fmt.Sprintf("%s%d active, %d inactive; %d to one host at most, told in %s at least", least, x.Active, x.Inactive, x.MostTold, query.Human(time.Duration(r.Told)))},
		{"I/O it would cut", x.IO},
	})
	for _, l := range []struct {
		word string
		list []zone.PathPair
		all  int
	}{{"LOST", x.Lost, x.PairsLost}, {"GAINED", x.Gained, x.PairsGained}} {
		if len(l.list) == 0 {
			continue
		}
		rows := [][]string{}
		for _, p := range l.list {
			active, left := "no", strconv.Itoa(p.Paths)
			if p.Active {
				active = "yes"
			}
			if p.Paths < 0 {
				left = "?"
			}
			rows = append(rows, []string{p.Host.String(), p.Target.String(), active, left, p.NQN})
		}
		query.Table(w, l.word+" TARGET ACTIVE PATHS-LEFT NQN", rows)
		if more := l.all - len(rows); more > 0 {
			fmt.Fprintf(w, "and %d more\n", more)
		}
	}
	if r.Loss != "" {
		textLines(w, "needs --force: ", []string{r.Loss})
	}
}

// commitFlags are those of all commands that change the zones.
type commitFlags struct {
	confirm time.Duration
	comment string
	force   bool
	also    []string
}

func (f *commitFlags) add(c *cobra.Command) {
	c.Flags().DurationVar(&f.confirm, "confirm", 0, "take the change back after this time unless it is confirmed before (zone confirm)")
	c.Flags().StringVar(&f.comment, "comment", "", "what it is for; kept with the version")
	c.Flags().BoolVar(&f.force, "force", false, "also when it takes more hosts apart than zones.max-loss")
	addAlso(c, &f.also)
}

func addAlso(c *cobra.Command, also *[]string) {
	c.Flags().StringArrayVar(also, "also", nil, "socket of another reflector that is changed too: all of them, or none")
}

func (a *app) zoneCommitCmd() *cobra.Command {
	var f commitFlags
	c := &cobra.Command{Use: "commit FILE", Short: "Bring a candidate into force", Args: arguments(1, 1),
		Long: "Bring a candidate into force, if the zones are still those that it was made from; otherwise it is refused with the difference. With --confirm " +
			"it is taken back by itself, also over a restart, unless zone confirm comes first. With --also several reflectors are changed, or none.",
		Example: "  inofctl zone edit new.yaml\n  inofctl zone impact new.yaml\n  inofctl zone commit new.yaml --confirm 10m --comment 'rack 4'\n  inofctl zone confirm",
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := readCandidate(args[0])
			if err != nil {
				return err
			}
			if x.Base == "" {
				return usagef("%s does not say which version it was made from: begin with inofctl zone edit", args[0])
			}
			return a.commitZones(cmd, &f, func(api.Zoning) (api.ZoneCandidate, error) { return x, nil })
		}}
	f.add(c)
	return c
}

// commitZones changes the zones of one reflector or of several. Make gives the candidate for each.
func (a *app) commitZones(cmd *cobra.Command, f *commitFlags, make func(api.Zoning) (api.ZoneCandidate, error)) error {
	all, done := a.reflectors(f.also)
	defer done()
	ctx, cancel := context.WithTimeout(cmd.Context(), a.patience)
	defer cancel()
	list, err := all.commit(ctx, *f, make)
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) {
		for _, c := range list {
			switch {
			case !c.Changed:
				fmt.Fprintf(w, "%s: nothing has changed: version %d\n", c.Device, c.Version.Number)
			case c.Version.Confirm != nil:
				fmt.Fprintln(w, waitsLine(c.Device.String(), c.Version))
			default:
				fmt.Fprintf(w, "%s: version %d is in force\n", c.Device, c.Version.Number)
			}
		}
	})
}

func (a *app) zoneSettleCmd(use, short string, stay bool) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: arguments(0, 0)}
	a.waitingCmd(c, func(ctx context.Context, all reflectors, _ []string) ([]api.ZoneVersion, error) {
		return all.settle(ctx, stay)
	})
	return c
}

func (a *app) zoneExtendCmd() *cobra.Command {
	c := &cobra.Command{Use: "extend TIME", Short: "Give a change that waits for its confirmation more time, or less: TIME from now on", Args: arguments(1, 1),
		Example: "  inofctl zone commit new.yaml --confirm 10m\n  inofctl zone extend 1h\n  inofctl zone confirm"}
	a.waitingCmd(c, func(ctx context.Context, all reflectors, args []string) ([]api.ZoneVersion, error) {
		confirm, err := time.ParseDuration(args[0])
		if err != nil || confirm < api.MinConfirm || confirm > api.MaxConfirm {
			return nil, usagef("%q is no time from %v to %v: write 10m or 1h30m", args[0], api.MinConfirm, api.MaxConfirm)
		}
		return all.extend(ctx, confirm)
	})
	return c
}

// waitingCmd has a command do something to what waits for its confirmation.
func (a *app) waitingCmd(c *cobra.Command, do func(ctx context.Context, all reflectors, args []string) ([]api.ZoneVersion, error)) {
	var also []string
	addAlso(c, &also)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		all, done := a.reflectors(also)
		defer done()
		ctx, cancel := context.WithTimeout(cmd.Context(), a.patience)
		defer cancel()
		list, err := do(ctx, all, args)
		if err != nil {
			return err
		}
		return a.print(list, func(w io.Writer) {
			for i, v := range list {
				if v.Confirm != nil {
					fmt.Fprintln(w, waitsLine(all[i].name, v))
				} else {
					fmt.Fprintf(w, "%s: version %d is in force\n", all[i].name, v.Number)
				}
			}
		})
	}
}

// waitsLine says until when a version waits.
func waitsLine(device string, v api.ZoneVersion) string {
	return fmt.Sprintf("%s: version %d is in force until %s, unless it is confirmed before: inofctl zone confirm", device, v.Number, v.Confirm.Local().Format(time.RFC3339))
}

func (a *app) zoneHistoryCmd() *cobra.Command {
	return &cobra.Command{Use: "history", Short: "List the versions of the zones that are kept, newest first", Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				list, err := api.Ask[[]api.ZoneVersion](ctx, cl, "zoning/history", nil)
				if err != nil {
					return err
				}
				return a.print(list, func(w io.Writer) {
					rows := [][]string{}
					for _, v := range list {
						what := query.FewText(v.Changes, 2)
						if v.Confirm != nil {
							what = "waits for its confirmation; " + what
						}
						at := ""
						if !v.Time.IsZero() { // of the zones there were at the start nobody knows it
							at = v.Time.Local().Format(time.DateTime)
						}
						rows = append(rows, []string{strconv.FormatUint(v.Number, 10), at, v.By, v.From, v.Comment, what})
					}
					query.Table(w, "VERSION TIME BY FROM COMMENT CHANGES", rows)
				})
			})
		}}
}

func versionNumber(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, usagef("%q is no number of a version: see inofctl zone history", text)
	}
	return n, nil
}

func zonesAt(ctx context.Context, cl *api.Client, version uint64) (api.Zoning, error) {
	return api.Ask[api.Zoning](ctx, cl, fmt.Sprintf("zoning/history/%d", version), nil)
}

func (a *app) zoneShowCmd() *cobra.Command {
	c := &cobra.Command{Use: "show VERSION", Short: "Print the zones of a version as a zone file", Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := versionNumber(args[0])
			if err != nil {
				return err
			}
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				z, err := zonesAt(ctx, cl, n)
				if err != nil {
					return err
				}
				if a.format == "json" {
					return a.print(z, nil)
				}
				return config.WritePlan(a.out, z.Plan, "")
			})
		}}
	c.ValidArgsFunction = a.complete(zoneVersionNumbers)
	return c
}

func (a *app) zoneRollbackCmd() *cobra.Command {
	var f commitFlags
	c := &cobra.Command{Use: "rollback VERSION", Short: "Bring the zones of a version that is kept into force again, as a new version", Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := versionNumber(args[0])
			if err != nil {
				return err
			}
			if len(f.also) > 0 {
				return usagef("versions have other numbers at another reflector: write the one meant to a file (zone show), and commit that with --also")
			}
			if f.comment == "" {
				f.comment = "back to version " + args[0]
			}
			return a.commitZones(cmd, &f, func(now api.Zoning) (x api.ZoneCandidate, err error) {
				err = a.call(cmd, func(ctx context.Context, cl *api.Client) error {
					z, err := zonesAt(ctx, cl, n)
					x = api.ZoneCandidate{Plan: z.Plan, Base: now.Version.Base}
					return err
				})
				return x, err
			})
		}}
	f.add(c)
	c.ValidArgsFunction = a.complete(zoneVersionNumbers)
	return c
}

func zoneVersionNumbers(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.Ask[[]api.ZoneVersion](ctx, c, "zoning/history", nil)
	names := []string{}
	for _, v := range list {
		names = append(names, fmt.Sprintf("%d\t%s", v.Number, strings.TrimSpace(v.By+" "+v.Comment)))
	}
	return names, err
}

// planCmd makes a command that changes something of the plan in one step.
func (a *app) planCmd(c *cobra.Command, least, most int, edit func(p *change.Plan, args []string) error) *cobra.Command {
	var f commitFlags
	c.Args = arguments(least, most)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.commitZones(cmd, &f, func(now api.Zoning) (api.ZoneCandidate, error) {
			next := now.Plan.Clone()
			err := edit(next, args)
			return api.ZoneCandidate{Plan: next, Base: now.Version.Base}, err
		})
	}
	f.add(c)
	return c
}

func (a *app) zonePlanCmds() []*cobra.Command {
	aliasSet := a.planCmd(&cobra.Command{Use: "set NAME MEMBER...", Short: "Make an alias, or give it other members", Long: "Make an alias, or give it other members. " + memberHelp}, 2, -1,
		func(p *change.Plan, args []string) error {
			z, err := change.ParseZone(joinPlaces(args[1:]))
			if err != nil {
				return usageError{err}
			}
			if len(z.Aliases) > 0 {
				return usagef("%s%s: an alias has members, no other aliases; zones name several", change.AliasPrefix, z.Aliases[0])
			}
			p.PutAlias(args[0], z.Members)
			return nil
		})
	aliasRemove := a.planCmd(&cobra.Command{Use: "remove NAME", Short: "Remove an alias that no zone names"}, 1, 1, func(p *change.Plan, args []string) error {
		if _, ok := p.Aliases[args[0]]; !ok {
			return fmt.Errorf("alias %q: %w", args[0], change.ErrNoAlias)
		}
		delete(p.Aliases, args[0])
		return nil
	})
	setSet := a.planCmd(&cobra.Command{Use: "set NAME ZONE...", Short: "Make a zone set, or give it other zones"}, 1, -1, func(p *change.Plan, args []string) error {
		p.PutSet(args[0], args[1:])
		return nil
	})
	setRemove := a.planCmd(&cobra.Command{Use: "remove NAME", Short: "Remove a zone set that is not active"}, 1, 1, func(p *change.Plan, args []string) error {
		if _, ok := p.Sets[args[0]]; !ok {
			return fmt.Errorf("zone set %q: %w", args[0], change.ErrNoSet)
		}
		delete(p.Sets, args[0])
		return nil
	})
	activate := a.planCmd(&cobra.Command{Use: "activate [NAME]", Short: "Make a zone set the active one; without a name all zones are in force"}, 0, 1, func(p *change.Plan, args []string) error {
		p.Active = strings.Join(args, "")
		return nil
	})
	aliases := a.complete(planNames(func(p *change.Plan) []string {
		names := []string{}
		for _, n := range p.Document().Aliases {
			names = append(names, n.Name)
		}
		return names
	}))
	sets := a.complete(planNames(func(p *change.Plan) []string {
		names := []string{}
		for _, n := range p.Document().Sets {
			names = append(names, n.Name)
		}
		return names
	}))
	aliasSet.ValidArgsFunction, aliasRemove.ValidArgsFunction = aliases, aliases
	setSet.ValidArgsFunction, setRemove.ValidArgsFunction, activate.ValidArgsFunction = sets, sets, sets
	return []*cobra.Command{
		group("alias", "Change the aliases, names for members that zones share", aliasSet, aliasRemove),
		group("zoneset", "Change the zone sets, of which one may be active", setSet, setRemove, activate),
	}
}

func planNames(names func(*change.Plan) []string) func(context.Context, *api.Client) ([]string, error) {
	return func(ctx context.Context, c *api.Client) ([]string, error) {
		z, err := c.Zoning(ctx)
		if err != nil {
			return nil, err
		}
		return names(z.Plan), nil
	}
}
