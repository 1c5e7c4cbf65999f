package zonefilter

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric/linux/bpfpins"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/netnstest"
)

// pins is a bpf file system of the test's own.
func pins(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bpf")
	if err := bpfpins.Make(dir); err != nil {
		netnstest.Require(t, "a bpf file system", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// in runs fn in a namespace.
func in(t testing.TB, s *netnstest.Space, fn func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := netns.Set(s.Handle)
		defer func() { done <- err }() // also when fn ends the test
		if err == nil {
			fn()
		}
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// openPinned opens the filter of a directory as a daemon does.
func openPinned(t testing.TB, dir string) *Filter {
	t.Helper()
	cfg := hardzone.Default()
	cfg.Pins = dir
	f, err := Open(cfg)
	netnstest.Require(t, "eBPF", err)
	return f
}

func TestTheNextProcessTakesOverWhatIsInForce(t *testing.T) {
	dir, s, far := pins(t), netnstest.New(t), netnstest.New(t)
	s.Veth("p1", far, "h1")
	s.Veth("p2", far, "h2")
	ports := []hardzone.Port{{Name: "p1", Index: s.Link("p1").Attrs().Index}, {Name: "p2", Index: s.Link("p2").Attrs().Index}}
	cfg := hardzone.Default()
	in(t, s, func() {
		f := openPinned(t, dir)
		fill(t, f, cfg)
		for _, st := range f.SetPorts(ports) {
			if st.Err != nil || st.Attach != hardzone.AttachNative {
				t.Fatalf("%+v", st)
			}
		}
		f.Close()
		next := openPinned(t, dir)
		defer next.Close()
		hosts, pairs, suspended := next.Adopted()
		if len(hosts) != len(learned) || len(pairs) != len(mayTalk) || suspended {
			t.Fatal(hosts, pairs, suspended)
		}
		for _, h := range hosts {
			if !slices.Equal(h.Ports, atPorts[h.Addr]) {
				t.Errorf("%s is at %v", h.Addr, h.Ports)
			}
		}
		before, err := next.Look(hA, hB)
		if err != nil || !before.Open {
			t.Fatal(before, err)
		}
		for _, st := range next.SetPorts(ports) { // a new program in the same link
			if st.Err != nil || st.Attach != hardzone.AttachNative {
				t.Fatalf("%+v", st)
			}
		}
		if err := next.Remove(); err != nil {
			t.Fatal(err)
		}
		left, _ := os.ReadDir(dir)
		left = slices.DeleteFunc(left, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".debug") }) // the kernel's
		if len(left) > 0 {
			t.Error("left behind:", left)
		}
	})
}

func TestAnOperatorsSuspensionOutlivesTheProcess(t *testing.T) {
	dir := pins(t)
	f := openPinned(t, dir)
	fill(t, f, hardzone.Default())
	must(t, f.Suspend(true))
	if !runner(t, f, "p1", hardzone.AttachNative)(packet{port: "p1", src: hA, dst: hC, protocol: 6}.bytes(t)) {
		t.Error("a suspended filter drops")
	}
	f.Close()
	f = openPinned(t, dir)
	defer f.Close()
	if _, _, suspended := f.Adopted(); !suspended {
		t.Error("the next process does not know")
	}
	must(t, f.Configure(hardzone.Default(), nil))
	if seen, err := f.Look(hA, hB); err != nil || !seen.Suspended {
		t.Error("a configuration ended it", err)
	}
	must(t, f.Suspend(false))
	if runner(t, f, "p1", hardzone.AttachNative)(packet{port: "p1", src: hA, dst: hC, protocol: 6}.bytes(t)) {
		t.Error("it goes on")
	}
}

func TestTablesOfAnotherSizeAreTakenOver(t *testing.T) {
	dir := pins(t)
	f := openPinned(t, dir)
	fill(t, f, hardzone.Default())
	f.Close()
	cfg := hardzone.Default()
	cfg.Pins, cfg.MaxPairs = dir, 2048
	f, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if seen, err := f.Look(hA, hB); err != nil || !seen.Open || !slices.Equal(seen.APorts, atPorts[hA]) {
		t.Error(seen, err)
	}
	if n := f.tables[tableTiles].MaxEntries(); n != 2048 {
		t.Error(n)
	}
	if a, err := f.Audit(); err != nil || a.Repaired() != 0 {
		t.Error(a, err)
	}
}

func TestAnAuditRepairsWhatOthersChanged(t *testing.T) {
	f := open(t, hardzone.Default())
	fill(t, f, hardzone.Default())
	if a, err := f.Audit(); err != nil || a.Repaired() != 0 || a.Pairs != len(mayTalk) || a.Hosts != len(learned) {
		t.Fatal(a, err)
	}
	a, b := addr4Key(hA.As4()), addr4Key(hB.As4())
	v := f.rows.places4.want[b]
	v.Number = 77
	must(t, f.tables[tablePlaces4].Delete(&a))
	must(t, f.tables[tablePlaces4].Put(&b, &v))
	must(t, f.tables[tableTiles].Put(tileKey{5, 6}, &tileValue{Bits: [8]uint32{1}}))
	got, err := f.Audit()
	if err != nil || got.Missing != 1 || got.Wrong != 1 || got.Foreign != 1 {
		t.Fatal(got, err)
	}
	if got, err := f.Audit(); err != nil || got.Repaired() != 0 {
		t.Fatal(got, err)
	}
}

func TestFramesAreCountedAndDroppedOnesAreSaid(t *testing.T) {
	cfg := hardzone.Default()
	cfg.Samples = 1000
	s, far := netnstest.New(t), netnstest.New(t)
	s.Veth("p1", far, "h1")
	f := open(t, cfg)
	fill(t, f, cfg)
	in(t, s, func() {
		if st := f.SetPorts([]hardzone.Port{{Name: "p1", Index: s.Link("p1").Attrs().Index}}); st[0].Err != nil {
			t.Error(st[0].Err)
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	got, done := make(chan hardzone.Sample, 8), make(chan error, 1)
	go func() { done <- f.Samples(ctx, func(s hardzone.Sample) { got <- s }) }()
	run := runner(t, f, "p1", hardzone.AttachNative)
	for _, dst := range []netip.Addr{hB, hC, hB} {
		run(packet{port: "p1", src: hA, dst: dst, protocol: 6, sport: 40000, dport: 4420}.bytes(t))
	}
	c, err := f.Counts()
	if p := c.Ports["p1"]; err != nil || p.Passed != 2 || p.NoPair != 1 || p.Denied() != 1 {
		t.Errorf("%+v %v", c, err)
	}
	if len(c.Zones) != 3 || c.Zones[1].Passed != 2 || c.Zones[2].Denied != 1 {
		t.Errorf("%+v", c.Zones)
	}
	select {
	case s := <-got:
		if s.Port != "p1" || s.Why != hardzone.NoPair || s.Src != hA || s.Dst != hC || s.DstPort != 4420 || time.Since(s.At) > time.Minute || time.Since(s.At) < 0 {
			t.Errorf("%+v", s)
		}
	case <-time.After(10 * time.Second):
		t.Error("no sample")
	}
	stop()
	if err := <-done; err != nil && !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}
