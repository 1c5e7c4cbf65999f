package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

func (a *app) configCmd() *cobra.Command {
	run := func(c *cobra.Command, do func(context.Context, *api.Client) (api.ConfigReview, error), show func(io.Writer, api.ConfigReview), bad func(api.ConfigReview) bool) *cobra.Command {
		c.Args = arguments(0, 0)
		c.RunE = func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				r, err := do(ctx, cl)
				if err != nil {
					return err
				}
				if err := a.print(r, func(w io.Writer) { show(w, r) }); err != nil {
					return err
				}
				if bad != nil && bad(r) {
					return finding{}
				}
				return nil
			})
		}
		return c
	}
	plain := func(x *api.Action[api.Nothing, api.ConfigReview]) func(context.Context, *api.Client) (api.ConfigReview, error) {
		return func(ctx context.Context, cl *api.Client) (api.ConfigReview, error) {
			return x.Ask(ctx, cl, api.Nothing{})
		}
	}
	var o api.ConfigOrder
	var confirm time.Duration
	commit := run(&cobra.Command{Use: "commit", Short: "Bring the configuration file into force, if need be for a time only",
		Long: "Bring the configuration file into force as a whole or not at all. With --confirm the configuration before it is in force again after that time, also over a restart, " +
			"unless config confirm comes first; the file itself is never written. What only a restart can change is refused.",
		Example: "  inofctl config diff\n  inofctl config commit --confirm 10m\n  inofctl config confirm"},
		func(ctx context.Context, cl *api.Client) (api.ConfigReview, error) {
			o.Confirm = api.Duration(confirm)
			return api.CommitConfig.Ask(ctx, cl, o)
		}, committedLines, nil)
	commit.Flags().DurationVar(&confirm, "confirm", 0, "take it back after this time unless it is confirmed before")
	commit.Flags().BoolVar(&o.Force, "force", false, "also when hosts are taken away by it")
	return group("config", "Change the configuration of the daemon with a way back",
		run(&cobra.Command{Use: "check", Short: "Say whether the file can be brought into force; exits with 3 when not"}, plain(&api.CheckConfig), configCheckLines,
			func(r api.ConfigReview) bool { return len(r.Problems) > 0 || r.Loss != "" }),
		run(&cobra.Command{Use: "diff", Short: "Say what the file says otherwise than what is in force; exits with 3 when it has errors"}, plain(&api.CheckConfig), configDiffLines,
			func(r api.ConfigReview) bool { return len(r.Problems) > 0 }),
		commit,
		run(&cobra.Command{Use: "confirm", Short: "Keep a configuration that waits for its confirmation"}, plain(&api.ConfirmConfig), committedLines, nil),
		run(&cobra.Command{Use: "undo", Short: "Bring the configuration before the last commit into force"}, plain(&api.UndoConfig), committedLines, nil))
}

func configCheckLines(w io.Writer, r api.ConfigReview) {
	textLines(w, "error: ", r.Problems)
	if r.Loss != "" {
		textLines(w, "needs --force: ", []string{r.Loss})
	}
	n := 0
	for _, c := range r.Changes {
		if c.Restart {
			n++
		}
	}
	if len(r.Problems) == 0 {
		fmt.Fprintf(w, "%s: good, %d setting(s) differ from what is in force, %d of them need a restart\n", query.Printable(r.File), len(r.Changes), n)
	}
	waits(w, r)
}

func configDiffLines(w io.Writer, r api.ConfigReview) {
	if len(r.Problems) > 0 { // of such a file nothing is compared
		textLines(w, "error: ", r.Problems)
		return
	}
	rows := [][]string{}
	for _, c := range r.Changes {
		when := "at commit"
		if c.Restart {
			when = "restart"
		}
		rows = append(rows, []string{c.Key, c.Old, c.New, when})
	}
	if len(rows) == 0 {
		fmt.Fprintln(w, "nothing differs")
		return
	}
	query.Table(w, "SETTING IN-FORCE FILE CHANGES", rows)
}

func committedLines(w io.Writer, r api.ConfigReview) {
	if r.Back {
		fmt.Fprintf(w, "the configuration before %s is in force; the file is as it was\n", query.Printable(r.File))
		return
	}
	fmt.Fprintf(w, "%s is in force\n", query.Printable(r.File))
	waits(w, r)
}

func waits(w io.Writer, r api.ConfigReview) {
	if r.Confirm != nil {
		fmt.Fprintf(w, "until %s, unless it is confirmed before: inofctl config confirm\n", r.Confirm.Local().Format(time.RFC3339))
	}
}
