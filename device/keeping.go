package device

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/zone"
)

// This file gives rows to the Keeper as things change.

// keeping is the part of a Core that knows which rows are there.
type keeping struct {
	to      keep.Sink       // nil: nothing is kept
	later   laterSink       // nil: no history is
	ports   map[string]bool // whose rows have changed
	epochs  map[netip.Addr]uint64
	known   map[netip.Addr]bool
	sweep   time.Time // when known devices are compared next
	held    bool      // a row says until when the device holds back
	notices time.Time // when the history is written next; zero: nothing is new
	value   []byte    // scratch
	key     []byte    // scratch
}

// laterSink is what a Sink may be besides: it takes rows that a kill may lose.
type laterSink interface{ Later(func() keep.Row) }

const (
	// noticePause is how long changes of the history of notices are gathered: most are acked by
	// then.
	noticePause = time.Second
	// knownPause is how often a reflector looks for devices that it no longer knows.
	knownPause = 10 * time.Second
)

func (k *keeping) start(to keep.Sink) {
	k.to = to
	k.later, _ = to.(laterSink)
	k.ports, k.epochs, k.known = make(map[string]bool), make(map[netip.Addr]uint64), make(map[netip.Addr]bool)
}

// on reports whether rows are to be given: not while they are taken.
func (c *Core) keeps() bool { return c.keep.to != nil && !c.restoring }

// KeepRows gives what has changed and is not given yet. It is cheap when nothing has.
func (c *Core) KeepRows(now time.Time) {
	k := &c.keep
	if !c.keeps() {
		return
	}
	if len(k.ports) > 0 {
		for _, name := range slices.Sorted(maps.Keys(k.ports)) {
			c.keepPort(name)
		}
		clear(k.ports)
	}
	if c.client != nil {
		c.notify.Rows(c.putTold)
		c.keepEpochs()
		if held := c.client.HeldBack(); k.held && held.IsZero() {
			k.held = false
			k.to.Delete(tableDevice, keyHeldBack)
		}
		c.keepNotices(now)
	}
	if c.refl != nil && !now.Before(k.sweep) {
		k.sweep = now.Add(knownPause)
		c.keepKnown()
	}
	k.to.Flush()
}

// putTold is a hostnotify.PutRow.
func (c *Core) putTold(kind hostnotify.RowKind, key, value []byte) {
	if t := toldTable(kind); value == nil {
		c.keep.to.Delete(t, key)
	} else {
		c.keep.to.Put(t, key, value)
	}
}

func (c *Core) keepPort(name string) {
	p := c.ports[name]
	if p == nil {
		c.keep.to.Delete(tablePort, []byte(name))
		return
	}
	b, err := json.Marshal(KeptPort{Saved: c.faults.Saved(name), Index: p.Index, Changes: p.changes, Losses: p.losses, Lost: p.lost.Round(0)})
	if err == nil { // nothing in it can fail
		c.keep.to.Put(tablePort, []byte(name), b)
	}
}

// portRow notes that the row of a port changes.
func (c *Core) portRow(p *port) {
	if c.keeps() {
		c.keep.ports[p.Name] = true
	}
}

// noteFaults notes the row of a port if what is to be kept of its faults has changed. Without it
// a process that is killed right after it has shut a port would leave it shut for ever.
func (c *Core) noteFaults(p *port) {
	if is := c.faults.Saved(p.Name); !is.SameFaults(&p.kept) || is.Flaps != p.kept.Flaps {
		p.kept = is
		c.portRow(p)
	}
}

func (c *Core) keepNeighbour(ch *lldp.Change, p *port) {
	if !c.keeps() {
		return
	}
	k := &c.keep
	k.key = ch.Neighbour.RowKey(k.key[:0])
	if ch.Kind == lldp.Removed {
		k.to.Delete(tableNeighbour, k.key)
		return
	}
	k.value = binary.BigEndian.AppendUint32(k.value[:0], p.losses+1)
	k.value = ch.Neighbour.AppendRow(k.value)
	k.to.Put(tableNeighbour, k.key, k.value)
}

// keepEarly keeps that a host has asked before it registered.
func (c *Core) keepEarly(h *zone.Host) {
	if !c.keeps() {
		return
	}
	b, err := json.Marshal(KeptEarly{Port: h.HostKey.Port, MAC: h.MAC, Service: h.Service})
	if err == nil { // nothing in it can fail
		c.keep.to.Put(tableEarly, h.Addr.AsSlice(), b)
	}
}

func (c *Core) forgetEarly(addr netip.Addr) {
	if c.keep.to != nil {
		c.keep.to.Delete(tableEarly, addr.AsSlice())
	}
}

func (c *Core) keepPath(dev netip.Addr, since time.Time) {
	if c.keeps() {
		c.keep.to.Put(tablePath, dev.AsSlice(), number(uint64(since.UnixNano())))
	}
}

func (c *Core) forgetPath(dev netip.Addr) {
	if c.keeps() {
		c.keep.to.Delete(tablePath, dev.AsSlice())
	}
}

// keepEpochs follows of which starts of the reflectors records are held.
func (c *Core) keepEpochs() {
	k := &c.keep
	is := c.client.Epochs()
	if maps.Equal(is, k.epochs) {
		return
	}
	for dev, epoch := range is {
		if k.epochs[dev] != epoch {
			k.to.Put(tableReflector, dev.AsSlice(), number(epoch))
		}
	}
	for dev := range k.epochs {
		if _, there := is[dev]; !there {
			k.to.Delete(tableReflector, dev.AsSlice())
		}
	}
	k.epochs = is
}

// keepClient keeps that a device is known to this reflector.
func (c *Core) keepClient(dev netip.Addr) {
	if c.keeps() && !c.keep.known[dev] {
		c.keep.known[dev] = true
		c.keep.to.Put(tableKnown, dev.AsSlice(), nil)
	}
}

// KeepLast returns all that KeepRows would gather for a while longer: nothing comes after it.
func (c *Core) KeepLast(now time.Time) {
	c.keep.notices, c.keep.sweep = now, now
	c.KeepRows(now)
}

// keepLeft forgets a device that left nothing behind: the next process need not await it.
func (c *Core) keepLeft(dev netip.Addr) {
	if c.keeps() && c.keep.known[dev] && !c.refl.Knows(dev) {
		delete(c.keep.known, dev)
		c.keep.to.Delete(tableKnown, dev.AsSlice())
	}
}

// KeepEpoch keeps the epoch of this start, for State.Epoch of the next one.
func KeepEpoch(to keep.Sink, epoch uint64) { to.Put(tableDevice, keyEpoch, number(epoch)) }

// keepKnown follows which devices this reflector knows.
func (c *Core) keepKnown() {
	for _, dev := range c.refl.KnownDevices() {
		c.keepClient(dev)
	}
	for dev := range c.keep.known {
		c.keepLeft(dev)
	}
}

// keepHeldBack keeps until when the device holds back.
func (c *Core) keepHeldBack() {
	if k := &c.keep; k.to != nil && !c.client.HeldBack().IsZero() {
		k.held = true
		k.to.Put(tableDevice, keyHeldBack, number(uint64(c.client.HeldBack().UnixNano())))
	}
}

// keepNotices has the history of notices written, behind everything else.
func (c *Core) keepNotices(now time.Time) {
	k := &c.keep
	switch {
	case k.later == nil || !c.notify.HistoryChanged():
		return
	case k.notices.IsZero():
		k.notices = now.Add(noticePause)
		return
	case now.Before(k.notices):
		return
	}
	k.notices = time.Time{}
	c.notify.TakeHistory(func(id uint64, n hostnotify.Notice) {
		k.later.Later(func() keep.Row {
			b, _ := json.Marshal(n) // nothing in it can fail
			return keep.Row{Table: tableNotice, Key: number(id), Value: b}
		})
	}, func(id uint64) {
		k.later.Later(func() keep.Row { return keep.Row{Table: tableNotice, Key: number(id)} })
	})
}

// HeldBack is until when the device takes nothing back; nil: it does.
func (c *Core) HeldBack() *time.Time {
	if c.client == nil || c.client.HeldBack().IsZero() {
		return nil
	}
	at := c.client.HeldBack()
	return &at
}
