package client

import (
	"github.com/openinof/inof/inof/wire"
)

// mostEpoch is the largest epoch a client takes over from a reflector: half of the
// range, so that a wrong one cannot leave it without a greater one.
const mostEpoch = 1<<63 - 1

// raiseSpread is by how much a raised epoch exceeds the one that was seen, at most: 1 ms. It
// depends on the start, so that two starts which each met another reflector do not take
// the same epoch: changes of the one would be taken for those of the other.
const raiseSpread = 1 << 20

// outlive makes the epoch greater than one that a reflector has seen of this device.
// The device's clock has been set back since then and its last epoch was lost: its
// words would look older than those of its earlier life, which other devices may
// still hold from a reflector that is silent. What the reflectors hold of the lower
// epoch is not lost: for them a new epoch in a session is a new stamp and no more.
func (c *Client) outlive(seen *wire.Resume) {
	if seen == nil || seen.Epoch <= c.epoch || seen.Epoch >= mostEpoch {
		return
	}
	c.epoch = min(mostEpoch, seen.Epoch+1+c.epoch%raiseSpread)
	c.counters.EpochsRaised++
}

// Epoch is the present one: that of the start, or a greater one when a reflector had
// seen a later start.
func (c *Client) Epoch() uint64 { return c.epoch }
