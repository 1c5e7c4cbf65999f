package device

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// flush sends what the client side has to tell.
func (c *Core) flush(now time.Time) {
	if c.client != nil {
		c.fromClient(c.client.Flush(now), now)
	}
}

// fromClient routes what this device tells its reflectors; itself it tells in process.
func (c *Core) fromClient(ds []wire.Delivery, now time.Time) {
	if len(ds) == 0 {
		return
	}
	c.out.ToReflectors(ds)
	c.measureOwn(ds, now)
	if c.refl == nil {
		return
	}
	for _, d := range ds {
		if slices.Contains(d.To, c.self) {
			named := c.newNQNs(d.Msg)
			out, err := c.refl.Receive(c.self, d.Msg, now)
			c.fromReflector(out)
			c.judgeNQNs(named, now)
			c.protocolError(c.self, err, now)
		}
	}
}

// fromReflector routes what this reflector tells its clients; what it tells itself waits for
// settle.
func (c *Core) fromReflector(ds []wire.Delivery) {
	if len(ds) == 0 {
		return
	}
	c.out.ToClients(ds)
	if c.client == nil {
		return
	}
	for _, d := range ds {
		if slices.Contains(d.To, c.self) {
			c.said = append(c.said, d.Msg)
		}
	}
}

// protocolError counts and tells what was wrong with a peer's message.
func (c *Core) protocolError(dev netip.Addr, err error, now time.Time) {
	if err == nil {
		return
	}
	var refused *wire.RefusedError
	if errors.As(err, &refused) {
		c.counters.RecordsRefused += uint64(refused.Refused)
	} else {
		c.counters.ProtocolErrors++
	}
	c.Complain(now, "peer", dev.String(), fmt.Errorf("from device %s: %w", dev, err))
}
