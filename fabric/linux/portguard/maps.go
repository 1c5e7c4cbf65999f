package portguard

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric/fence"
)

//go:embed bpf/guard.o
var object []byte

// The rows of the maps, as guard.c has them.
type (
	keyRow struct {
		Port        uint32 // interface index
		Array, Host [16]byte
	}
	blockRow struct {
		Since, Until, Dropped uint64 // times: CLOCK_BOOTTIME, ns
		Port                  [unix.IFNAMSIZ]byte
	}
	portRow struct {
		In, Out uint64
		Src     [6]byte
		Type    uint16
	}
)

// Names in the object.
const (
	mapBlocks, mapPorts, mapLatest = "blocks", "ports", "latest"
	programIn, programOut          = "guard_in", "guard_out"
	variableAtArray                = "AT_ARRAY"
)

func load(atArray bool) (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("the programs of the port guard: %w", err)
	}
	if atArray {
		err = spec.Variables[variableAtArray].Set(uint32(1))
	}
	return spec, err
}

// rowOf returns the row of a block at an interface.
func rowOf(k fence.Key, index int) (keyRow, error) {
	row := keyRow{Port: uint32(index)}
	if !k.Array.IsValid() && !k.Host.IsValid() {
		return row, nil
	}
	if !k.Array.IsValid() || !k.Host.IsValid() || k.Array.Unmap().Is4() != k.Host.Unmap().Is4() ||
		k.Array.IsUnspecified() || k.Host.IsUnspecified() {
		return row, fmt.Errorf("block at port %s: %q and %q are no pair of addresses of one family", k.Port, k.Array, k.Host)
	}
	row.Array, row.Host = k.Array.As16(), k.Host.As16()
	return row, nil
}

// keyOf is the inverse of rowOf.
func keyOf(row keyRow, port string) fence.Key {
	k := fence.Key{Port: port}
	if row.Array != [16]byte{} || row.Host != [16]byte{} {
		k.Array, k.Host = netip.AddrFrom16(row.Array).Unmap(), netip.AddrFrom16(row.Host).Unmap()
	}
	return k
}

func nameRow(name string) (row [unix.IFNAMSIZ]byte, err error) {
	if name == "" || len(name) >= len(row) {
		return row, fmt.Errorf("port %q: the name of an interface has 1 to %d bytes", name, len(row)-1)
	}
	copy(row[:], name)
	return row, nil
}

// A bootClock turns times into those of CLOCK_BOOTTIME, which goes on during a suspend and is never
// set: a block lasts as long as it should whatever happens to the wall clock.
type bootClock struct {
	boot uint64 // ns
	now  time.Time
}

func readClock() (bootClock, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return bootClock{}, fmt.Errorf("CLOCK_BOOTTIME: %w", err)
	}
	return bootClock{boot: uint64(ts.Nano()), now: time.Now()}, nil
}

func (c bootClock) boottime(t time.Time) uint64 {
	return uint64(max(0, int64(c.boot)+int64(t.Sub(c.now))))
}

func (c bootClock) time(boot uint64) time.Time {
	return c.now.Add(time.Duration(int64(boot) - int64(c.boot)))
}

// absent makes a missing row no error.
func absent(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}
