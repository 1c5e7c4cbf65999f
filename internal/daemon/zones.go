package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// zoneKeeper has the zones of a reflector or standalone device: the zone file of one
// that stands alone, or the log of a cluster.
type zoneKeeper interface {
	// first gives the zones that the device.Core begins with.
	first() zone.Set
	// change makes a change and returns when it is in force, and will be after a
	// restart; or why not.
	change(ctx context.Context, d *Device, e zoneEdit, m change.Meta) error
	// zoning gives what operators write of zones, with its versions; it must not be changed.
	zoning() *change.Book
	// commit makes a change of the whole; false: it changes nothing.
	commit(ctx context.Context, d *Device, o change.Order) (change.Version, bool, error)
	// settle has a version stay that waits for its confirmation, or takes it back.
	settle(ctx context.Context, d *Device, number uint64, stay bool, m change.Meta) (change.Version, error)
	// returns takes back what was not confirmed in time, if that is for this device to do.
	returns(ctx context.Context, d *Device, now time.Time, m change.Meta) (change.Version, bool, error)
	// reload brings what a new configuration says of zones into force.
	reload(ctx context.Context, d *Device, cfg *config.Config) error
	// warning says in one line what an operator should look at; empty: nothing.
	warning() string
	addCounters(m map[string]any)
}

// zoneEdit is one change of one zone.
type zoneEdit struct {
	do      api.ZoneDo
	name    string
	members []zone.Member
}

// apply gives what the zone is afterwards, nil: removed. Old is nil when there is none.
func (e zoneEdit) apply(old *zone.Zone) (*zone.Zone, error) {
	switch {
	case e.name == zone.DefaultName:
		return nil, fmt.Errorf("%w: zone %q is always there and has no members of its own", api.ErrRefused, e.name)
	case e.do == api.ZoneAdd && old != nil:
		return nil, fmt.Errorf("zone %q: %w", e.name, api.ErrExists)
	case e.do == api.ZoneAdd:
		return &zone.Zone{Name: e.name, Members: e.members}, nil
	case old == nil:
		return nil, fmt.Errorf("zone %q: %w", e.name, api.ErrNotFound)
	case e.do == api.ZoneRemove:
		return nil, nil
	case e.do == api.MembersAdd:
		old.Members = append(old.Members, e.members...)
		return old, nil
	}
	stays := memberSet(old.Members)
	for _, m := range e.members {
		if !stays[m.Canonical()] {
			return nil, fmt.Errorf("member %s of zone %q: %w", m, e.name, api.ErrNotFound)
		}
		stays[m.Canonical()] = false
	}
	old.Members = slices.DeleteFunc(old.Members, func(m zone.Member) bool { return !stays[m] })
	return old, nil
}

// first implements zoneKeeper.
func (z *zoneStore) first() zone.Set { return z.inForce(z.book.Plan()) }

// addCounters implements zoneKeeper.
func (z *zoneStore) addCounters(m map[string]any) { m["zone_file"] = z.status() }
