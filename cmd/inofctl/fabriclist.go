package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/model"
)

// listedMechanism is an entry of the registry as it is printed.
type listedMechanism struct {
	Part  model.Part  `json:"part"`
	Kind  string      `json:"kind"`
	About string      `json:"about"`
	Sets  []listedSet `json:"sets,omitempty"`
	Keys  []model.Key `json:"keys,omitempty"`
}

type listedSet struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

func fabricListCmd() *cobra.Command {
	return &cobra.Command{Use: "list [KIND]", Short: "List the mechanisms that a scenario may choose, or the keys of one", Args: arguments(0, 1),
		Long: `Lists what may stand at each part of a fabric: rate controls, load balancers and so on, as a
scenario names them. With the name of one, or of a part, also its keys with their defaults.`,
		Example: "  inofctl fabric list dcqcn",
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []listedMechanism
			for _, p := range model.Parts {
				for _, m := range model.Mechanisms(p.Part) {
					if len(args) > 0 && args[0] != m.Kind && args[0] != string(p.Part) {
						continue
					}
					l := listedMechanism{Part: p.Part, Kind: m.Kind, About: m.About, Keys: model.Keys(m.New())}
					for _, s := range m.Sets {
						l.Sets = append(l.Sets, listedSet{s.Name, s.About})
					}
					all = append(all, l)
				}
			}
			if len(all) == 0 {
				return usagef("no mechanism or part %q; inofctl fabric list shows all", args[0])
			}
			if asJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), all)
			}
			tw := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, m := range all {
				fmt.Fprintf(tw, "%s\t%s\t%s\n", m.Part, m.Kind, m.About)
				for _, s := range m.Sets {
					fmt.Fprintf(tw, "\t  set %s\t%s\n", s.Name, s.About)
				}
				if len(args) > 0 {
					for _, k := range m.Keys {
						fmt.Fprintf(tw, "\t  %s: %s\t%s (%s)\n", k.Name, k.Default, k.About, k.Type)
					}
				}
			}
			return tw.Flush()
		}}
}
