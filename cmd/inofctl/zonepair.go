package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openinof/inof/internal/api"
)

// reflector is one of those that are changed together.
type reflector struct {
	name   string // its device, once it has answered; its socket before
	client *api.Client
	now    api.Zoning // before the change
}

// reflectors are changed all, or none: all are asked first; then each has the change for a short
// time only, and when all have it, each is told to keep it.
type reflectors []*reflector

// reflectors gives those of --socket and --also.
func (a *app) reflectors(also []string) (all reflectors, done func()) {
	for _, socket := range append([]string{a.socket}, also...) {
		all = append(all, &reflector{name: "the reflector at " + socket, client: api.NewClient(socket)})
	}
	return all, func() {
		for _, r := range all {
			r.client.Close()
		}
	}
}

// pairConfirm is how long each of several reflectors waits for the word that all have the change;
// who asks may be cut off from one of them.
const pairConfirm = time.Minute

// failed names the reflector that an error is of.
func (r *reflector) failed(what string, err error) error {
	return fmt.Errorf("%s: %s: %w", r.name, what, err)
}

// commit changes the zones of all, or of none.
func (all reflectors) commit(ctx context.Context, f commitFlags, make func(api.Zoning) (api.ZoneCandidate, error)) ([]api.ZoneCommitted, error) {
	one := len(all) == 1
	list := []api.ZoneCandidate{}
	for _, r := range all {
		var err error
		if r.now, err = r.client.Zoning(ctx); err != nil {
			if one {
				return nil, err
			}
			return nil, r.failed("nothing was changed anywhere", err)
		}
		r.name = r.now.Device.String()
		x, err := make(r.now)
		if err != nil {
			return nil, err
		}
		x.Confirm, x.Comment, x.Force = api.Duration(f.confirm), f.comment, f.force
		list = append(list, x)
	}
	if one {
		c, err := api.CommitZones.Ask(ctx, all[0].client, list[0])
		return []api.ZoneCommitted{c}, err
	}
	for i, r := range all {
		v, err := api.CheckZones.Ask(ctx, r.client, list[i])
		switch {
		case err != nil:
		case v.Conflict != "":
			err = errors.New(v.Conflict)
		case len(v.Errors) > 0:
			err = errors.New(v.Errors[0])
		case v.Loss != "" && !f.force:
			err = errors.New(v.Loss + "; if it is meant: --force")
		}
		if err != nil {
			return nil, r.failed("nothing was changed anywhere", err)
		}
	}
	return all.commitChecked(ctx, list, f.confirm > 0)
}

// commitChecked changes all after they were asked. Wait: the operator confirms it later.
func (all reflectors) commitChecked(ctx context.Context, list []api.ZoneCandidate, wait bool) ([]api.ZoneCommitted, error) {
	var done []api.ZoneCommitted
	for i, r := range all {
		if !wait {
			list[i].Confirm = api.Duration(pairConfirm)
		}
		c, err := api.CommitZones.Ask(ctx, r.client, list[i])
		if err == nil && i > 0 && len(c.Version.Base) > 0 && c.Version.Base != done[0].Version.Base {
			err = fmt.Errorf("its zones would be other ones than those of %s", all[0].name)
			done = append(done, c)
		}
		if err != nil {
			return nil, errors.Join(r.failed("the change is taken back everywhere", err), all.takeBack(ctx, done))
		}
		done = append(done, c)
	}
	if wait {
		return done, nil
	}
	for i, r := range all {
		if !done[i].Changed {
			continue
		}
		v, err := r.client.SettleZones(ctx, done[i].Version.Number, true)
		if err != nil {
			return nil, errors.Join(r.failed("the change is taken back everywhere", err), all.undo(ctx, done))
		}
		done[i].Version = v
	}
	return done, nil
}

// takeBack ends the waiting of a change at the reflectors that have it. One that cannot be asked
// takes it back by itself.
func (all reflectors) takeBack(ctx context.Context, done []api.ZoneCommitted) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	var errs []error
	for i := range done {
		if !done[i].Changed {
			continue
		}
		if _, err := all[i].client.SettleZones(ctx, done[i].Version.Number, false); err != nil {
			errs = append(errs, all[i].failed(fmt.Sprintf("it takes version %d back by itself within %v", done[i].Version.Number, pairConfirm), err))
		}
	}
	return errors.Join(errs...)
}

// undo makes all what they were, those too that keep the change already. Of one whose answer was
// lost it is asked first what it has.
func (all reflectors) undo(ctx context.Context, done []api.ZoneCommitted) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	var errs []error
	for i, r := range all {
		if err := r.back(ctx, done[i]); err != nil {
			errs = append(errs, r.failed(fmt.Sprintf("it may keep version %d; look there, and if it does: zone rollback %d", done[i].Version.Number, r.now.Version.Number), err))
		}
	}
	return errors.Join(errs...)
}

// back makes one reflector what it was before a change.
func (r *reflector) back(ctx context.Context, done api.ZoneCommitted) error {
	z, err := r.client.Zoning(ctx)
	switch {
	case err != nil:
		return err
	case z.Version.Base == r.now.Version.Base:
		return nil
	case z.Version.Base != done.Version.Base:
		return fmt.Errorf("somebody else has made version %d since", z.Version.Number)
	case z.Version.Confirm != nil:
		_, err = r.client.SettleZones(ctx, z.Version.Number, false)
	default:
		_, err = api.CommitZones.Ask(ctx, r.client, api.ZoneCandidate{Plan: r.now.Plan, Base: z.Version.Base, Force: true, Comment: "another reflector did not take it"})
	}
	return err
}

// settle has what waits at all of them stay, or be taken back.
func (all reflectors) settle(ctx context.Context, stay bool) ([]api.ZoneVersion, error) {
	return all.waiting(ctx, func(r *reflector) (api.ZoneVersion, error) {
		return r.client.SettleZones(ctx, r.now.Version.Number, stay)
	})
}

// extend gives what waits at all of them another time to wait, from now on.
func (all reflectors) extend(ctx context.Context, confirm time.Duration) ([]api.ZoneVersion, error) {
	return all.waiting(ctx, func(r *reflector) (api.ZoneVersion, error) {
		c, err := api.CommitZones.Ask(ctx, r.client, api.ZoneCandidate{Plan: r.now.Plan, Base: r.now.Version.Base, Confirm: api.Duration(confirm), Extends: r.now.Version.Number})
		return c.Version, err
	})
}

// waiting does something to what waits at all of them. That something waits everywhere is asked
// first.
func (all reflectors) waiting(ctx context.Context, do func(*reflector) (api.ZoneVersion, error)) ([]api.ZoneVersion, error) {
	for _, r := range all {
		var err error
		if r.now, err = r.client.Zoning(ctx); err == nil && r.now.Version.Confirm == nil {
			err = fmt.Errorf("no change waits for a confirmation there: version %d is in force", r.now.Version.Number)
		}
		if err != nil {
			if len(all) == 1 {
				return nil, err
			}
			return nil, r.failed("nothing was changed anywhere", err)
		}
		r.name = r.now.Device.String()
	}
	var out []api.ZoneVersion
	for _, r := range all {
		v, err := do(r)
		if err != nil && len(all) == 1 {
			return nil, err
		}
		if err != nil {
			return nil, r.failed(fmt.Sprintf("%d of %d reflectors are done, ask it again", len(out), len(all)), err)
		}
		out = append(out, v)
	}
	return out, nil
}
