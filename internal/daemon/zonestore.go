package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/zone"
)

// lastGoodZones is the copy of the zone file that a reflector falls back on.
const lastGoodZones = "zones.last-good.yaml"

// zoneStore is the zone configuration of a reflector: the zone file, and the
// changes that operators make at run time. A change is in the file before it is in
// force, so that none is lost by a restart.
type zoneStore struct {
	mu       sync.Mutex
	path     string // zone file
	lastGood string
	rules    zone.Rules
	set      zone.Set
	sum      [sha256.Size]byte // of the zone file as it was last read or written; zero: there was none
	trouble  error             // why the zone file is not what is in force; nil: it is
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
		path:     cfg.Zones.File,
		lastGood: filepath.Join(cfg.State, lastGoodZones),
		rules:    cfg.ZoneRules(),
		set:      zone.Set{AutoJoin: cfg.Zones.AutoJoin, Hard: cfg.Zones.Hard},
	}
}

// load reads the zone file at the start. One that is missing is empty, if there never
// was one; else, or when it is broken, the last good copy takes its place, which the
// returned warning tells. With neither it fails: without its zones a reflector would
// end every pair in the fabric.
func (z *zoneStore) load() (warning, err error) {
	z.sum, _ = config.ZoneFileSum(z.path) // before it is read: a change in between is seen later
	set, err := config.LoadZones(z.path, z.rules)
	if err == nil {
		z.take(set)
		return z.keep(), nil
	}
	missing := errors.Is(err, fs.ErrNotExist)
	if !missing {
		z.counters.LoadErrors++
	}
	good, goodErr := config.LoadZones(z.lastGood, z.rules)
	switch {
	case goodErr == nil:
	case missing && errors.Is(goodErr, fs.ErrNotExist):
		return nil, nil // a first start
	case missing:
		return nil, fmt.Errorf("%w, and neither is its last good copy: %w", err, goodErr)
	default:
		return nil, err
	}
	z.take(good)
	z.counters.Fallbacks++
	z.trouble = fmt.Errorf("%w\nthe last good copy %s is in force instead", err, z.lastGood)
	return z.trouble, nil
}

func (z *zoneStore) take(set zone.Set) {
	set.AutoJoin, set.Hard = z.set.AutoJoin, z.set.Hard
	z.set = set
}

// keep writes the last good copy.
func (z *zoneStore) keep() error {
	if err := config.SaveZones(z.lastGood, z.set); err != nil {
		z.counters.SaveErrors++
		return fmt.Errorf("last good copy of the zones: %w", err)
	}
	return nil
}

// change implements zoneKeeper. The file is written, then the change brought into force;
// when that is refused the file is what it was.
func (z *zoneStore) change(ctx context.Context, d *Device, e zoneEdit) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	err := z.tryChange(ctx, d, e)
	if err != nil {
		z.counters.Refused++
		return err
	}
	z.counters.Changes++
	return nil
}

func (z *zoneStore) tryChange(ctx context.Context, d *Device, e zoneEdit) error {
	if z.trouble != nil && !errors.Is(z.trouble, fs.ErrNotExist) {
		return fmt.Errorf("%w: the zone file has an error, and what somebody wrote there would be lost; repair it and reload first: %w", api.ErrRefused, z.trouble)
	}
	if err := z.untouched(); err != nil {
		return err
	}
	next, err := e.on(z.set, z.rules)
	if err != nil {
		return err
	}
	if err := z.save(next); err != nil {
		return err
	}
	err = d.changeZones(ctx, func(r *reflector.Reflector, now time.Time) ([]wire.Delivery, error) {
		i := slices.IndexFunc(next.Zones, func(v zone.Zone) bool { return v.Name == e.name })
		if i < 0 {
			return r.DeleteZone(e.name, now), nil
		}
		return r.PutZone(next.Zones[i], now)
	})
	if err != nil {
		return errors.Join(err, z.save(z.set))
	}
	z.set = next
	return nil
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
	} else if lines := zone.Differences(z.set, set, shownDifferences); len(lines) > 0 {
		what = strings.Join(lines, "; ")
	}
	return fmt.Errorf("%w: the zone file %s was changed by hand and is not in force yet, this change would overwrite it (%s); reload first, or undo it there", api.ErrRefused, z.path, what)
}

func (z *zoneStore) save(set zone.Set) error {
	written := sha256.New()
	_ = config.WriteZones(written, set) // a digest takes all bytes
	if err := config.SaveZones(z.path, set); err != nil {
		z.counters.SaveErrors++
		return fmt.Errorf("%w: the zones cannot be saved, so nothing was changed: %w", api.ErrUnavailable, err)
	}
	z.sum, z.trouble = [sha256.Size]byte(written.Sum(nil)), nil
	if err := config.SaveZones(z.lastGood, set); err != nil {
		z.counters.SaveErrors++
	}
	return nil
}

// reload reads the zone file and the switches again and brings what differs into
// force. On an error nothing is changed.
func (z *zoneStore) reload(ctx context.Context, d *Device, cfg *config.Config) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	sum, _ := config.ZoneFileSum(cfg.Zones.File)
	rules := cfg.ZoneRules()
	set, err := config.LoadZones(cfg.Zones.File, rules)
	if errors.Is(err, fs.ErrNotExist) && len(z.set.Zones) == 0 {
		err = nil
	}
	if err != nil {
		z.counters.LoadErrors++
		z.trouble = fmt.Errorf("zones stay as they were: %w", err)
		return z.trouble
	}
	set.AutoJoin, set.Hard = cfg.Zones.AutoJoin, cfg.Zones.Hard
	set = set.Canonical()
	err = d.changeZones(ctx, func(r *reflector.Reflector, now time.Time) ([]wire.Delivery, error) { return r.SetZones(set, now) })
	if err != nil {
		return fmt.Errorf("zones stay as they were: %w", err)
	}
	z.path, z.rules, z.set, z.sum, z.trouble = cfg.Zones.File, rules, set, sum, nil
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
	if z.trouble == nil {
		return ""
	}
	return "the zone file is not in force: " + oneLine(z.trouble.Error())
}
