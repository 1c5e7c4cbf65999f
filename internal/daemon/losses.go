package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/query"
	"github.com/openinof/inof/zone"
)

// mostNamed bounds how many ports, devices, and addresses of each a refusal names.
const mostNamed = 32

// losses says in one line which hosts a new configuration would take away; empty: none.
func (d *Daemon) losses(ctx context.Context, old, next *config.Config, changes config.Changes) (string, error) {
	var list []string
	if changes.Has("ports.access") {
		names, err := fabric.ParseNames(next.Ports.Access)
		if err != nil {
			return "", fmt.Errorf("ports.access: %w", err)
		}
		var losing []api.PortHosts
		if err := d.device.Do(ctx, func(c *device.Core, _ time.Time) { losing = c.Losing(names) }); err != nil {
			return "", err
		}
		if text := portsText(losing); text != "" {
			list = append(list, "ports.access would leave out "+text)
		}
	}
	if changes.Has("hosts") {
		var losing []api.PortHosts
		if err := d.device.Do(ctx, func(c *device.Core, _ time.Time) { losing = c.LosingByHosts(hostsConfig(next)) }); err != nil {
			return "", err
		}
		if text := portsText(losing); text != "" {
			list = append(list, "hosts.bindings and hosts.frame-source would refuse, or no longer declare, "+text)
		}
	}
	if text, err := d.pairsLost(ctx, next, changes); err != nil {
		return "", err
	} else if text != "" {
		list = append(list, text)
	}
	if text, err := d.clientsShutOut(ctx, old, next, changes); err != nil {
		return "", err
	} else if text != "" {
		list = append(list, text)
	}
	if text, err := d.hostsExcluded(ctx, next, changes); err != nil {
		return "", err
	} else if text != "" {
		list = append(list, text)
	}
	if text, err := d.hostsUndeclared(ctx, old, next, changes); err != nil {
		return "", err
	} else if text != "" {
		list = append(list, text)
	}
	return strings.Join(list, "; "), nil
}

// hostsUndeclared says which known hosts reflector.hosts would no longer declare.
func (d *Daemon) hostsUndeclared(ctx context.Context, old, next *config.Config, changes config.Changes) (string, error) {
	if !changes.Has("reflector.hosts") {
		return "", nil
	}
	var hosts []zone.Host
	err := d.device.Do(ctx, func(c *device.Core, _ time.Time) {
		hosts = c.Undeclared(declarations(old.Reflector.Hosts), declarations(next.Reflector.Hosts))
	})
	if len(hosts) == 0 {
		return "", err
	}
	return "reflector.hosts would no longer declare " + hostsOfDevices(hosts), err
}

// hostsExcluded says which known hosts the bindings of reflector.clients would not allow.
func (d *Daemon) hostsExcluded(ctx context.Context, next *config.Config, changes config.Changes) (string, error) {
	if !changes.Has("reflector.clients") {
		return "", nil
	}
	var hosts []zone.Host
	if err := d.device.Do(ctx, func(c *device.Core, _ time.Time) { hosts = c.Excluded(bindingsOf(next)) }); err != nil {
		return "", err
	}
	if len(hosts) == 0 {
		return "", nil
	}
	return "the bindings of reflector.clients would leave out " + hostsOfDevices(hosts), nil
}

// hostsOfDevices names hosts and their devices.
func hostsOfDevices(hosts []zone.Host) string {
	var parts []string
	for _, h := range hosts[:min(len(hosts), mostNamed)] {
		parts = append(parts, fmt.Sprintf("host %s of device %s", h.Addr, h.Device))
	}
	return some(parts, len(hosts), "hosts")
}

// portsText names ports and the hosts there.
func portsText(list []api.PortHosts) string {
	var parts []string
	for _, p := range list[:min(len(list), mostNamed)] {
		parts = append(parts, fmt.Sprintf("port %s with %s", p.Port, hostsText(p.Hosts)))
	}
	return some(parts, len(list), "ports")
}

// hostsText names addresses of hosts.
func hostsText(addrs []netip.Addr) string {
	names := make([]string, min(len(addrs), mostNamed))
	for i := range names {
		names[i] = addrs[i].String()
	}
	if len(addrs) == 1 {
		return "host " + names[0]
	}
	return fmt.Sprintf("%d hosts (%s)", len(addrs), some(names, len(addrs), ""))
}

// some joins what is named, and says how many more there are.
func some(names []string, all int, what string) string {
	text := strings.Join(names, ", ")
	if more := all - len(names); more > 0 {
		text += strings.TrimRight(fmt.Sprintf(" and %d more %s", more, what), " ")
	}
	return text
}

// clientsShutOut says which clients with hosts a list of those that may connect leaves out.
func (d *Daemon) clientsShutOut(ctx context.Context, old, next *config.Config, changes config.Changes) (string, error) {
	if !changes.Has("reflector.clients") || len(next.Reflector.Clients) == 0 {
		return "", nil
	}
	hosts, err := query.Hosts(ctx, d, query.Asked{})
	if err != nil {
		return "", err
	}
	lost := map[netip.Addr][]netip.Addr{}
	var order []netip.Addr
	for i := range hosts {
		dev := hosts[i].Device
		if dev == old.Device.ID || next.Reflector.Allows(dev) || !old.Reflector.Allows(dev) {
			continue
		}
		if lost[dev] == nil {
			order = append(order, dev)
		}
		lost[dev] = append(lost[dev], hosts[i].Addr)
	}
	slices.SortFunc(order, netip.Addr.Compare)
	var parts []string
	for _, dev := range order[:min(len(order), mostNamed)] {
		parts = append(parts, fmt.Sprintf("device %s with %s", dev, hostsText(lost[dev])))
	}
	if len(parts) == 0 {
		return "", nil
	}
	return "reflector.clients would shut out " + some(parts, len(order), "devices"), nil
}

// pairsLost says which hosts other settings of zones would take apart. What is in the
// zone file is somebody's word on zones; a setting that makes another file count, or ends
// the default zone, may be a mistake.
func (d *Daemon) pairsLost(ctx context.Context, next *config.Config, changes config.Changes) (string, error) {
	if !changes.Has("zones.file") && !changes.Has("zones.default-zone-auto-join") || d.zones == nil || d.cluster != nil {
		return "", nil
	}
	before, err := d.zonesNow(ctx)
	if err != nil {
		return "", err
	}
	after, err := config.LoadZones(next.Zones.File, next.ZoneRules())
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || len(before.Zones) > 0 {
			return "", nil // refused further down: the zones stay as they are
		}
	}
	after.AutoJoin = next.Zones.AutoJoin
	x, err := d.impact(ctx, before, after)
	if err != nil || x.Inactive == 0 {
		return "", err
	}
	return "the settings of zones: " + impactText(x), nil
}
