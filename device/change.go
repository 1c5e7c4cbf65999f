package device

import (
	"time"

	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/zone"
)

// This file is what every change of the table of hosts comes through, whatever came in: first
// who has an address that several claim, then who asked before it was known, then what
// the local hosts are to be told.

// changed follows changes of the Directory: an address that a local host claims may
// be its own now, or another's; then everybody concerned is told.
func (c *Core) changed(changes zone.Changes, at, now time.Time) {
	c.changedBy(changes, hostnotify.Cause{FaultAt: at}, now)
}

// changedBy is changed with the way of the event that is behind the changes.
func (c *Core) changedBy(changes zone.Changes, by hostnotify.Cause, now time.Time) {
	for _, ch := range changes {
		c.contend(ch.Addr, now)
	}
	for _, ch := range changes {
		c.noLongerEarly(ch.Addr, now)
	}
	if len(changes) > 0 {
		c.notify.ChangedBy(changes, by, now)
		c.noteHardChanges(changes)
		c.fenceChanges(changes, now)
	}
}
