package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/zone"
)

func (a *app) clusterCmd() *cobra.Command {
	at := func(use, short, done string, do *api.Action[api.ClusterChange, api.Nothing]) *cobra.Command {
		return a.changeCmd(&cobra.Command{Use: use + " DEVICE ADDRESS", Short: short, Example: "  inofctl cluster " + use + " 192.0.2.253 192.0.2.253:19517"},
			2, 2, func(ctx context.Context, c *api.Client, args []string) (string, error) {
				ch, err := clusterChange(args)
				if err != nil {
					return "", usageError{err}
				}
				return fmt.Sprintf(done, ch.Device, ch.Address), do.Do(ctx, c, ch)
			})
	}
	add := at("add", "Make the device that listens at an address a member", "member %s at %s added; it catches up and votes then", &api.AddMember)
	replace := at("replace", "Put a device with an empty disk, or at another address, in the place of the member it was",
		"member %s replaced by that at %s; it catches up and votes then", &api.ReplaceMember)
	remove := a.changeCmd(&cobra.Command{Use: "remove DEVICE", Short: "End the membership of a device"},
		1, 1, func(ctx context.Context, c *api.Client, args []string) (string, error) {
			dev, err := parseAddr(args[0])
			if err != nil {
				return "", usageError{err}
			}
			return fmt.Sprintf("member %s removed", dev), c.RemoveMember(ctx, dev)
		})
	remove.ValidArgsFunction = a.complete(clusterMembers)
	replace.ValidArgsFunction = a.complete(clusterMembers)
	set := a.changeCmd(&cobra.Command{Use: "set NAME VALUE", Short: "Change default-zone-auto-join or hard-zoning of the cluster",
		ValidArgs: []string{"default-zone-auto-join", "hard-zoning"}},
		2, 2, func(ctx context.Context, c *api.Client, args []string) (string, error) {
			return fmt.Sprintf("%s is %s", args[0], args[1]), api.SetClusterSetting.Do(ctx, c, api.ClusterSetting{Name: args[0], Value: args[1]})
		})
	return group("cluster", "Change the members, settings and zones of a cluster of reflectors", add, remove, replace, set, a.clusterLoadCmd())
}

// clusterLoadCmd makes a version of a whole file, on the terms of every other one: a file that is
// cut short, or another fabric's, is found before it takes hosts apart.
func (a *app) clusterLoadCmd() *cobra.Command {
	var f commitFlags
	c := &cobra.Command{Use: "load FILE", Short: "Replace all zones of the cluster by those of a zone file", Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := readCandidate(args[0])
			if err != nil {
				return err
			}
			return a.commitZones(cmd, &f, func(now api.Zoning) (api.ZoneCandidate, error) {
				x.Base = now.Version.Base
				return x, nil
			})
		}}
	f.add(c)
	return c
}

func clusterChange(args []string) (api.ClusterChange, error) {
	dev, err := parseAddr(args[0])
	if err != nil {
		return api.ClusterChange{}, err
	}
	ap, err := netip.ParseAddrPort(args[1])
	if err != nil {
		return api.ClusterChange{}, fmt.Errorf("%q is not IP:port", args[1])
	}
	return api.ClusterChange{Device: dev, Address: ap}, nil
}

func clusterMembers(ctx context.Context, c *api.Client) ([]string, error) {
	cl, err := api.Ask[api.Cluster](ctx, c, "cluster", nil)
	names := []string{}
	for _, m := range cl.Members {
		names = append(names, m.Device.String())
	}
	return names, err
}

// exportCmd prints the zones of a reflector as a zone file.
func (a *app) exportCmd() *cobra.Command {
	return &cobra.Command{Use: "export", Short: "Print the zones as a zone file", Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, c *api.Client) error {
				z, err := c.Zoning(ctx)
				switch {
				case errors.Is(err, api.ErrRefused): // a client knows what is in force, not how it is written
				case err != nil:
					return err
				case a.format == "json":
					return a.print(z.Plan, nil)
				default:
					return config.WritePlan(a.out, z.Plan, "")
				}
				list, err := api.Ask[[]api.Zone](ctx, c, "zones", nil)
				if err != nil {
					return err
				}
				var set zone.Set
				for _, z := range list {
					if z.Name == zone.DefaultName {
						continue
					}
					next := zone.Zone{Name: z.Name}
					for _, text := range z.Members {
						m, err := zone.ParseMember(text)
						if err != nil {
							return err
						}
						next.Members = append(next.Members, m)
					}
					set.Zones = append(set.Zones, next)
				}
				if a.format == "json" {
					return a.print(set.Canonical().Zones, nil)
				}
				return config.WriteZones(a.out, set)
			})
		}}
}
