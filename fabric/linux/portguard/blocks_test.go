package portguard

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/internal/netnstest"
)

// pairs that the tests block, by family.
var pairs = map[string]fence.Key{
	"IPv4": key("p1", "192.0.2.1", "192.0.2.2"),
	"IPv6": key("p1", "2001:db8::1", "2001:db8::2"),
}

// exchange sends frames of two addresses both ways through the bridge, untagged and behind one and
// two tags, and returns how many arrive at the host at p2 and at the array at p1.
func (x *fabricOfTwo) exchange(array, host netip.Addr, mark string) (atHost, atArray int) {
	etherTypes := []uint16{0x0800}
	if array.Is6() {
		etherTypes = []uint16{0x86dd, 0x8915} // RoCE v1 has a header of this form
	}
	for _, tags := range [][][2]uint16{nil, {{0x8100, 5}}, {{0x88a8, 7}, {0x8100, 5}}} {
		for _, et := range etherTypes {
			x.h1.send(frame(x.h2.mac, x.h1.mac, tags, et, ip(array, host, "pair, from the array")))
			x.h2.send(frame(x.h1.mac, x.h2.mac, tags, et, ip(host, array, "pair, from the host")))
		}
	}
	x.h1.send(marked(x.h2.mac, x.h1.mac, mark))
	x.h2.send(marked(x.h1.mac, x.h2.mac, mark))
	count := func(c *tap) (n int) {
		for _, f := range c.received(mark) {
			if bytes.Contains(f, []byte("pair, from")) {
				n++
			}
		}
		return n
	}
	return count(x.h2), count(x.h1)
}

// all is how many of exchange's frames arrive each way when nothing is blocked.
func all(a netip.Addr) int {
	if a.Is6() {
		return 6
	}
	return 3
}

func TestAPairIsBlockedBothWaysAndNothingElse(t *testing.T) {
	for _, way := range ways(t) {
		for family, k := range pairs {
			t.Run(fmt.Sprintf("%s/%s", way, family), func(t *testing.T) {
				x := newFabricOfTwo(t)
				g := open(t, x.sw, Config{Way: way})
				place(t, x.sw, g, "p1", "p2")
				want := all(k.Array)
				try := func(what string, array, host netip.Addr, want int) {
					t.Helper()
					if a, b := x.exchange(array, host, what); a != want || b != want {
						t.Errorf("%s: %d and %d frames arrive, want %d", what, a, b, want)
					}
				}
				try("before the block", k.Array, k.Host, want)
				began := time.Now()
				b, err := g.Block(k, began.Add(time.Hour))
				must(t, err)
				if b.Key != k || b.Since.Before(began) || b.Since.After(time.Now()) || b.Until.Sub(began.Add(time.Hour)).Abs() > time.Second {
					t.Errorf("%+v", b)
				}
				try("blocked", k.Array, k.Host, 0)
				try("another host", k.Array, k.Host.Next(), want)
				try("the host and another address", k.Array.Next().Next(), k.Host, want)
				counts, err := g.Counts()
				must(t, err)
				if n := counts[k]; n != uint64(2*want) || len(counts) != 1 {
					t.Errorf("%v, want %d frames", counts, 2*want)
				}
				must(t, g.Lift(k))
				try("lifted", k.Array, k.Host, want)
			})
		}
	}
}

// Of a blocked port only LLDP and SNSD between the switch and its host pass.
func TestAPortIsBlockedExceptForItsOwnSwitch(t *testing.T) {
	x := newFabricOfTwo(t)
	g := open(t, x.sw, Config{})
	place(t, x.sw, g, "p1", "p2")
	_, err := g.Block(fence.Key{Port: "p2"}, time.Now().Add(time.Hour))
	must(t, err)
	p2 := newTap(t, x.sw, "p2")
	nts := []byte{0x01, 0x80, 0xc2, 0, 0, 0x0d}
	const mark = "frame of a closed port"
	for et, payload := range map[uint16][]byte{
		0x0800: ip(pairs["IPv4"].Array, pairs["IPv4"].Host, mark), 0x86dd: ip(pairs["IPv6"].Array, pairs["IPv6"].Host, mark),
		0x0806: []byte(mark), 0x8809: []byte(mark), 0x8902: []byte(mark), // ARP, LACP, CFM
	} {
		x.h1.send(frame(x.h2.mac, x.h1.mac, nil, et, payload))
		p2.send(frame(x.h2.mac, p2.mac, nil, et, payload))
		x.h2.send(frame(x.h1.mac, x.h2.mac, nil, et, payload))
	}
	p2.send(frame(nts, p2.mac, nil, 0x88a7, []byte("the switch's notice")))
	x.h2.send(frame(nts, x.h2.mac, nil, 0x88a7, []byte("the host's answer")))
	for _, f := range x.h2.received("the switch's notice") {
		if bytes.Contains(f, []byte(mark)) {
			t.Errorf("a frame reaches the host of the blocked port: % x", f)
		}
	}
	p2.received("the host's answer") // it arrives
	x.h3.send(marked(x.h1.mac, x.h3.mac, "behind what h2 has sent"))
	for _, f := range x.h1.received("behind what h2 has sent") {
		if bytes.Contains(f, []byte(mark)) {
			t.Errorf("a frame of the blocked port passes: % x", f)
		}
	}
	if counts, err := g.Counts(); err != nil || counts[fence.Key{Port: "p2"}] < 15 {
		t.Errorf("%v %v, want 15 frames or more", counts, err)
	}
	must(t, g.LiftAll())
	x.h1.send(marked(x.h2.mac, x.h1.mac, "all are lifted"))
	x.h2.received("all are lifted")
}

func TestABlockEndsByTimeAndIsNeverShortened(t *testing.T) {
	x := newFabricOfTwo(t)
	g := open(t, x.sw, Config{})
	place(t, x.sw, g, "p1")
	k := pairs["IPv4"]
	b, err := g.Block(k, time.Now().Add(time.Second))
	must(t, err)
	shorter, err := g.Block(k, b.Until.Add(-time.Second/2))
	must(t, err)
	if shorter.Until.Before(b.Until.Add(-time.Millisecond)) || !shorter.Since.Round(time.Millisecond).Equal(b.Since.Round(time.Millisecond)) {
		t.Errorf("%+v became %+v", b, shorter)
	}
	for n := 0; ; n++ { // nobody touches the guard meanwhile
		arrived, _ := x.exchange(k.Array, k.Host, fmt.Sprintf("try %d", n))
		if now := time.Now(); arrived > 0 && now.Before(b.Until.Add(-time.Millisecond)) {
			t.Fatalf("%d frames arrive %s before the end of the block", arrived, b.Until.Sub(now))
		} else if arrived == 3 {
			break
		} else if now.After(b.Until.Add(10 * time.Second)) {
			t.Fatal("the block does not end")
		}
	}
	if list, err := g.Adopted(); err != nil || len(list) > 0 {
		t.Errorf("%v %v: what has ended is still listed", list, err)
	}
	if _, err := g.Block(k, time.Now().Add(-time.Second)); err == nil {
		t.Error("a block in the past is taken")
	}
	if _, err := g.Block(fence.Key{Port: "p2"}, time.Now().Add(time.Hour)); err == nil {
		t.Error("a port is blocked that is not guarded")
	}
	if _, err := g.Block(fence.Key{Port: "p1", Array: k.Array, Host: pairs["IPv6"].Host}, time.Now().Add(time.Hour)); err == nil {
		t.Error("addresses of two families are a pair")
	}
}

// The daemon is killed: nothing of it runs, and the block stands. The next one finds it, and a port
// that came back as another interface keeps its blocks.
func TestBlocksOutliveTheDaemonAndTheInterface(t *testing.T) {
	for _, way := range ways(t) {
		t.Run(string(way), func(t *testing.T) {
			x := newFabricOfTwo(t)
			dir := pins(t)
			g := open(t, x.sw, Config{Way: way, Pins: dir})
			place(t, x.sw, g, "p1", "p2")
			k, whole := pairs["IPv6"], fence.Key{Port: "p2"}
			b, err := g.Block(k, time.Now().Add(time.Hour))
			must(t, err)
			_, err = g.Block(whole, time.Now().Add(time.Hour))
			must(t, err)
			must(t, g.Lift(whole))
			if way == WayTCX { // as the kernel does at the end of a process
				for _, a := range g.ports {
					a.close()
				}
			}
			in(t, x.sw, func() { must(t, g.Close()) })
			if n, m := x.exchange(k.Array, k.Host, "no daemon"); n+m > 0 {
				t.Errorf("%d and %d frames pass while no daemon runs", n, m)
			}

			in(t, x.sw, func() { // one that ends before it knows its ports
				g, err := Open(Config{Way: way, Pins: dir})
				must(t, err)
				must(t, g.Close())
			})
			if n, m := x.exchange(k.Array, k.Host, "a daemon that ended at once"); n+m > 0 {
				t.Errorf("%d and %d frames pass after a daemon that ended at once", n, m)
			}

			g = open(t, x.sw, Config{Way: way, Pins: dir})
			list, err := g.Adopted()
			must(t, err)
			if len(list) != 1 || list[0].Key != k || list[0].Until.Sub(b.Until).Abs() > time.Second || list[0].Since.Sub(b.Since).Abs() > time.Second {
				t.Fatalf("%+v, want %+v", list, b)
			}
			before, err := g.Counts()
			must(t, err)
			place(t, x.sw, g, "p1", "p2")
			if n, m := x.exchange(k.Array, k.Host, "the next daemon"); n+m > 0 {
				t.Errorf("%d and %d frames pass", n, m)
			}
			if counts, err := g.Counts(); err != nil || counts[k] != before[k]+12 {
				t.Errorf("%d frames are counted after %d: %v; two programs would count twice", counts[k], before[k], err)
			}

			old := x.sw.Link("p1").Attrs().Index
			x.sw.Delete("p1")
			far := netnstest.New(t)
			x.sw.Veth("p1", far, "h1")
			must(t, x.sw.NL.LinkSetMaster(x.sw.Link("p1"), x.sw.Link("br0")))
			x.h1 = newTap(t, far, "h1")
			if now := x.sw.Link("p1").Attrs().Index; now == old {
				t.Fatal("it is the same interface")
			}
			place(t, x.sw, g, "p1", "p2")
			if n, m := x.exchange(k.Array, k.Host, "another interface"); n+m > 0 {
				t.Errorf("%d and %d frames pass at the new interface", n, m)
			}
			in(t, x.sw, func() { must(t, g.Remove()) })
			if n, m := x.exchange(k.Array, k.Host, "removed"); n != 6 || m != 6 {
				t.Errorf("%d and %d frames pass once the guard is removed, want 6", n, m)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "guard-*")); err != nil || len(left) > 0 {
				t.Errorf("%v is left: %v", left, err)
			}
		})
	}
}

// The pins of a network namespace that is gone, as a lab leaves them, do not pile up.
func TestPinsOfDeadNamespacesAreRemoved(t *testing.T) {
	if !slices.Contains(ways(t), WayTCX) {
		netnstest.LeftOut(t, "pins of TCX links", "")
		return
	}
	dir := pins(t)
	first, second := netnstest.New(t), netnstest.New(t)
	for _, s := range []*netnstest.Space{first, second} {
		s.Veth("p1", netnstest.New(t), "h1")
	}
	g := open(t, first, Config{Pins: dir})
	place(t, first, g, "p1")
	left := g.dir
	in(t, first, func() { must(t, g.Close()) })
	place(t, second, open(t, second, Config{Pins: dir}), "p1")
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the pins of a namespace that lives: %v", err)
	}
	first.Delete("p1")
	open(t, second, Config{Pins: dir})
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pins of a namespace without interfaces are still there: %v", err)
	}
}

// An array blocks a pair at its own interface, without pins.
func TestAnArrayBlocksAPairAtItsOwnInterface(t *testing.T) {
	for _, way := range ways(t) {
		t.Run(string(way), func(t *testing.T) {
			array, host := netnstest.New(t), netnstest.New(t)
			array.Veth("a", host, "h")
			a, h := newTap(t, array, "a"), newTap(t, host, "h")
			k := key("a", "192.0.2.1", "192.0.2.2")
			g := open(t, array, Config{AtArray: true, Way: way})
			place(t, array, g, "a")
			in(t, array, func() {
				_, err := g.Block(k, time.Now().Add(time.Hour))
				must(t, err)
			})
			try := func(mark string) (atHost int) {
				a.send(frame(h.mac, a.mac, nil, 0x0800, ip(k.Array, k.Host, "x")))
				a.send(frame(h.mac, a.mac, nil, 0x0800, ip(k.Host, k.Array, "the wrong way round")))
				a.send(frame([]byte{0x01, 0x80, 0xc2, 0, 0, 0x0e}, a.mac, nil, 0x88cc, make([]byte, 60)))
				h.send(frame(a.mac, h.mac, nil, 0x0800, ip(k.Host, k.Array, "x")))
				a.send(marked(h.mac, a.mac, mark))
				for _, f := range h.received(mark) {
					if [6]byte(f[6:12]) == [6]byte(a.mac) && innerType(f) != 0x86dd { // none of the kernel's own
						atHost++
					}
				}
				return atHost
			}
			if n := try("blocked"); n != 2 {
				t.Errorf("%d frames leave, want 2: what the block does not name, and LLDP", n)
			}
			if counts, err := g.Counts(); err != nil || counts[k] != 2 {
				t.Errorf("%v %v, want one frame out and one in", counts, err)
			}
			in(t, array, func() { must(t, g.Close()) })
			if n := try("closed"); n != 3 {
				t.Errorf("%d frames leave once the process has ended its part, want 3", n)
			}
		})
	}
}

func TestAFullMapIsAnErrorAndWhatHasEndedMakesRoom(t *testing.T) {
	s := netnstest.New(t)
	s.Veth("p1", netnstest.New(t), "h1")
	g := open(t, s, Config{})
	place(t, s, g, "p1")
	now, err := readClock()
	must(t, err)
	index := uint32(s.Link("p1").Attrs().Index)
	most := int(g.maps[mapBlocks].MaxEntries())
	for n := range most { // the last one has ended
		k := keyRow{Port: index, Array: netip.MustParseAddr("192.0.2.1").As16(), Host: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).As16()}
		v := blockRow{Until: now.boot + uint64(time.Hour)}
		if n == most-1 {
			v.Until = 1
		}
		v.Port, _ = nameRow("p1")
		if err := g.maps[mapBlocks].Put(&k, &v); err != nil {
			t.Fatalf("row %d: %v", n, err)
		}
	}
	if _, err := g.Block(key("p1", "192.0.2.1", "192.0.2.2"), time.Now().Add(time.Hour)); err != nil {
		t.Errorf("what has ended makes no room: %v", err)
	}
	if _, err := g.Block(key("p1", "192.0.2.1", "192.0.2.3"), time.Now().Add(time.Hour)); !errors.Is(err, ErrFull) {
		t.Errorf("%v, want ErrFull", err)
	}
	must(t, g.LiftAll())
	if counts, err := g.Counts(); err != nil || len(counts) > 0 {
		t.Errorf("%d blocks are left: %v", len(counts), err)
	}
}

func TestRowsHaveTheSizesOfTheProgram(t *testing.T) {
	spec, err := load(false)
	must(t, err)
	for name, size := range map[string][2]uintptr{
		mapBlocks: {unsafe.Sizeof(keyRow{}), unsafe.Sizeof(blockRow{})},
		mapPorts:  {4, unsafe.Sizeof(portRow{})},
		mapLatest: {4, 8},
	} {
		m := spec.Maps[name]
		if m == nil || uintptr(m.KeySize) != size[0] || uintptr(m.ValueSize) != size[1] {
			t.Errorf("map %s is %v, want rows of %v", name, m, size)
		}
	}
	if names := slices.Sorted(maps.Keys(spec.Programs)); !slices.Equal(names, []string{programIn, programOut}) {
		t.Errorf("programs %v", names)
	}
}

// The boot-time clock goes on during a suspend, and nobody sets it: rows are of that clock.
func TestTimesAreOfTheBootClock(t *testing.T) {
	var before, after unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &before))
	c, err := readClock()
	must(t, err)
	must(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &after))
	if c.boot < uint64(before.Nano()) || c.boot > uint64(after.Nano()) {
		t.Errorf("%d is not between %d and %d", c.boot, before.Nano(), after.Nano())
	}
	for _, d := range []time.Duration{-time.Second, 0, time.Nanosecond, 20 * time.Second} {
		at := c.now.Add(d)
		if got := c.boottime(at); got != uint64(int64(c.boot)+int64(d)) {
			t.Errorf("%s from now is %d, now is %d", d, got, c.boot)
		}
		if back := c.time(c.boottime(at)); !back.Equal(at) {
			t.Errorf("%s came back as %s", at, back)
		}
	}
}
