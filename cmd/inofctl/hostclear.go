package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

func (a *app) hostCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "clear ADDRESS", Short: "Forget a learned host now, a dead claim say; it comes back with its next LLDPDU", Args: arguments(1, 1),
		Long: "Forget a host of this switch on each port it is on, whatever its LLDP time to live. Its peers are told that it has aged out, " +
			"upon which an agent takes its controllers out. A host that is there comes back with its next LLDPDU (the existing agent sends one each 30 s). " +
			"Ask the switch of the host: another one refuses, and names it.",
		Example: "  inofctl host clear 192.0.2.9",
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := parseAddr(args[0])
			if err != nil {
				return usageError{err}
			}
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				list, err := api.ClearHost.Ask(ctx, cl, api.HostAddr{Host: host})
				if err != nil {
					return err
				}
				return a.print(list, func(w io.Writer) {
					for _, h := range list {
						macs := make([]string, len(h.MACs))
						for i, m := range h.MACs {
							macs[i] = m.String()
						}
						fmt.Fprintf(w, "%s (%s) of port %s: cleared\n", h.Host, strings.Join(macs, ", "), query.Printable(h.Port))
					}
				})
			})
		},
	}
	c.ValidArgsFunction = a.complete(hostNames)
	return group("host", "Act on a host of this switch", c)
}
