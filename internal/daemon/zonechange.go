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
)

// ChangeZone implements api.Source.
func (d *Daemon) ChangeZone(ctx context.Context, o api.ZoneOrder) (api.ZoneChanged, error) {
	done := api.ZoneChanged{Zone: o.Name, DryRun: o.DryRun}
	if d.zones == nil {
		return done, fmt.Errorf("%w: device %s is a client: zones are configured on its reflector", api.ErrRefused, d.cfg.Load().Device.ID)
	}
	e := zoneEdit{do: zoneChanges[o.Do], name: o.Name, members: make([]zone.Member, 0, len(o.Members))}
	if e.do == 0 {
		return done, fmt.Errorf("%w: %q is nothing to do with a zone", api.ErrInvalid, o.Do)
	}
	for _, text := range o.Members {
		m, err := zone.ParseMember(text)
		if err != nil {
			return done, fmt.Errorf("%w: %w", api.ErrInvalid, err)
		}
		if e.do == zoneAdd || e.do == membersAdd {
			if err := d.cfg.Load().ZoneRules().CheckMember(m); err != nil {
				return done, fmt.Errorf("%w: %w", api.ErrInvalid, err)
			}
		}
		e.members = append(e.members, m)
	}
	before, err := d.zonesNow(ctx)
	if err != nil {
		return done, err
	}
	e.outcome(before, &done)
	if o.DryRun {
		after, err := e.on(before, d.cfg.Load().ZoneRules())
		if err != nil {
			return done, err
		}
		done.Impact, err = d.impact(ctx, before, after)
		return done, err
	}
	if err := d.zones.change(ctx, d.device, e); err != nil {
		return done, err
	}
	d.zoneChanged(ctx, e.do, &done)
	return done, nil
}

var zoneChanges = map[api.ZoneDo]zoneChange{
	api.ZoneAdd: zoneAdd, api.ZoneRemove: zoneRemove, api.MembersAdd: membersAdd, api.MembersRemove: membersRemove,
}

// zoneChanged makes known who changed what.
func (d *Daemon) zoneChanged(ctx context.Context, do zoneChange, c *api.ZoneChanged) {
	by := api.By(ctx)
	var text string
	switch {
	case do == zoneAdd:
		text = fmt.Sprintf("zone %s was added by %s: %s", c.Zone, by, fewMembers(c.Added))
	case do == zoneRemove:
		text = fmt.Sprintf("zone %s was removed by %s, it had %s", c.Zone, by, fewMembers(c.Removed))
	case do == membersAdd && len(c.Added) > 0:
		text = fmt.Sprintf("zone %s was changed by %s: added %s", c.Zone, by, fewMembers(c.Added))
	case do == membersRemove:
		text = fmt.Sprintf("zone %s was changed by %s: removed %s", c.Zone, by, fewMembers(c.Removed))
	default:
		return // all that was to be added was there
	}
	fields := callerFields(ctx)
	fields["zone"], fields["change"] = c.Zone, do.past()
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
		f["user"], f["uid"], f["pid"] = c.Name, strconv.Itoa(c.UID), strconv.Itoa(c.PID)
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

// outcome says what an edit of these zones does to the members of its zone.
func (e zoneEdit) outcome(before zone.Set, done *api.ZoneChanged) {
	var had []zone.Member
	if i := slices.IndexFunc(before.Zones, func(z zone.Zone) bool { return z.Name == e.name }); i >= 0 {
		had = before.Zones[i].Canonical().Members
	}
	if e.do == zoneRemove {
		done.Removed = memberTexts(had)
		return
	}
	var seen []zone.Member
	for _, m := range e.members {
		if m = m.Canonical(); slices.Contains(seen, m) {
			continue
		}
		seen = append(seen, m)
		there := slices.Contains(had, m)
		switch {
		case e.do == membersRemove:
			done.Removed = append(done.Removed, m.String())
		case there:
			done.Present = append(done.Present, m.String())
		default:
			done.Added = append(done.Added, m.String())
		}
	}
}

func memberTexts(list []zone.Member) []string {
	texts := make([]string, len(list))
	for i, m := range list {
		texts[i] = m.String()
	}
	return texts
}

// on gives all zones as they are after an edit.
func (e zoneEdit) on(set zone.Set, rules zone.Rules) (zone.Set, error) {
	i := slices.IndexFunc(set.Zones, func(z zone.Zone) bool { return z.Name == e.name })
	var old *zone.Zone
	if i >= 0 {
		v := set.Zones[i]
		v.Members = slices.Clone(v.Canonical().Members)
		old = &v
	}
	wanted, err := e.apply(old)
	if err != nil {
		return set, err
	}
	set.Zones = slices.Clone(set.Zones)
	switch {
	case wanted == nil:
		set.Zones = slices.Delete(set.Zones, i, i+1)
	case i >= 0:
		set.Zones[i] = *wanted
	default:
		set.Zones = append(set.Zones, *wanted)
	}
	if err := rules.Check(set); err != nil {
		return set, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	return set.Canonical(), nil
}

// zonesNow gives the zones in force.
func (d *Daemon) zonesNow(ctx context.Context) (set zone.Set, err error) {
	err = d.device.Do(ctx, func(c *device.Core, _ time.Time) { set = c.View().Zones() })
	return set, err
}

// shownNotices is how many notices of an impact are named.
const shownNotices = 1000

// impact says what hosts would be told if other zones were in force. The owner goroutine is
// held up for a part of the table at a time.
func (d *Daemon) impact(ctx context.Context, before, after zone.Set) (*zone.Impact, error) {
	var hosts []zone.Host
	var faults []zone.Fault
	var list []netip.Addr
	err := d.device.Do(ctx, func(c *device.Core, _ time.Time) { faults, list = c.View().Faults(), c.Addresses() })
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(list, chunk) {
		if err := d.device.Do(ctx, func(c *device.Core, _ time.Time) {
			for _, a := range part {
				hosts = append(hosts, c.View().Attachments(a)...)
			}
		}); err != nil {
			return nil, err
		}
	}
	x := zone.ImpactOf(before, after, hosts, faults, shownNotices)
	return &x, nil
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
