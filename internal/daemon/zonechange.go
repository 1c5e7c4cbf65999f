package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// ChangeZone implements api.Source.
func (d *Daemon) ChangeZone(ctx context.Context, o api.ZoneOrder) (api.ZoneChanged, error) {
	done := api.ZoneChanged{Zone: o.Name, DryRun: o.DryRun}
	if d.zones == nil {
		return done, fmt.Errorf("%w: device %s is a client: zones are configured on its reflector", api.ErrRefused, d.cfg.Load().Device.ID)
	}
	e := zoneEdit{do: o.Do, name: o.Name, members: make([]zone.Member, 0, len(o.Members))}
	if zonePast[e.do] == "" {
		return done, fmt.Errorf("%w: %q is nothing to do with a zone", api.ErrInvalid, o.Do)
	}
	for _, text := range o.Members {
		m, err := zone.ParseMember(text)
		if err != nil {
			return done, fmt.Errorf("%w: %w", api.ErrInvalid, err)
		}
		if e.do == api.ZoneAdd || e.do == api.MembersAdd {
			if err := d.cfg.Load().ZoneRules().CheckMember(m); err != nil {
				return done, fmt.Errorf("%w: %w", api.ErrInvalid, err)
			}
		}
		e.members = append(e.members, m)
	}
	plan := d.zones.zoning().Plan()
	e.outcome(plan, &done)
	if o.DryRun {
		after, err := e.onPlan(plan, d.cfg.Load().ZoneRules())
		if err != nil {
			return done, err
		}
		done.Impact, err = d.impactOf(ctx, after)
		return done, err
	}
	if err := d.zones.change(ctx, d.device, e, d.meta(ctx, "")); err != nil {
		return done, d.refused(ctx, "change of zone "+o.Name, err)
	}
	d.zoneChanged(ctx, e.do, &done)
	return done, nil
}

// zonePast has all that can be done to a zone, with the word for events.
var zonePast = map[api.ZoneDo]string{
	api.ZoneAdd: "added", api.ZoneRemove: "removed", api.MembersAdd: "changed", api.MembersRemove: "changed",
}

// zoneChanged makes known who changed what.
func (d *Daemon) zoneChanged(ctx context.Context, do api.ZoneDo, c *api.ZoneChanged) {
	by := api.By(ctx)
	var text string
	switch {
	case do == api.ZoneAdd:
		text = fmt.Sprintf("zone %s was added by %s: %s", c.Zone, by, fewMembers(c.Added))
	case do == api.ZoneRemove:
		text = fmt.Sprintf("zone %s was removed by %s, it had %s", c.Zone, by, fewMembers(c.Removed))
	case do == api.MembersAdd && len(c.Added) > 0:
		text = fmt.Sprintf("zone %s was changed by %s: added %s", c.Zone, by, fewMembers(c.Added))
	case do == api.MembersRemove:
		text = fmt.Sprintf("zone %s was changed by %s: removed %s", c.Zone, by, fewMembers(c.Removed))
	default:
		return // all that was to be added was there
	}
	fields := callerFields(ctx)
	fields["zone"], fields["change"] = c.Zone, zonePast[do]
	for key, list := range map[string][]string{"added": c.Added, "removed": c.Removed} {
		if len(list) > 0 {
			fields[key] = fewMembers(list)
		}
	}
	d.log.Append(api.Event{Time: d.env.Now(), Kind: "zone", Text: text, Fields: fields})
}

// callerFields says who asks for what is done, as fields of an event.
func callerFields(ctx context.Context) map[string]string {
	f := map[string]string{}
	if c, ok := api.CallerOf(ctx); ok {
		f["user"] = c.Name
		if c.From != "" {
			f["from"] = c.From
		} else {
			f["uid"], f["pid"] = strconv.Itoa(c.UID), strconv.Itoa(c.PID)
		}
	}
	return f
}

// mostMembers bounds how many members an event names.
const mostMembers = 32

func fewMembers(list []string) string {
	if len(list) == 0 {
		return "no members"
	}
	return some(list[:min(len(list), mostMembers)], len(list), "")
}

// memberSet has these members: lists of a hundred thousand are compared.
func memberSet(list []zone.Member) map[zone.Member]bool {
	set := make(map[zone.Member]bool, len(list))
	for _, m := range list {
		set[m] = true
	}
	return set
}

// outcome says what an edit of these zones does to the members of its zone.
func (e zoneEdit) outcome(before *change.Plan, done *api.ZoneChanged) {
	had := memberSet(before.Zones[e.name].Members)
	if e.do == api.ZoneRemove {
		done.Removed = before.Zones[e.name].Texts()
		return
	}
	seen := memberSet(nil)
	for _, m := range e.members {
		if m = m.Canonical(); seen[m] {
			continue
		}
		seen[m] = true
		switch {
		case e.do == api.MembersRemove:
			done.Removed = append(done.Removed, m.String())
		case had[m]:
			done.Present = append(done.Present, m.String())
		default:
			done.Added = append(done.Added, m.String())
		}
	}
}

// onPlan gives the plan as it is after an edit.
func (e zoneEdit) onPlan(plan *change.Plan, rules zone.Rules) (*change.Plan, error) {
	old, had := plan.Zones[e.name]
	var was *zone.Zone
	if had {
		was = &zone.Zone{Name: e.name, Members: slices.Clone(old.Members)}
	}
	wanted, err := e.apply(was)
	if err != nil {
		return nil, err
	}
	next := plan.Clone()
	if wanted == nil {
		next.DropZone(e.name)
	} else {
		next.PutZone(e.name, change.Zone{Members: wanted.Members, Aliases: old.Aliases})
	}
	if err := next.Check(rules); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	return next, nil
}

// impactOf says what hosts would be told if another plan were in force.
func (d *Daemon) impactOf(ctx context.Context, after *change.Plan) (*zone.Impact, error) {
	before, err := d.zonesNow(ctx)
	if err != nil {
		return nil, err
	}
	set := after.InForce()
	set.AutoJoin, set.Hard = before.AutoJoin, before.Hard
	return d.impact(ctx, before, set)
}

// zonesNow gives the zones in force.
func (d *Daemon) zonesNow(ctx context.Context) (set zone.Set, err error) {
	err = d.device.Do(ctx, func(c *device.Core, _ time.Time) { set = c.View().Zones() })
	return set, err
}

// shownNotices is how many notices of an impact are named.
const shownNotices = 1000

// impact says what hosts would be told if other zones were in force.
func (d *Daemon) impact(ctx context.Context, before, after zone.Set) (*zone.Impact, error) {
	hosts, faults, err := d.fabricNow(ctx)
	if err != nil {
		return nil, err
	}
	x := zone.ImpactOf(before, after, hosts, faults, shownNotices)
	return &x, nil
}

// fabricNow gives all hosts and faults that are known. The owner goroutine is held up for a part of
// the table at a time.
func (d *Daemon) fabricNow(ctx context.Context) (hosts []zone.Host, faults []zone.Fault, err error) {
	var list []netip.Addr
	err = d.device.Do(ctx, func(c *device.Core, _ time.Time) { faults, list = c.View().Faults(), c.Addresses() })
	if err != nil {
		return nil, nil, err
	}
	for part := range slices.Chunk(list, chunk) {
		if err := d.device.Do(ctx, func(c *device.Core, _ time.Time) {
			for _, a := range part {
				hosts = append(hosts, c.View().Attachments(a)...)
			}
		}); err != nil {
			return nil, nil, err
		}
	}
	return hosts, faults, nil
}

// impactText says in one line whom a change of zones takes apart; empty: nobody.
func impactText(x *zone.Impact) string {
	if x.Inactive == 0 {
		return ""
	}
	var pairs []string
	for _, t := range x.Told {
		if t.Reason != 0 && len(pairs) < mostNamed {
			pairs = append(pairs, fmt.Sprintf("%s of %s", t.Host, t.Subject))
		}
	}
	least := ""
	if x.AtLeast {
		least = "at least "
	}
	return strings.TrimSpace(fmt.Sprintf("%s%d notices would take hosts apart (%s)", least, x.Inactive, some(pairs, x.Inactive, "")))
}
