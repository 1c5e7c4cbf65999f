package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/audit"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// zoneOwner gives what has the zones of this device.
func (d *Daemon) zoneOwner() (zoneKeeper, error) {
	if d.zones == nil {
		return nil, fmt.Errorf("%w: device %s is a client: zones are configured on its reflector", api.ErrRefused, d.cfg.Load().Device.ID)
	}
	return d.zones, nil
}

// meta says who makes a change, and from where.
func (d *Daemon) meta(ctx context.Context, comment string) change.Meta {
	return change.Meta{Time: d.env.Now().UTC(), By: api.By(ctx), From: "device " + d.cfg.Load().Device.ID.String(), Comment: comment}
}

// Zoning implements api.ZoningSource.
func (d *Daemon) Zoning(context.Context) (api.Zoning, error) {
	z, err := d.zoneOwner()
	if err != nil {
		return api.Zoning{}, err
	}
	b := z.zoning()
	return api.Zoning{Device: d.cfg.Load().Device.ID, Version: versionNow(b), Plan: b.Plan()}, nil
}

// versionNow gives the version in force as the API says it.
func versionNow(b *change.Book) api.ZoneVersion { return versionOf(b.Last(), b.Pending()) }

func versionOf(v change.Version, p *change.Pending) api.ZoneVersion {
	out := api.ZoneVersion{Number: v.Number, Base: v.Base, Time: v.Time, By: v.By, From: v.From, Comment: v.Comment, Changes: slices.Clone(v.Lines)}
	if p != nil && p.Number == v.Number {
		out.Confirm = &p.Deadline
	}
	return out
}

// Bounds of what is said of a candidate.
const (
	shownFindings = 100
	shownChanges  = 1000
)

// CheckZones implements api.ZoningSource.
func (d *Daemon) CheckZones(ctx context.Context, c api.ZoneCandidate) (api.ZoneReview, error) {
	z, err := d.zoneOwner()
	if err != nil {
		return api.ZoneReview{}, err
	}
	cfg := d.cfg.Load()
	b := z.zoning()
	r := api.ZoneReview{Device: cfg.Device.ID, Version: versionNow(b)}
	if err := b.Admit(c.Base, c.Extends); err != nil {
		r.Conflict = err.Error()
	}
	delta := change.Diff(b.Plan(), c.Plan)
	r.Changes = delta.Lines(b.Plan(), shownChanges)
	if err := c.Plan.Check(cfg.ZoneRules()); err != nil {
		r.Errors = strings.Split(err.Error(), "\n")
		return r, nil
	}
	before, err := d.zonesNow(ctx)
	if err != nil {
		return r, err
	}
	hosts, faults, err := d.fabricNow(ctx)
	if err != nil {
		return r, err
	}
	after := c.Plan.InForce()
	after.AutoJoin, after.Hard = before.AutoJoin, before.Hard
	x := zone.ImpactOf(before, after, hosts, faults, shownNotices)
	r.Impact = &x
	r.Warnings = change.Findings(c.Plan, hosts, shownFindings)
	r.Loss = lossOf(&x, cfg.Zones.MaxLoss)
	r.Told = api.Duration(toldIn(&x, cfg.Notify.FramesPerWindow, cfg.Notify.Window))
	return r, nil
}

// lossOf says why a change needs to be forced; empty: it does not.
func lossOf(x *zone.Impact, most int) string {
	if x.PairsLost == 0 || x.PairsLost*100 <= x.PairsBefore*most {
		return ""
	}
	return fmt.Sprintf("it takes %d of %d pairs of hosts apart (%d of them can be reached now, %d services lose their last path), more than zones.max-loss (%d %%)",
		x.PairsLost, x.PairsBefore, x.LostActive, x.CutOff, most)
}

// noticesPerFrame is how many notices of IPv4 hosts with an NQN of 60 octets one frame holds.
const noticesPerFrame = 10

// toldIn is how long the frames of all notices take at least to the host that is told most, at the
// pacing of its port.
func toldIn(x *zone.Impact, perWindow int, window time.Duration) time.Duration {
	frames := (x.MostTold + noticesPerFrame - 1) / noticesPerFrame
	return time.Duration(frames/max(1, perWindow)) * window
}

// CommitZones implements api.ZoningSource.
func (d *Daemon) CommitZones(ctx context.Context, c api.ZoneCandidate) (api.ZoneCommitted, error) {
	done := api.ZoneCommitted{Device: d.cfg.Load().Device.ID}
	r, err := d.CheckZones(ctx, c)
	if x := r.Impact; x != nil {
		api.Note(ctx, "pairs", fmt.Sprintf("%d before, %d gained, %d lost", x.PairsBefore, x.PairsGained, x.PairsLost))
	}
	if c.Comment != "" {
		api.Note(ctx, "comment", c.Comment)
	}
	switch {
	case err != nil:
	case r.Conflict != "":
		err = &kindError{r.Conflict, api.ErrConflict}
	case len(r.Errors) > 0:
		err = &kindError{strings.Join(r.Errors, "\n"), api.ErrInvalid}
	case r.Loss != "" && !c.Force:
		err = &kindError{r.Loss + "; look with zone impact, and if it is meant: --force", api.ErrRefused}
	}
	if err != nil {
		return done, d.refused(ctx, "change of the zones", err)
	}
	o := change.Order{Delta: change.Diff(d.zones.zoning().Plan(), c.Plan), Base: c.Base, Meta: d.meta(ctx, c.Comment), Extends: c.Extends}
	if c.Confirm > 0 {
		o.Deadline = o.Meta.Time.Add(time.Duration(c.Confirm))
	}
	v, made, err := d.zones.commit(ctx, d.device, o)
	if err != nil {
		return done, d.refused(ctx, "change of the zones", err)
	}
	done.Changed, done.Version = made, versionNow(d.zones.zoning())
	if made {
		text := "zones were changed"
		if !o.Deadline.IsZero() {
			text = fmt.Sprintf("zones were changed until %s, unless that is confirmed before", o.Deadline.UTC().Format(time.RFC3339))
		}
		d.versionMade(ctx, text, v)
	}
	return done, nil
}

// SettleZones implements api.ZoningSource.
func (d *Daemon) SettleZones(ctx context.Context, number uint64, stay bool) (api.ZoneVersion, error) {
	z, err := d.zoneOwner()
	if err != nil {
		return api.ZoneVersion{}, err
	}
	v, err := z.settle(ctx, d.device, number, stay, d.meta(ctx, "taken back by hand"))
	if err != nil {
		return api.ZoneVersion{}, d.refused(ctx, "confirmation or end of a change of the zones", err)
	}
	text := "change of the zones was taken back"
	if stay {
		text = "change of the zones was confirmed"
	}
	d.versionMade(ctx, text, v)
	return versionNow(z.zoning()), nil
}

// ZoneVersions implements api.ZoningSource.
func (d *Daemon) ZoneVersions(context.Context) ([]api.ZoneVersion, error) {
	z, err := d.zoneOwner()
	if err != nil {
		return nil, err
	}
	b := z.zoning()
	var list []api.ZoneVersion
	for _, v := range b.Versions() {
		list = append(list, versionOf(v, b.Pending()))
	}
	return list, nil
}

// ZonesAt implements api.ZoningSource.
func (d *Daemon) ZonesAt(_ context.Context, number uint64) (api.Zoning, error) {
	z, err := d.zoneOwner()
	if err != nil {
		return api.Zoning{}, err
	}
	b := z.zoning()
	p, err := b.At(number)
	if err != nil {
		return api.Zoning{}, changeError(err)
	}
	out := api.Zoning{Device: d.cfg.Load().Device.ID, Plan: p}
	for _, v := range b.Versions() {
		if v.Number == number {
			out.Version = versionOf(v, b.Pending())
		}
	}
	return out, nil
}

// versionMade makes known who made which version.
func (d *Daemon) versionMade(ctx context.Context, what string, v change.Version) {
	api.Note(ctx, "version", fmt.Sprint(v.Number))
	api.Note(ctx, "base", v.Base)
	api.Note(ctx, "changes", strings.Join(v.Lines, "; "))
	fields := callerFields(ctx)
	fields["version"], fields["base"], fields["change"] = fmt.Sprint(v.Number), v.Base, "version"
	if v.Comment != "" {
		fields["comment"] = v.Comment
	}
	text := fmt.Sprintf("%s by %s, version %d is in force", what, api.By(ctx), v.Number)
	if len(v.Lines) > 0 {
		text += ": " + strings.Join(v.Lines, "; ")
	}
	d.log.Append(api.Event{Time: d.env.Now(), Kind: "zone", Text: text, Fields: fields})
}

// refused makes known who asked for what was refused, and why.
func (d *Daemon) refused(ctx context.Context, what string, err error) error {
	fields := callerFields(ctx)
	fields["change"] = "refused"
	d.zonesRefused.Add(1)
	d.log.Append(api.Event{Time: d.env.Now(), Kind: "zone", Text: fmt.Sprintf("%s by %s was refused: %s", what, api.By(ctx), oneLine(err.Error())), Fields: fields})
	return err
}

// zoneReturns takes changes of zones back that nobody confirmed.
type zoneReturns struct{ d *Daemon }

// returnsEvery is how often it looks: a deadline is kept to about a second.
const returnsEvery = time.Second

// Run implements task.
func (z zoneReturns) Run(ctx context.Context) error {
	return every(ctx, returnsEvery, func() {
		now := z.d.env.Now()
		m := change.Meta{Time: now.UTC(), By: "no confirmation", From: "device " + z.d.cfg.Load().Device.ID.String(), Comment: "it was not confirmed in time"}
		v, done, err := z.d.zones.returns(ctx, z.d.device, now, m)
		z.d.warn("zones", err)
		if done {
			z.d.keepDeed(audit.Record{By: m.By, From: m.From, What: "return of zones", Result: "done", Detail: map[string]string{
				"version": fmt.Sprint(v.Number), "base": v.Base, "changes": strings.Join(v.Lines, "; ")}})
			text := fmt.Sprintf("change of the zones was not confirmed in time and was taken back, version %d is in force: %s", v.Number, strings.Join(v.Lines, "; "))
			z.d.log.Append(api.Event{Time: now, Kind: "zone", Text: text, Fields: map[string]string{"version": fmt.Sprint(v.Number), "base": v.Base, "change": "returned"}})
		}
	})
}

func (z zoneReturns) String() string { return "unconfirmed changes of zones" }
