package device

import (
	"fmt"
	"time"

	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
)

// ChangeZones runs a change of the reflector's zones and sends what follows from it.
func (c *Core) ChangeZones(change func(r *reflector.Reflector) ([]wire.Delivery, error), now time.Time) error {
	if c.refl == nil {
		return fmt.Errorf("%w: this device is no reflector", api.ErrRefused)
	}
	defer c.settle(now)
	ds, err := change(c.refl)
	c.fromReflector(ds)
	return err
}

// SetCluster says before Start that the zones of the reflector are those of a cluster.
// Without a known stamp the cluster is not formed yet, and the reflector silent.
func (c *Core) SetCluster(s wire.ClusterStamp) {
	c.unformed = !s.Known()
	c.refl.SetCluster(s, nil)
}

// ClusterFormed says that the cluster has zones: the reflector speaks from now on.
func (c *Core) ClusterFormed(now time.Time) {
	defer c.settle(now)
	if c.unformed {
		c.unformed = false
		c.joinSelf(now)
	}
}

// SetBFD changes what a reflector hands out about BFD.
func (c *Core) SetBFD(s wire.BFDSettings, now time.Time) {
	defer c.settle(now)
	if c.refl != nil {
		c.fromReflector(c.refl.SetBFD(s, now))
	}
}

// joinSelf connects a device that is reflector and client at once with itself.
func (c *Core) joinSelf(now time.Time) {
	if c.refl == nil || c.client == nil {
		return
	}
	c.refl.SetInterest(c.self, c.cfg.InterestAll)
	own := c.client.Up(c.self, now) // both ends know of the session before either speaks
	c.fromReflector(c.refl.Join(c.self, now))
	c.fromClient(own, now)
	c.pathSession(c.self, true)
}
