package portguard

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/fence"
)

// ErrFull means that the map holds as many blocks as it can.
var ErrFull = errors.New("no room for another block")

var _ fence.Dataplane = (*Guard)(nil)

// String implements fence.Dataplane.
func (g *Guard) String() string { return "eBPF" }

// Adopted implements fence.Dataplane.
func (g *Guard) Adopted() ([]fence.Block, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []fence.Block
	err := g.each(func(c bootClock, k keyRow, v blockRow) {
		list = append(list, fence.Block{Key: keyOf(k, v.name()), Since: c.time(v.Since), Until: c.time(v.Until)})
	})
	return list, err
}

// Counts implements fence.Dataplane.
func (g *Guard) Counts() (map[fence.Key]uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	counts := make(map[fence.Key]uint64)
	err := g.each(func(_ bootClock, k keyRow, v blockRow) { counts[keyOf(k, v.name())] = v.Dropped })
	return counts, err
}

// Block implements fence.Dataplane.
func (g *Guard) Block(key fence.Key, until time.Time) (fence.Block, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.ports[key.Port]
	if a == nil {
		return fence.Block{}, fmt.Errorf("port %s is not guarded: nothing can be blocked there", key.Port)
	}
	k, err := rowOf(key, a.port.Index)
	if err != nil {
		return fence.Block{}, err
	}
	c, err := readClock()
	if err != nil {
		return fence.Block{}, err
	}
	end := c.boottime(until)
	if end <= c.boot {
		return fence.Block{}, fmt.Errorf("block at port %s: it would end at %s, which has passed", key.Port, until.Format(time.RFC3339Nano))
	}
	v := blockRow{Since: c.boot}
	var was blockRow
	if err := absent(g.maps[mapBlocks].Lookup(&k, &was)); err != nil {
		return fence.Block{}, err
	}
	if was.Until > c.boot {
		v = was
	}
	v.Until = max(v.Until, end)
	v.Port, _ = nameRow(key.Port) // checked as it was attached
	if err := g.put(&k, &v); err != nil {
		return fence.Block{}, fmt.Errorf("block at port %s: %w", key.Port, err)
	}
	return fence.Block{Key: keyOf(k, key.Port), Since: c.time(v.Since), Until: c.time(v.Until)}, nil
}

// put writes a block, then the time until which the program looks for blocks.
func (g *Guard) put(k *keyRow, v *blockRow) error {
	err := g.maps[mapBlocks].Put(k, v)
	if errors.Is(err, unix.E2BIG) {
		if err = g.each(nil); err == nil {
			err = g.maps[mapBlocks].Put(k, v)
		}
		if errors.Is(err, unix.E2BIG) {
			return fmt.Errorf("%w: %d are in force", ErrFull, g.maps[mapBlocks].MaxEntries())
		}
	}
	if err != nil {
		return err
	}
	var latest uint64
	if err := g.maps[mapLatest].Lookup(uint32(0), &latest); err != nil {
		return err
	}
	return g.maps[mapLatest].Put(uint32(0), max(latest, v.Until))
}

// Lift implements fence.Dataplane.
func (g *Guard) Lift(key fence.Key) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.ports[key.Port]; a != nil {
		k, err := rowOf(key, a.port.Index)
		return errors.Join(err, absent(g.maps[mapBlocks].Delete(&k)))
	}
	var errs []error
	err := g.each(func(_ bootClock, k keyRow, v blockRow) { // of a port that is not there now
		if keyOf(k, v.name()) == unmapped(key) {
			errs = append(errs, absent(g.maps[mapBlocks].Delete(&k)))
		}
	})
	return errors.Join(append(errs, err)...)
}

// LiftAll implements fence.Dataplane.
func (g *Guard) LiftAll() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	errs := []error{g.maps[mapLatest].Put(uint32(0), uint64(0))}
	for _, k := range keysOf[keyRow, blockRow](g.maps[mapBlocks]) {
		errs = append(errs, absent(g.maps[mapBlocks].Delete(&k)))
	}
	return errors.Join(errs...)
}

// each visits the blocks in force, and removes those that have ended.
func (g *Guard) each(visit func(c bootClock, k keyRow, v blockRow)) error {
	c, err := readClock()
	if err != nil {
		return err
	}
	var errs []error
	for _, k := range keysOf[keyRow, blockRow](g.maps[mapBlocks]) {
		var v blockRow
		if err := g.maps[mapBlocks].Lookup(&k, &v); err != nil {
			errs = append(errs, absent(err))
		} else if v.Until <= c.boot {
			errs = append(errs, absent(g.maps[mapBlocks].Delete(&k)))
		} else if visit != nil {
			visit(c, k, v)
		}
	}
	return errors.Join(errs...)
}

// move takes the blocks of a port to its present interface.
func (g *Guard) move(port fabric.GuardedPort) error {
	var errs []error
	err := g.each(func(_ bootClock, k keyRow, v blockRow) {
		if v.name() != port.Name || k.Port == uint32(port.Index) {
			return
		}
		to := k
		to.Port = uint32(port.Index)
		if err := g.put(&to, &v); err != nil {
			errs = append(errs, err)
			return
		}
		errs = append(errs, absent(g.maps[mapBlocks].Delete(&k)))
	})
	return errors.Join(append(errs, err)...)
}

// keysOf reads the keys of a map to which only its owner adds rows.
func keysOf[K, V any](m *ebpf.Map) (keys []K) {
	var k K
	var v V
	for it := m.Iterate(); it.Next(&k, &v); {
		keys = append(keys, k)
	}
	return keys
}

func (v *blockRow) name() string {
	n := 0
	for n < len(v.Port) && v.Port[n] != 0 {
		n++
	}
	return string(v.Port[:n])
}

func unmapped(k fence.Key) fence.Key {
	k.Array, k.Host = k.Array.Unmap(), k.Host.Unmap()
	return k
}
