package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

func (a *app) auditCmd() *cobra.Command {
	var limit int
	c := &cobra.Command{Use: "audit", Short: "Who changed what, or was refused; exits with 3 when a record was tampered with", Args: arguments(0, 0),
		Long: "Print the newest records of who changed what on this device, or was refused, and check the chain of all that are kept: each record has the digest of the " +
			"one before it, so that none can be changed or taken out unseen.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				l, err := api.Ask[api.AuditList](ctx, cl, "audit", api.Where("limit", strconv.Itoa(limit)))
				if err != nil {
					return err
				}
				if err := a.print(l, func(w io.Writer) { auditLines(w, l) }); err != nil {
					return err
				}
				if !l.Whole {
					return finding{}
				}
				return nil
			})
		}}
	c.Flags().IntVar(&limit, "limit", 50, "how many of the newest records are shown")
	return c
}

func auditLines(w io.Writer, l api.AuditList) {
	rows := [][]string{}
	for _, r := range l.Newest {
		what := r.What
		for _, key := range []string{"version", "changes", "comment"} {
			if v := r.Detail[key]; v != "" {
				what += " " + key + ": " + v
			}
		}
		if r.Error != "" {
			what += " " + r.Error
		}
		rows = append(rows, []string{fmt.Sprint(r.Seq), r.Time.Local().Format(time.DateTime), r.By, r.From, r.Result, what})
	}
	query.Table(w, "RECORD TIME BY FROM RESULT WHAT", rows)
	if l.Whole {
		fmt.Fprintf(w, "%d records are kept, and none was changed\n", l.Records)
		return
	}
	fmt.Fprintf(w, "%d records are kept; TAMPERED WITH OR DAMAGED: %s\n", l.Records, query.Printable(l.Trouble))
}
