package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// lastGoodZones is the copy of the zone file that a reflector falls back on.
const lastGoodZones = "zones.last-good.yaml"

// zoneStore is the zone configuration of a reflector: the zone file, its versions, and the
// changes that operators make at run time. A change is in the file before it is in
// force, so that none is lost by a restart.
type zoneStore struct {
	mu       turns
	path     string // zone file
	lastGood string
	rules    zone.Rules
	switches zone.Set     // AutoJoin and Hard, without zones
	book     *change.Book // never changed in place
	rows     zoneRows
	now      func() time.Time
	sum      [sha256.Size]byte // of the zone file as it was last read or written; zero: there was none
	trouble  error             // why the zone file is not what is in force; nil: it is
	stuck    error             // why a change that was not confirmed is not taken back; nil: it is, or there is none
	counters ZoneStoreCounters
}

// ZoneStoreCounters count changes of the zone file.
type ZoneStoreCounters struct {
	Changes    uint64 `json:"changes"`
	Refused    uint64 `json:"refused"`
	SaveErrors uint64 `json:"save_errors"`
	LoadErrors uint64 `json:"load_errors"`
	Fallbacks  uint64 `json:"fallbacks"` // starts with the last good copy
}

func newZoneStore(cfg *config.Config) *zoneStore {
	return &zoneStore{
		mu:       newTurns(),
		path:     cfg.Zones.File,
		lastGood: filepath.Join(cfg.State, lastGoodZones),
		rules:    cfg.ZoneRules(),
		switches: zone.Set{AutoJoin: cfg.Zones.AutoJoin, Hard: cfg.Zones.Hard},
		book:     change.NewBook(&change.Plan{}, change.Meta{}),
		now:      time.Now,
	}
}

// byFile is who changed the zones where somebody edited the zone file.
const byFile = "zone file"

// load reads the zone file at the start, and with it the versions that were kept. One that is
// missing is empty, if there never was one; else, or when it is broken, the last good copy takes
// its place, which the returned warning tells. With neither it fails: without its zones a
// reflector would end every pair in the fabric.
func (z *zoneStore) load(rows []keep.Row) (warning, err error) {
	z.sum, _ = config.ZoneFileSum(z.path) // before it is read: a change in between is seen later
	plan, _, err := config.LoadPlan(z.path, z.rules)
	good, _, goodErr := config.LoadPlan(z.lastGood, z.rules)
	if err == nil {
		z.open(plan, good, rows)
		return z.keep(), nil
	}
	missing := errors.Is(err, fs.ErrNotExist)
	if !missing {
		z.counters.LoadErrors++
	}
	switch {
	case goodErr == nil:
	case missing && errors.Is(goodErr, fs.ErrNotExist):
		return nil, nil // a first start
	case missing:
		return nil, fmt.Errorf("%w, and neither is its last good copy: %w", err, goodErr)
	default:
		return nil, err
	}
	z.open(good, good, rows)
	z.counters.Fallbacks++
	z.trouble = fmt.Errorf("%w\nthe last good copy %s is in force instead", err, z.lastGood)
	return z.trouble, nil
}

// open puts the plan that is in force and the versions that were kept together. Where a change
// was cut off before it was in the file, its version never was; where somebody has edited the
// file meanwhile, that is a version. The last good copy says what was there before; it may be nil.
func (z *zoneStore) open(plan, good *change.Plan, rows []keep.Row) {
	versions, pending, parts := readZoneRows(rows)
	z.rows.parts = parts
	byHand := change.Meta{Time: z.now(), By: byFile, From: z.path}
	if book, ok := change.Restore(plan, versions, pending); ok {
		z.book = book
		return
	}
	n := len(versions)
	if n == 0 {
		z.book = change.NewBook(plan, byHand)
		return
	}
	if book, ok := change.Restore(plan, versions[:n-1], nil); ok {
		z.book = book
		return
	}
	if good != nil {
		if book, ok := change.Restore(good, versions, nil); ok {
			_, _, _ = book.Commit(change.Order{Delta: change.Diff(good, plan), Meta: byHand}) // nothing refuses it
			z.book = book
			return
		}
	}
	z.book = change.NewBookAfter(versions[n-1].Number, plan, byHand)
}

// start keeps the versions from now on.
func (z *zoneStore) start(k *keep.Keeper) {
	z.rows.keeper = k
	z.rows.forget(z.book)
}

// inForce gives the zones of a plan with the switches.
func (z *zoneStore) inForce(p *change.Plan) zone.Set {
	set := p.InForce()
	set.AutoJoin, set.Hard = z.switches.AutoJoin, z.switches.Hard
	return set
}

// keep writes the last good copy.
func (z *zoneStore) keep() error {
	if err := config.SavePlan(z.lastGood, z.book.Plan()); err != nil {
		z.counters.SaveErrors++
		return fmt.Errorf("last good copy of the zones: %w", err)
	}
	return nil
}

// change implements zoneKeeper.
func (z *zoneStore) change(ctx context.Context, d *Device, e zoneEdit, m change.Meta) error {
	_, _, err := z.turn(ctx, d, func(b *change.Book) (change.Version, bool, error) {
		next, err := e.onPlan(b.Plan(), z.rules)
		if err != nil {
			return change.Version{}, false, err
		}
		return b.Commit(change.Order{Delta: change.Diff(b.Plan(), next), Meta: m})
	})
	return err
}

// commit implements zoneKeeper.
func (z *zoneStore) commit(ctx context.Context, d *Device, o change.Order) (change.Version, bool, error) {
	return z.turn(ctx, d, func(b *change.Book) (change.Version, bool, error) { return b.Commit(o) })
}

// settle implements zoneKeeper.
func (z *zoneStore) settle(ctx context.Context, d *Device, number uint64, stay bool, m change.Meta) (v change.Version, err error) {
	v, _, err = z.turn(ctx, d, func(b *change.Book) (v change.Version, made bool, err error) {
		if stay {
			v, err = b.Confirm(number)
		} else {
			v, err = b.Abort(number, m)
		}
		return v, true, err
	})
	return v, err
}

// turn has do change a copy of the Book, and brings what it is then into force: versions and zone
// file are written first; when the device refuses, both are what they were.
func (z *zoneStore) turn(ctx context.Context, d *Device, do func(*change.Book) (change.Version, bool, error)) (change.Version, bool, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	next := z.book.Clone()
	v, made, err := do(next)
	if err == nil && made {
		err = z.replace(ctx, d, next)
	}
	switch {
	case err != nil:
		z.counters.Refused++
		return v, false, changeError(err)
	case made:
		z.counters.Changes++
		z.stuck = nil
	}
	return v, made, nil
}

// changeError gives the refusals of a Book their kinds.
func changeError(err error) error {
	switch {
	case errors.Is(err, change.ErrConflict), errors.Is(err, change.ErrPending):
		return &kindError{err.Error(), api.ErrConflict}
	case errors.Is(err, change.ErrSettled):
		return &kindError{err.Error(), api.ErrRefused}
	case errors.Is(err, change.ErrNoVersion):
		return &kindError{err.Error(), api.ErrNotFound}
	}
	return err
}

// replace brings another state of the Book into force.
func (z *zoneStore) replace(ctx context.Context, d *Device, next *change.Book) error {
	if z.trouble != nil && !errors.Is(z.trouble, fs.ErrNotExist) {
		return fmt.Errorf("%w: the zone file has an error, and what somebody wrote there would be lost; repair it and reload first: %w", api.ErrRefused, z.trouble)
	}
	if err := z.untouched(); err != nil {
		return err
	}
	before, after := z.book, next
	same := before.Base() == after.Base() // a confirmation
	err := z.rows.save(ctx, before, after)
	if err != nil && after.Pending() != nil {
		return errors.Join(fmt.Errorf("%w: that the change waits for a confirmation cannot be kept, so nothing was changed: %w", api.ErrUnavailable, err), z.rows.save(ctx, after, before))
	}
	if same {
		z.book = after
		return nil
	}
	if err := z.save(after.Plan()); err != nil {
		return errors.Join(err, z.rows.save(ctx, after, before))
	}
	if err := z.enforce(ctx, d, before.Plan(), after.Plan()); err != nil {
		return errors.Join(err, z.save(before.Plan()), z.rows.save(ctx, after, before))
	}
	z.book = after
	return nil
}

// enforce brings another plan into force: of a single zone with as little as that takes.
func (z *zoneStore) enforce(ctx context.Context, d *Device, before, after *change.Plan) error {
	delta := change.Diff(before, after)
	set := z.inForce(after)
	return d.changeZones(ctx, func(r *reflector.Reflector, now time.Time) ([]wire.Delivery, error) {
		if delta.OnlyZones() && len(delta.Put.Zones)+len(delta.Gone.Zones) == 1 {
			for _, name := range delta.Gone.Zones {
				return r.DeleteZone(name, now), nil
			}
			for name := range delta.Put.Zones {
				if after.Has(name) {
					return r.PutZone(after.Expand(name), now)
				}
			}
		}
		return r.SetZones(set, now)
	})
}

// zoning implements zoneKeeper.
func (z *zoneStore) zoning() *change.Book {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.book
}

// returns implements zoneKeeper: it takes a change back that was not confirmed in time.
func (z *zoneStore) returns(ctx context.Context, d *Device, now time.Time, m change.Meta) (v change.Version, done bool, err error) {
	if !z.zoning().Due(now) {
		return v, false, nil
	}
	number := z.zoning().Pending().Number
	v, err = z.settle(ctx, d, number, false, m)
	if err != nil {
		z.mu.Lock()
		defer z.mu.Unlock()
		if again := z.stuck != nil; again {
			z.stuck = err
			return v, false, nil
		}
		z.stuck = err
		return v, false, fmt.Errorf("version %d of the zones was not confirmed and cannot be taken back, it is tried again: %w", number, err)
	}
	return v, true, nil
}

// shownDifferences bounds how many lines of a difference an operator is shown.
const shownDifferences = 8

// untouched refuses a change when somebody has changed the zone file since it was last
// read: what is in force would overwrite that, and bring back a member that was
// taken out by hand.
func (z *zoneStore) untouched() error {
	sum, err := config.ZoneFileSum(z.path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: whether the zone file was changed by hand cannot be told: %w", api.ErrRefused, err)
	case sum == z.sum:
		return nil
	case sum == [sha256.Size]byte{}:
		return fmt.Errorf("%w: the zone file %s was removed by hand since it was read; put it back (the last good copy is %s)", api.ErrRefused, z.path, z.lastGood)
	}
	what := "not in its zones, but in its text"
	set, err := config.LoadZones(z.path, z.rules)
	if err != nil {
		what = "and now has an error: " + err.Error()
	} else if lines := zone.Differences(z.book.Plan().InForce(), set, shownDifferences); len(lines) > 0 {
		what = strings.Join(lines, "; ")
	}
	return fmt.Errorf("%w: the zone file %s was changed by hand and is not in force yet, this change would overwrite it (%s); reload first, or undo it there", api.ErrRefused, z.path, what)
}

func (z *zoneStore) save(plan *change.Plan) error {
	written := sha256.New()
	_ = config.WritePlan(written, plan, "") // a digest takes all bytes
	if err := config.SavePlan(z.path, plan); err != nil {
		z.counters.SaveErrors++
		return fmt.Errorf("%w: the zones cannot be saved, so nothing was changed: %w", api.ErrUnavailable, err)
	}
	z.sum, z.trouble = [sha256.Size]byte(written.Sum(nil)), nil
	if err := config.SavePlan(z.lastGood, plan); err != nil {
		z.counters.SaveErrors++
	}
	return nil
}

// reload reads the zone file and the switches again and brings what differs into
// force. On an error nothing is changed. What somebody wrote there is a version, and ends the
// waiting of the one before.
func (z *zoneStore) reload(ctx context.Context, d *Device, cfg *config.Config) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	sum, _ := config.ZoneFileSum(cfg.Zones.File)
	rules := cfg.ZoneRules()
	plan, _, err := config.LoadPlan(cfg.Zones.File, rules)
	if errors.Is(err, fs.ErrNotExist) && len(z.book.Plan().Zones) == 0 {
		plan, err = &change.Plan{}, nil
	}
	if err != nil {
		z.counters.LoadErrors++
		z.trouble = fmt.Errorf("zones stay as they were: %w", err)
		return z.trouble
	}
	next := z.book.Clone()
	if delta := change.Diff(next.Plan(), plan); !delta.Empty() {
		_, _ = next.Confirm(0) // if it waits
		if _, _, err := next.Commit(change.Order{Delta: delta, Meta: change.Meta{Time: z.now(), By: byFile, From: cfg.Zones.File}}); err != nil {
			return err
		}
	}
	switches := zone.Set{AutoJoin: cfg.Zones.AutoJoin, Hard: cfg.Zones.Hard}
	set := plan.InForce()
	set.AutoJoin, set.Hard = switches.AutoJoin, switches.Hard
	err = d.changeZones(ctx, func(r *reflector.Reflector, now time.Time) ([]wire.Delivery, error) { return r.SetZones(set, now) })
	if err != nil {
		return fmt.Errorf("zones stay as they were: %w", err)
	}
	_ = z.rows.save(ctx, z.book, next) // told by the keeper; the zone file has it
	z.path, z.rules, z.switches, z.book, z.sum, z.trouble, z.stuck = cfg.Zones.File, rules, switches, next, sum, nil, nil
	return z.keep()
}

// changeZones runs a change of the reflector's zones in the owner goroutine.
func (d *Device) changeZones(ctx context.Context, change func(*reflector.Reflector, time.Time) ([]wire.Delivery, error)) error {
	var err error
	if doErr := d.Do(ctx, func(c *device.Core, now time.Time) {
		err = c.ChangeZones(func(r *reflector.Reflector) ([]wire.Delivery, error) { return change(r, now) }, now)
	}); doErr != nil {
		return doErr
	}
	var limit *wire.LimitError
	if errors.As(err, &limit) {
		return fmt.Errorf("%w: %w", api.ErrLimit, err)
	}
	return err
}

// status gives what operators see.
func (z *zoneStore) status() ZoneStoreCounters {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.counters
}

// warning says in one line why the zone file is not in force; empty: it is.
func (z *zoneStore) warning() string {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.stuck != nil {
		return "a change of the zones was not confirmed and cannot be taken back: " + oneLine(z.stuck.Error())
	}
	if z.trouble == nil {
		return ""
	}
	return "the zone file is not in force: " + oneLine(z.trouble.Error())
}
