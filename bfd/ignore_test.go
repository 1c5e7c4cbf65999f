//go:build linux

package bfd

import (
	"testing"
	"time"

	"golang.org/x/net/bpf"
)

// The program of the kernel, run here: it drops what comes in by the interfaces and
// nothing else.
func TestTheFilterDropsWhatHostsSend(t *testing.T) {
	for _, list := range [][]int{{7}, {3, 4, 5}, {9, 3, 4, 1, 5}, {2, 4, 6, 8, 100, 101, 102, 4096}} {
		program := ignoreProgram(list)
		// The interface is not known to a VM outside the kernel: it is loaded from the packet.
		program[0] = bpf.LoadAbsolute{Off: 0, Size: 4}
		vm, err := bpf.NewVM(program)
		if err != nil {
			t.Fatal(err)
		}
		for index := range 5000 {
			n, err := vm.Run([]byte{byte(index >> 24), byte(index >> 16), byte(index >> 8), byte(index)})
			if err != nil {
				t.Fatal(err)
			}
			want := true
			for _, i := range list {
				want = want && i != index
			}
			if (n > 0) != want {
				t.Errorf("%v: interface %d passes: %v", list, index, n > 0)
			}
		}
	}
}

// A host sends BFD in a device's name to its own switch: the kernel drops it. Without
// the filter it is read and counted. Either way the path between the switches stays up.
func TestBFDFromAHostPortIsDroppedInTheKernel(t *testing.T) {
	a, b := pair(t)
	host := newSpace(t)
	cable(t, "host0", a, host)
	a.Addr("host0", "10.9.7.1/24")
	host.Addr("host0", "10.9.7.2/24", "10.9.0.2/32") // the second is that of the other switch
	for _, s := range []*space{a, host} {
		s.set("net/ipv4/conf/all/rp_filter", "0")
		s.set("net/ipv4/conf/host0/rp_filter", "0")
	}
	k := Key{Peer: ip("10.9.0.2"), Local: ip("10.9.0.1"), Multihop: true}
	one := a.run(RunnerConfig{}, Peer{Key: k, Timers: every(200*ms, 5)})
	b.run(RunnerConfig{}, Peer{Key: Key{Peer: k.Local, Local: k.Peer, Multihop: true}, Timers: every(200*ms, 5)})
	one.want(ReportUp)
	refused := func() uint64 {
		c, _, err := one.Counters()
		if err != nil {
			t.Fatal(err)
		}
		return c.Unnamed
	}
	// The host says that the session is Down, as the other switch would.
	host.mustRun("ip", "route", "add", "10.9.0.1/32", "via", "10.9.7.1")
	spoofer := host.run(RunnerConfig{}, Peer{Key: Key{Peer: k.Local, Local: k.Peer, Multihop: true}, Timers: every(200*ms, 5)})
	spoofs := func() uint64 {
		st, err := spoofer.Status()
		if err != nil || len(st) != 1 {
			t.Fatal(st, err)
		}
		return st[0].PacketsOut
	}
	if !eventually(func() bool { return refused() > 0 }) {
		t.Fatal("no spoofed packet arrived: the test shows nothing")
	}
	one.Ignore([]int{a.Link("host0").Attrs().Index})
	seen := refused() // asked for after the filter was
	for sent := spoofs(); spoofs() < sent+4; {
		time.Sleep(10 * ms)
	}
	one.status("goes on", func(s Status) bool { return s.State == StateUp && s.PacketsIn > 20 })
	if n := refused(); n != seen {
		t.Errorf("%d came through the kernel's filter", n-seen)
	}
	one.none()
	one.Ignore(nil)
	if !eventually(func() bool { return refused() > seen }) {
		t.Error("none arrives after the filter was taken away")
	}
	if _, tc, err := one.Counters(); err != nil || tc.FilterErrors != 0 {
		t.Errorf("%+v %v", tc, err)
	}
}
