package device

import (
	"fmt"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/internal/api"
)

// RecoverPort ends an error-down by hand.
func (c *Core) RecoverPort(name string, now time.Time) error {
	return c.byHand(name, now, c.faults.Recover)
}

// ShutPort shuts a port by hand, after the others were told.
func (c *Core) ShutPort(name string, now time.Time) error {
	if err := c.acts("shutting port " + name); err != nil {
		return err
	}
	return c.byHand(name, now, c.faults.Shut)
}

func (c *Core) byHand(name string, now time.Time, do func(string, time.Time) ([]errdown.Change, error)) error {
	if c.client == nil || c.ports[name] == nil {
		return fmt.Errorf("port %s: %w: it is not an access port of this device", name, api.ErrNotFound)
	}
	defer c.settle(now)
	changes, err := do(name, now)
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrRefused, err)
	}
	for _, ch := range changes {
		at := ch.At
		if ch.Faulty && c.ports[name].fault.active {
			at = time.Time{} // its hosts are unreachable since another time: this is no fresh fault
		}
		c.causeChanged(ch, at, now)
	}
	return nil
}
