package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/daemon"
	"github.com/openinof/inof/internal/query"
	"github.com/openinof/inof/zone"
)

const memberHelp = "A member is an address, a range FIRST-LAST, a prefix, an NQN, 'NQN at PLACE', or port:DEVICE/PORT. " +
	"A PLACE is DEVICE, DEVICE/PORT or a prefix: an NQN alone is any host that says it."

// joinPlaces puts NQN, at and PLACE together that a shell has taken apart.
func joinPlaces(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] == "at" && len(out) > 0 && i+1 < len(args) {
			out[len(out)-1] += " at " + args[i+1]
			i++
			continue
		}
		out = append(out, args[i])
	}
	return out
}

// checkMembers finds typing mistakes before the daemon is asked.
func checkMembers(members []string) error {
	var errs []error
	for _, m := range members {
		if _, err := zone.ParseMember(m); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return usageError{errors.Join(errs...)}
	}
	return nil
}

// changeCmd makes a command that has the daemon do something and says what was done.
func (a *app) changeCmd(c *cobra.Command, least, most int, do func(context.Context, *api.Client, []string) (string, error)) *cobra.Command {
	c.Args = arguments(least, most)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
			done, err := do(ctx, cl, args)
			if err != nil {
				return err
			}
			return a.print(map[string]string{"done": done}, func(w io.Writer) { fmt.Fprintln(w, query.Printable(done)) })
		})
	}
	return c
}

func (a *app) portCmd() *cobra.Command {
	rec := a.changeCmd(&cobra.Command{Use: "recover NAME", Short: "End the error-down of a port"},
		1, 1, func(ctx context.Context, c *api.Client, args []string) (string, error) {
			return fmt.Sprintf("port %s recovered", args[0]), api.RecoverPort.Do(ctx, c, api.PortName{Port: args[0]})
		})
	rec.ValidArgsFunction = a.complete(portNames)
	shut := a.changeCmd(&cobra.Command{Use: "shut NAME", Short: "Shut a port by hand, after its hosts' peers were told; recover opens it"},
		1, 1, func(ctx context.Context, c *api.Client, args []string) (string, error) {
			return fmt.Sprintf("port %s is being shut", args[0]), api.ShutPort.Do(ctx, c, api.PortName{Port: args[0]})
		})
	shut.ValidArgsFunction = a.complete(portNames)
	return group("port", "Act on an access port", rec, shut)
}

// warningsOf are the lines of a check that warn.
func warningsOf(text string) []string {
	list := []string{}
	for line := range strings.Lines(text) {
		if strings.Contains(line, ": warning: ") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

func (a *app) checkCmd() *cobra.Command {
	return &cobra.Command{Use: "check FILE", Short: "Check a configuration or zone file, as inofd check does", Args: arguments(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, cfg, err := config.Check(args[0], config.Environment())
			if err == nil && cfg != nil {
				err = daemon.CheckHere(args[0], cfg)
			}
			if err == nil {
				return a.print(map[string]any{"file": args[0], "good": true, "problems": []string{}, "warnings": warningsOf(text)},
					func(w io.Writer) { fmt.Fprintln(w, text) })
			}
			problems := strings.Split(err.Error(), "\n")
			what := "1 problem"
			if len(problems) > 1 {
				what = fmt.Sprintf("%d problems", len(problems))
			}
			if a.format == "json" {
				if err := a.print(map[string]any{"file": args[0], "good": false, "problems": problems}, nil); err != nil {
					return err
				}
			} else {
				fmt.Fprintln(a.err, err)
			}
			return fmt.Errorf("%s: %s", args[0], what)
		}}
}

// complete asks the daemon for the words that can stand at the first argument or in a flag.
func (a *app) complete(words func(context.Context, *api.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (list []string, d cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a.patience = min(a.patience, completionTimeout)
		err := a.call(cmd, func(ctx context.Context, c *api.Client) (err error) {
			list, err = words(ctx, c)
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// words are what completion offers, by their kind.
var words = map[query.Words]func(context.Context, *api.Client) ([]string, error){query.PortNames: portNames, query.HostAddrs: hostNames, query.ZoneNames: zoneNames}

func zoneNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.Ask[[]api.Zone](ctx, c, "zones", nil)
	names := []string{}
	for _, z := range list {
		names = append(names, z.Name)
	}
	return names, err
}

func portNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.Ask[[]api.Port](ctx, c, "ports", nil)
	names := []string{}
	for _, p := range list {
		names = append(names, p.Name)
	}
	return names, err
}

func hostNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.Ask[[]api.Host](ctx, c, "hosts", nil)
	names := []string{}
	for _, h := range list {
		names = append(names, h.Addr.String())
	}
	return names, err
}
