package client

import (
	"maps"
	"net/netip"
)

// Relies says that local hosts were told things before the start of the process: an
// End-of-Sync ends what it does not repeat. Epochs are those of the reflectors that
// were heard then.
func (c *Client) Relies(epochs map[netip.Addr]uint64) { c.relies, c.before = true, epochs }

// Epochs are those of the reflectors whose records are held, by device id. While a
// reflector that was started anew has not ended its sync, what is held is of its former
// start, or of none that is still known.
func (c *Client) Epochs() map[netip.Addr]uint64 {
	out := maps.Clone(c.before)
	for i := range c.learned.list {
		s := &c.learned.list[i]
		if !s.pos.Known() {
			continue
		}
		if out == nil {
			out = map[netip.Addr]uint64{}
		}
		switch {
		case s.clean:
			out[s.id] = s.pos.Epoch
		case out[s.id] == 0:
			out[s.id] = noEpoch
		}
	}
	return out
}

// noEpoch is the epoch of no process: epochs are start times.
const noEpoch = 1
