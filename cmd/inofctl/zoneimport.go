package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/progress"
	"github.com/openinof/inof/zone/change"
	"github.com/openinof/inof/zone/imports"
)

// makers read the zones of other makers' switches.
var makers = map[string]func([]byte, imports.Options) (*change.Plan, error){"brocade": imports.Brocade, "mds": imports.MDS}

func (a *app) zoneImportCmd() *cobra.Command {
	var from, names, vsan, to string
	c := &cobra.Command{Use: "import TEXT", Short: "Make a candidate of the zones that another maker's switch prints", Args: arguments(1, 1),
		Long: "Make a candidate of the zones that another maker's switch prints: cfgshow or zonecreate commands of Brocade, the running configuration of Cisco MDS. " +
			"The map says what each WWPN is here, a line each: WWPN, a space, a member. Nothing is changed; with any error there is no candidate, and each names its line.",
		Example: "  inofctl zone import cfgshow.txt --from brocade --map wwpn.txt --to new.yaml\n  inofctl zone impact new.yaml\n  inofctl zone commit new.yaml --confirm 10m",
		RunE: func(cmd *cobra.Command, args []string) error {
			read, ok := makers[from]
			if !ok {
				return usagef("--from is brocade or mds")
			}
			if names == "" {
				return usagef("--map is missing: a file that says what each WWPN is here")
			}
			mapText, err := readText(names)
			if err != nil {
				return err
			}
			m, err := imports.ParseMap(mapText, candidateRules)
			if err != nil {
				return fmt.Errorf("%s:\n%w", names, err)
			}
			text, err := readText(args[0])
			if err != nil {
				return err
			}
			p, err := read(text, imports.Options{Map: m, Rules: candidateRules, VSAN: vsan,
				Left: func(unit string) func(done, all int) { return progress.Begin(cmd.ErrOrStderr(), unit, time.Now) }})
			if err != nil {
				return fmt.Errorf("%s:\n%w", args[0], err)
			}
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				now, err := cl.Zoning(ctx)
				if err != nil {
					return err
				}
				if to == "" && a.format == "json" {
					return a.print(api.ZoneCandidate{Plan: p, Base: now.Version.Base}, nil)
				}
				if to == "" {
					return config.WritePlan(a.out, p, now.Version.Base)
				}
				if err := writeCandidate(to, p, now.Version.Base); err != nil {
					return err
				}
				return a.print(map[string]any{"file": to, "zones": len(p.Zones), "aliases": len(p.Aliases), "zone_sets": len(p.Sets)}, func(w io.Writer) {
					fmt.Fprintf(w, "%s has %d zones, %d aliases, %d zone sets in place of what is in force; next: inofctl zone impact %s\n", to, len(p.Zones), len(p.Aliases), len(p.Sets), to)
				})
			})
		}}
	c.Flags().StringVar(&from, "from", "", "whose text it is: brocade or mds")
	c.Flags().StringVar(&names, "map", "", "file that says what each WWPN is here")
	c.Flags().StringVar(&vsan, "vsan", "", "the VSAN that counts, where an MDS text has several")
	c.Flags().StringVar(&to, "to", "", "new file for the candidate; without it is printed")
	must(c.RegisterFlagCompletionFunc("from", cobra.FixedCompletions([]string{"brocade", "mds"}, cobra.ShellCompDirectiveNoFileComp)))
	return c
}

// maxImport bounds a text that is read, in bytes.
const maxImport = 64 << 20

func readText(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxImport+1))
	if err == nil && len(b) > maxImport {
		err = fmt.Errorf("%s has more than %d bytes", path, maxImport)
	}
	return b, err
}
