package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/internal/api"
)

// zoneTimeout bounds one request to a reflector. It is longer than any fault, so that
// a reflector that is stopped answers it late and not twice.
const zoneTimeout = 30 * time.Second

// setZone gives a zone these members at both reflectors, one after the other; what a
// reflector that is away cannot be told is tried again until it is back.
func (r *runner) setZone(ctx context.Context, name string, members []netip.Addr) error {
	var errs []error
	for _, n := range r.fab.reflectors {
		errs = append(errs, r.persist(ctx, func(ctx context.Context) error { return r.setZoneAt(ctx, n, name, members) }))
	}
	return errors.Join(errs...)
}

// persist repeats something until it is done.
func (r *runner) persist(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*zoneTimeout)
	defer cancel()
	for {
		one, stop := context.WithTimeout(ctx, zoneTimeout)
		err := do(one)
		stop()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// setZoneAt makes the least change that leads to these members.
func (r *runner) setZoneAt(ctx context.Context, node, name string, members []netip.Addr) error {
	c := api.NewClient(r.lab.Socket(node))
	defer c.Close()
	zones, err := api.Ask[[]api.Zone](ctx, c, "zones", api.Where("name", name))
	if err != nil {
		return err
	}
	want := textOf(members)
	i := slices.IndexFunc(zones, func(z api.Zone) bool { return z.Name == name })
	if i < 0 {
		return c.AddZone(ctx, name, want)
	}
	have := zones[i].Members
	add := slices.DeleteFunc(slices.Clone(want), func(m string) bool { return slices.Contains(have, m) })
	gone := slices.DeleteFunc(slices.Clone(have), func(m string) bool { return slices.Contains(want, m) })
	if len(add) > 0 {
		if err := c.AddMembers(ctx, name, add); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		return c.RemoveMembers(ctx, name, gone)
	}
	return nil
}

// dropZone removes a zone at both reflectors.
func (r *runner) dropZone(ctx context.Context, name string) error {
	var errs []error
	for _, n := range r.fab.reflectors {
		errs = append(errs, r.persist(ctx, func(ctx context.Context) error {
			c := api.NewClient(r.lab.Socket(n))
			defer c.Close()
			zones, err := api.Ask[[]api.Zone](ctx, c, "zones", api.Where("name", name))
			if err != nil || len(zones) == 0 {
				return err
			}
			return c.RemoveZone(ctx, name)
		}))
	}
	return errors.Join(errs...)
}

func textOf(addrs []netip.Addr) []string {
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String()
	}
	slices.Sort(out)
	return out
}

// zonesKept tells what a reflector's zones lack of the truth.
func (r *runner) zonesKept(ctx context.Context, node string) error {
	c := api.NewClient(r.lab.Socket(node))
	defer c.Close()
	zones, err := api.Ask[[]api.Zone](ctx, c, "zones", nil)
	if err != nil {
		return err
	}
	for _, name := range extraZones {
		want, have := textOf(r.members(name)), []string{}
		for _, z := range zones {
			if z.Name == name {
				have = slices.Sorted(slices.Values(z.Members))
			}
		}
		if !slices.Equal(want, have) {
			return fmt.Errorf("%s has zone %s with %q, want %q", node, name, have, want)
		}
	}
	return nil
}

func (r *runner) members(zone string) []netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.truth.Members(zone)
}
