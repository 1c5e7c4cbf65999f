package daemon

import (
	"fmt"
	"time"

	"github.com/openinof/inof/inof"
	"github.com/openinof/inof/internal/api"
)

// ChangeZones runs a change of the reflector's zones and sends what follows from it.
func (c *Core) ChangeZones(change func(r *inof.Reflector) ([]inof.Delivery, error), now time.Time) error {
	if c.refl == nil {
		return fmt.Errorf("%w: this device is no reflector", api.ErrRefused)
	}
	ds, err := change(c.refl)
	c.fromReflector(ds, now)
	return err
}

// Counters are the totals of every room by its name.
func (c *Core) Counters() map[string]any { return c.allCounters() }
