package apitest

import (
	"context"
	"fmt"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// Zones is a Book behind the zoning calls of a Source; a Source without one has no zones.
type Zones struct {
	Book   *change.Book
	Review api.ZoneReview // what is said of candidates, beside what the Book says
	// Fail may have a call fail, after what it does: zoning, check, commit or settle. May be nil.
	Fail func(call string) error
}

// UseZones has the zoning calls work on a plan.
func (s *Source) UseZones(p *change.Plan) *Zones {
	s.ZonesValue = &Zones{Book: change.NewBook(p, change.Meta{Time: Now, By: "zone file", From: "device 192.0.2.250"})}
	return s.ZonesValue
}

func (z *Zones) version(number uint64) (out api.ZoneVersion) {
	for _, v := range z.Book.Versions() {
		if v.Number == number {
			out = api.ZoneVersion{Number: v.Number, Base: v.Base, Time: v.Time, By: v.By, From: v.From, Comment: v.Comment, Changes: v.Lines}
		}
	}
	if p := z.Book.Pending(); p != nil && p.Number == number {
		out.Confirm = &p.Deadline
	}
	return out
}

func (z *Zones) failure(call string) error {
	if z.Fail == nil {
		return nil
	}
	return z.Fail(call)
}

func (s *Source) zones() (*Zones, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	if s.ZonesValue == nil {
		return nil, fmt.Errorf("%w: this is a client", api.ErrRefused)
	}
	return s.ZonesValue, nil
}

// Zoning implements api.ZoningSource.
func (s *Source) Zoning(context.Context) (api.Zoning, error) {
	z, err := s.zones()
	if err != nil {
		return api.Zoning{}, err
	}
	return api.Zoning{Device: s.StatusValue.Device, Version: z.version(z.Book.Last().Number), Plan: z.Book.Plan()}, z.failure("zoning")
}

// CheckZones implements api.ZoningSource.
func (s *Source) CheckZones(_ context.Context, c api.ZoneCandidate) (api.ZoneReview, error) {
	z, err := s.zones()
	if err != nil {
		return api.ZoneReview{}, err
	}
	r := z.Review
	r.Device, r.Version = s.StatusValue.Device, z.version(z.Book.Last().Number)
	if err := z.Book.Admit(c.Base, c.Extends); err != nil {
		r.Conflict = err.Error()
	}
	d := change.Diff(z.Book.Plan(), c.Plan)
	r.Changes = d.Lines(z.Book.Plan(), 0)
	if err := c.Plan.Check(zone.Rules{}); err != nil {
		r.Errors = append(r.Errors, err.Error())
	}
	return r, z.failure("check")
}

// CommitZones implements api.ZoningSource.
func (s *Source) CommitZones(_ context.Context, c api.ZoneCandidate) (api.ZoneCommitted, error) {
	z, err := s.zones()
	if err != nil {
		return api.ZoneCommitted{}, err
	}
	o := change.Order{Delta: change.Diff(z.Book.Plan(), c.Plan), Base: c.Base, Meta: change.Meta{Time: Now, By: "alice", From: "device 192.0.2.250", Comment: c.Comment}, Extends: c.Extends}
	if c.Confirm > 0 {
		o.Deadline = Now.Add(time.Duration(c.Confirm))
	}
	v, made, err := z.Book.Commit(o)
	if err != nil {
		return api.ZoneCommitted{}, fmt.Errorf("%w: %w", api.ErrConflict, err)
	}
	if err := z.failure("commit"); err != nil {
		return api.ZoneCommitted{}, err
	}
	return api.ZoneCommitted{Device: s.StatusValue.Device, Changed: made, Version: z.version(v.Number)}, s.change("commit zones, confirm in %v, force %v", time.Duration(c.Confirm), c.Force)
}

// SettleZones implements api.ZoningSource.
func (s *Source) SettleZones(_ context.Context, number uint64, stay bool) (api.ZoneVersion, error) {
	z, err := s.zones()
	if err != nil {
		return api.ZoneVersion{}, err
	}
	var v change.Version
	if stay {
		v, err = z.Book.Confirm(number)
	} else {
		v, err = z.Book.Abort(number, change.Meta{Time: Now, By: "alice", From: "device 192.0.2.250"})
	}
	if err != nil {
		return api.ZoneVersion{}, fmt.Errorf("%w: %w", api.ErrRefused, err)
	}
	if err := z.failure("settle"); err != nil {
		return api.ZoneVersion{}, err
	}
	return z.version(v.Number), s.change("settle zones %v", stay)
}

// ZoneVersions implements api.ZoningSource.
func (s *Source) ZoneVersions(context.Context) ([]api.ZoneVersion, error) {
	z, err := s.zones()
	if err != nil {
		return nil, err
	}
	var out []api.ZoneVersion
	for _, v := range z.Book.Versions() {
		out = append(out, z.version(v.Number))
	}
	return out, nil
}

// ZonesAt implements api.ZoningSource.
func (s *Source) ZonesAt(_ context.Context, number uint64) (api.Zoning, error) {
	z, err := s.zones()
	if err != nil {
		return api.Zoning{}, err
	}
	p, err := z.Book.At(number)
	if err != nil {
		return api.Zoning{}, fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	return api.Zoning{Device: s.StatusValue.Device, Version: z.version(number), Plan: p}, nil
}

// AuditRecords implements api.Source.
func (s *Source) AuditRecords(context.Context, int) (api.AuditList, error) {
	return s.AuditValue, s.failure()
}
