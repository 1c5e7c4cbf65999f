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

func (a *app) reloadCmd() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "reload", Short: "Have inofd read its configuration again, and say what became of it", Args: arguments(0, 0),
		Long: "Have inofd read its configuration and zone file again, wait, and say what became of it. A configuration that would take hosts away " +
			"is refused as a whole and the hosts are named, unless it is forced. The exit code is 0 only when everything is in force that needs no restart.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				r, err := api.Reload.Ask(ctx, cl, api.ReloadForce{Force: force})
				if err != nil {
					return err
				}
				if err := a.print(r, func(w io.Writer) { reloadedLines(w, r) }); err != nil {
					return err
				}
				if n := len(r.Problems); n > 0 {
					return fmt.Errorf("%s is not wholly in force: %s", r.File, strings.Join(r.Problems, "; "))
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "also when hosts are taken away by it")
	return c
}

func reloadedLines(w io.Writer, r api.Reloaded) {
	switch {
	case len(r.Changed) > 0:
		fmt.Fprintf(w, "%s: in force now: %s\n", query.Printable(r.File), query.Printable(strings.Join(r.Changed, ", ")))
	case len(r.Restart) == 0:
		fmt.Fprintf(w, "%s: nothing has changed\n", query.Printable(r.File))
	}
	if len(r.Restart) > 0 {
		fmt.Fprintf(w, "%s: only a restart changes %s\n", query.Printable(r.File), query.Printable(strings.Join(r.Restart, ", ")))
	}
}
