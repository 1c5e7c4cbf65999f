package cluster

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
)

// Reflecting is the device of a member: a device.Core whose reflector the zones are for.
type Reflecting interface {
	ChangeZones(change func(*reflector.Reflector) ([]wire.Delivery, error), now time.Time) error
	ClusterFormed(now time.Time)
	Complain(now time.Time, what, source string, err error)
}

// InForce brings what the cluster has committed into force at a member's device, in order.
// It returns how much of it the reflector did not take.
func (b *Batch) InForce(c Reflecting, now time.Time) (broken uint64) {
	var members []netip.Addr
	for _, m := range b.Members {
		members = append(members, m.Device)
	}
	step := func(index uint64, change func(*reflector.Reflector) ([]wire.Delivery, error)) {
		err := c.ChangeZones(func(r *reflector.Reflector) ([]wire.Delivery, error) {
			r.SetCluster(wire.ClusterStamp{ID: b.Stamp.ID, Index: index}, members)
			return change(r)
		}, now)
		if err != nil {
			broken++
			c.Complain(now, "zones", fmt.Sprint(index), fmt.Errorf("entry %d of the cluster is not in force: %w", index, err))
		}
	}
	if b.Set != nil {
		step(b.Stamp.Index, func(r *reflector.Reflector) ([]wire.Delivery, error) { return r.SetZones(*b.Set, now) })
	}
	for _, e := range b.Edits {
		step(e.Index, func(r *reflector.Reflector) ([]wire.Delivery, error) {
			switch {
			case e.Gone:
				return r.DeleteZone(e.Zone.Name, now), nil
			case e.Zone.Name != "":
				return r.PutZone(e.Zone, now)
			}
			return nil, nil
		})
	}
	if b.Stamp.Known() {
		c.ClusterFormed(now)
	}
	return broken
}
