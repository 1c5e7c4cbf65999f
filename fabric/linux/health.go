package linux

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

var _ fabric.HealthReader = (*Dataplane)(nil)

// Health implements fabric.HealthReader: frames and changes of carrier from the
// kernel's link statistics, what these do not have from the driver's counters, the
// received power from the module.
func (d *Dataplane) Health(name string, want fabric.Fields) (fabric.Health, error) {
	p, a, err := d.find(name)
	if err != nil {
		return fabric.Health{}, err
	}
	h := fabric.Health{}
	if want&driverFields != 0 {
		err = d.driverHealth(p, &h, want)
	}
	if left := want &^ h.Valid; err == nil && left&kernelFields != 0 {
		err = d.kernelHealth(p, a, &h, left)
	}
	if err == nil && want&fabric.FieldSpeed != 0 {
		err = d.speed(p, &h)
	}
	if err == nil && want&(fabric.FieldRxPower|fabric.FieldOptic) != 0 {
		err = d.moduleHealth(p, &h, want)
	}
	if err != nil {
		return fabric.Health{}, fmt.Errorf("port %q: read health: %w", name, err)
	}
	h.At = time.Now()
	return h, nil
}

// driverFields are those for which drivers have counters.
const driverFields = fabric.FieldCRC | fabric.FieldBroadcast | fabric.FieldMulticast | fabric.FieldsOfPFC | fabric.FieldPortECN

// kernelFields are those of which the link statistics tell something.
const kernelFields = fabric.FieldsOfCounters | fabric.FieldMulticast

func (d *Dataplane) kernelHealth(p *port, a *asker, h *fabric.Health, want fabric.Fields) error {
	t, err := d.totals(p, a)
	if err != nil {
		return err
	}
	if want&fabric.FieldCounters != 0 {
		h.Counters = t.Counters
	}
	if want&fabric.FieldCRC != 0 {
		h.RxCRC = damaged(p.layout.Load(), &t.Counters)
	}
	if want&fabric.FieldMulticast != 0 {
		h.RxMulticast = t.multicast
	}
	h.Valid |= want & kernelFields
	return nil
}

// totals reads what the kernel counts: with the totals of all ports where their changes
// of carrier are cheap to read, too, or else with all that there is to be said of the link.
func (d *Dataplane) totals(p *port, a *asker) (totals, error) {
	if changes, ok := d.changes(p); ok {
		if t, ok := a.totalsOf(p.index, d.portCount()); ok {
			t.CarrierChanges = changes
			return t, nil
		}
	}
	l, err := a.link(p.index)
	l.counters.CarrierChanges = l.changes
	return totals{l.counters, l.multicast}, err
}

// changes reads how often the carrier of a port changed, if the poller can tell.
func (d *Dataplane) changes(p *port) (uint64, bool) {
	d.mu.RLock()
	poll := d.poll
	d.mu.RUnlock()
	if poll == nil {
		return 0, false
	}
	return poll.changes(p.index)
}

func (d *Dataplane) portCount() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.ports)
}

// damaged is the link statistic that counts damaged frames: another one than the usual
// where the operator says so.
func damaged(l *layout, c *fabric.Counters) uint64 {
	if l != nil {
		switch l.kernelCRC {
		case fabric.KernelRxErrors:
			return c.RxErrors
		case fabric.KernelRxDropped:
			return c.RxDrops
		}
	}
	return c.RxCRC
}

// driverHealth takes what the driver counts. When its counters have changed their
// number since their names were read, the names are read again the next time.
func (d *Dataplane) driverHealth(p *port, h *fabric.Health, want fabric.Fields) error {
	e := d.tool()
	if e == nil {
		return fabric.ErrNoPort
	}
	l := p.layout.Load()
	if l == nil {
		var err error
		if l, err = e.layout(p.name); err != nil {
			return err
		}
		p.layout.Store(l)
	}
	if l.fields&want == 0 {
		return nil
	}
	n, err := e.stats(p.name, l.n, func(stats []uint64) { l.fill(h, want, stats) })
	if err == nil && n != l.n {
		p.layout.Store(nil)
	}
	return err
}

// moduleHealth asks the module, if there is one that can tell.
func (d *Dataplane) moduleHealth(p *port, h *fabric.Health, want fabric.Fields) error {
	e := d.tool()
	if e == nil {
		return fabric.ErrNoPort
	}
	kind, size, read, err := e.eeprom(p.name)
	if err == nil && want&fabric.FieldRxPower != 0 {
		if h.RxPower, err = rxPower(kind, size, read); err == nil {
			h.Valid |= fabric.FieldRxPower
		}
	}
	if err == nil && want&fabric.FieldOptic != 0 {
		if h.Optic, err = optic(kind, size, read); err == nil {
			h.Valid |= fabric.FieldOptic
		}
	}
	if errors.Is(err, errNotTold) || notTold(err) || errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENXIO) {
		return nil
	}
	return err
}

// speed asks the driver how fast the link is.
func (d *Dataplane) speed(p *port, h *fabric.Health) error {
	e := d.tool()
	if e == nil {
		return fabric.ErrNoPort
	}
	megabits, err := e.speed(p.name)
	switch {
	case err == nil && megabits > 0:
		h.Speed = megabits * 1_000_000
		h.Valid |= fabric.FieldSpeed
	case err != nil && !notTold(err):
		return err
	}
	return nil
}

func (d *Dataplane) tool() *ethtool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.ethtool
}
