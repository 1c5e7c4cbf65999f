package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

// reconnectEvery is how often watch looks for a daemon that went away.
const reconnectEvery = 500 * time.Millisecond

func (a *app) watchCmd() *cobra.Command {
	c := &cobra.Command{Use: "watch", Short: "Print events as they happen, until ^C", Args: arguments(0, 0),
		Long: "Print events as they happen, until ^C. When the daemon restarts, watch waits for it and goes on where it was."}
	values := a.filterFlags(c, query.EventFilters)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.watch(cmd.Context(), query.EventQuery(query.Asked{Values: values()}))
	}
	return c
}

// watch follows events over restarts of the daemon; only a first attempt may fail.
func (a *app) watch(ctx context.Context, q api.EventQuery) error {
	c := api.NewClient(a.socket)
	defer c.Close()
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	print := func(e api.Event) {
		q.After = e.ID
		if a.format == "json" {
			enc.Encode(e) // an error shows at the next write of a closed pipe: SIGPIPE ends us
			return
		}
		fmt.Fprintf(a.out, "%s  %-8s  %s\n", a.page(nil).Stamp(e.Time), query.Printable(e.Kind), query.Printable(e.Text))
	}
	missed := func(n uint64) { fmt.Fprintf(a.err, "inofctl: %d events missed\n", n) }
	for lost := false; ; {
		err := c.Follow(ctx, q, a.patience, print, missed)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, io.EOF):
			if !lost {
				fmt.Fprintln(a.err, "inofctl: inofd went away, waiting for it")
			}
			lost = true
			// The next daemon's events from its very first on, if none was seen yet.
			q.After = max(q.After, 1)
		case !lost || !errors.Is(err, api.ErrNotRunning):
			return a.unanswered(err, a.patience)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnectEvery):
		}
	}
}
