package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

func (a *app) showCmd() *cobra.Command {
	c := group("show", "Show hosts, zones, peers, ports, faults, notices, latency, events")
	for i := range query.All {
		c.AddCommand(a.queryCmd(&query.All[i]))
	}
	return c
}

func parseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, fmt.Errorf("%q is not an IP address", s)
	}
	return a.Unmap(), nil
}

// queryCmd is the command of a registered query.
func (a *app) queryCmd(q *query.Query) *cobra.Command {
	c := &cobra.Command{Use: q.Name, Short: q.Short, Long: q.Long, Example: q.Example}
	most := 0
	if q.Arg != nil {
		c.Use, most = q.Name+" ["+q.Arg.Word+"]", 1
		if w := words[q.Arg.Words]; w != nil {
			c.ValidArgsFunction = a.complete(w)
		}
	}
	values := a.filterFlags(c, q.Filters)
	for _, f := range q.Flags {
		c.Flags().Bool(f.Name, false, f.Usage)
	}
	c.Args = arguments(0, most)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		asked := values()
		if len(args) == 1 {
			if err := q.Arg.Check(args[0]); err != nil {
				return usageError{err}
			}
			asked.Set(q.Arg.Name, args[0])
		}
		return a.call(cmd, func(ctx context.Context, cl *api.Client) error { return a.showQuery(ctx, cl, cmd, q, asked) })
	}
	return c
}

func (a *app) showQuery(ctx context.Context, cl *api.Client, cmd *cobra.Command, q *query.Query, asked url.Values) error {
	answer, err := api.Ask[json.RawMessage](ctx, cl, q.Path, asked)
	if err != nil {
		return err
	}
	if q.Arg != nil && asked.Has(q.Arg.Name) {
		if text := q.Empty(answer, asked.Get(q.Arg.Name)); text != "" {
			return errors.New(text)
		}
	}
	set := func(f query.Flag) bool { on, _ := cmd.Flags().GetBool(f.Name); return on }
	for _, f := range q.Flags {
		if set(f) {
			asked.Set(f.Name, "true")
		}
	}
	if err = errors.Join(a.print(answer, func(w io.Writer) { err = q.Show(a.page(w), answer, query.Asked{Values: asked}) }), err); err != nil {
		return err
	}
	for _, f := range q.Flags {
		if f.Finding != nil && set(f) {
			if text := f.Finding(answer); text != "" {
				return finding{errors.New(text)}
			}
		}
	}
	return nil
}

// filterFlags makes a flag of each filter and returns what gives those that were asked for.
func (a *app) filterFlags(c *cobra.Command, list []query.Filter) func() url.Values {
	flags := map[string]*filterFlag{}
	for i := range list {
		f := &list[i]
		if f.Hidden {
			continue
		}
		name := cmp.Or(f.Flag, f.Name)
		flags[f.Name] = &filterFlag{f, f.Default}
		made := c.Flags().VarPF(flags[f.Name], name, "", f.Usage)
		if f.Kind == query.Yes {
			made.NoOptDefVal = "true"
		}
		if w := words[f.Words]; w != nil {
			must(c.RegisterFlagCompletionFunc(name, a.complete(w)))
		} else if f.Options != nil {
			must(c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(f.Options, cobra.ShellCompDirectiveNoFileComp)))
		}
	}
	return func() url.Values {
		out := url.Values{}
		for name, f := range flags {
			if f.value != "" {
				out.Set(name, f.value)
			}
		}
		return out
	}
}

// filterFlag is a flag that takes what a filter does.
type filterFlag struct {
	filter *query.Filter
	value  string
}

func (f *filterFlag) String() string { return f.value }

func (f *filterFlag) Type() string {
	switch {
	case f.filter == nil:
		return ""
	case f.filter.Options != nil:
		return strings.Join(f.filter.Options, "|")
	}
	return map[query.Kind]string{query.Text: "string", query.Address: "address", query.Number: "number", query.Yes: "bool"}[f.filter.Kind]
}

// Set implements pflag.Value.
func (f *filterFlag) Set(s string) error {
	if err := f.filter.Check(s); err != nil {
		return err
	}
	f.value = s
	return nil
}
