package linux

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/netnstest"
)

// eventually waits for a state that nothing announces.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func TestRenamedPortIsRemovedAndAdded(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	r, _ := start(t, sw, nil, "p0", "p1")
	r.ready("p0")
	rename := func(from, to string) {
		t.Helper()
		if err := sw.NL.LinkSetName(sw.Link(from), to); err != nil {
			t.Fatal(err)
		}
	}
	rename("p0", "p1")
	r.removed("p0")
	r.ready("p1")
	isErr(t, r.Send("p0", control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1))), fabric.ErrNoPort)
	if err := r.Send("p1", control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1))); err != nil {
		t.Error(err)
	}
	rename("p1", "x1")
	r.removed("p1")
	rename("x1", "p0")
	r.ready("p0")
}

func TestOnlyNamedPortsAreTouched(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("x0", host, "hx0")
	sw.veth("p0", host, "hp0")
	r, d := start(t, sw, nil, "p*")
	r.ready("p0")
	receive(t, r.Ready(), "Ready")
	sw.SetUp("x0", false)
	sw.veth("x1", host, "hx1")
	host.SetUp("hp0", false)
	r.up("p0", false) // fails on an event of another port
	isErr(t, r.SetAdmin("x0", true), fabric.ErrNoPort)
	if st := d.Stats(); len(st.Ports) != 1 || st.Ports[0].Port != "p0" {
		t.Errorf("ports are %+v, want p0 alone", st.Ports)
	}
	if up := sw.Link("x0").Attrs().Flags; up&1 != 0 {
		t.Errorf("x0 has flags %v, want it to stay shut", up)
	}
}

func TestPortsNamedAnewComeAndGoAloneByName(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	for _, n := range []string{"p0", "p1", "x0"} {
		sw.veth(n, host, "h"+n)
	}
	r, d := start(t, sw, nil, "p*")
	for there := map[string]bool{}; len(there) < 2; {
		there[receive(t, r.Events(), "event").Port.Name] = true
	}
	if err := d.SetAccess([]string{"p0", "x0"}); err != nil {
		t.Fatal(err)
	}
	// The order of the dump is the kernel's; p0 must not be told of at all.
	seen := map[string]fabric.EventKind{}
	for len(seen) < 2 {
		if ev := receive(t, r.Events(), "event"); ev.Kind != fabric.PortChanged || ev.Port.Name == "p0" {
			seen[ev.Port.Name] = ev.Kind
		}
	}
	if want := map[string]fabric.EventKind{"x0": fabric.PortAdded, "p1": fabric.PortRemoved}; !maps.Equal(seen, want) {
		t.Errorf("events %v, want %v", seen, want)
	}
	for _, bad := range [][]string{nil, {"["}} {
		if d.SetAccess(bad) == nil {
			t.Errorf("access %q is taken", bad)
		}
	}
}

func TestPortSurvivesLeavingABridge(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	r, _ := start(t, sw, nil, "p0")
	r.ready("p0")
	la := netlink.NewLinkAttrs()
	la.Name = "br0"
	netnstest.Require(t, "making a bridge", sw.NL.LinkAdd(&netlink.Bridge{LinkAttrs: la}))
	sw.SetUp("br0", true)
	if err := sw.NL.LinkSetMaster(sw.Link("p0"), sw.Link("br0")); err != nil {
		t.Fatal(err)
	}
	from, heard := host.socket("h0"), false
	for end := time.Now().Add(patience); !heard && time.Now().Before(end); { // the first may come while the socket changes over
		if err := from.Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 9))); err != nil {
			t.Fatal(err)
		}
		select {
		case f := <-r.Frames():
			heard = f.Payload[0] == 9
		case <-time.After(20 * time.Millisecond):
		}
	}
	if !heard {
		t.Error("no frame through a bridge port")
	}
	if err := sw.NL.LinkSetNoMaster(sw.Link("p0")); err != nil {
		t.Fatal(err)
	}
	host.SetUp("h0", false)
	if ev := receive(t, r.Events(), "carrier loss"); ev.Kind != fabric.PortChanged || ev.Port.Carrier {
		t.Errorf("first event after the bridge is %+v, want the carrier loss", ev)
	}
}

func TestNewAddressReachesTheFilter(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	r, _ := start(t, sw, nil, "p0")
	r.ready("p0")
	mac := fabric.MAC{2, 0, 0, 0, 0, 0x42}
	if err := sw.NL.LinkSetHardwareAddr(sw.Link("p0"), mac[:]); err != nil {
		t.Fatal(err)
	}
	r.event("p0", func(ev fabric.Event) bool { return ev.Port.MAC == mac })
	if err := host.socket("h0").Send(control(fabric.EtherTypeNTS, mac, payload(46, 1))); err != nil {
		t.Fatal(err)
	}
	if f := receive(t, r.Frames(), "frame to the new address"); f.Dst != mac {
		t.Errorf("frame is %+v", f)
	}
}

func TestLostMessagesAreMadeUpFor(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	r, d := start(t, sw, func(c *Config) { c.QueueEvents, c.CarrierPoll, c.Resync = 1, -1, -1 }, "p*")
	r.ready("p0")
	receive(t, r.Ready(), "Ready")
	if err := d.current().s.SetReceiveBufferSize(1, false); err != nil {
		t.Fatal(err)
	}
	// Nobody reads events now, so the reader stands still and the kernel's buffer
	// runs over.
	for i := range 100 {
		if err := sw.NL.LinkSetMTU(sw.Link("p0"), 1400+i); err != nil {
			t.Fatal(err)
		}
	}
	sw.veth("p1", host, "h1")
	host.SetUp("h0", false)
	want := map[string]bool{"p0": false, "p1": true}
	got := map[string]bool{"p0": true}
	for !cmp.Equal(want, got) {
		ev := receive(t, r.Events(), fmt.Sprintf("events until %v, now %v, %+v", want, got, d.Stats()))
		got[ev.Port.Name] = ev.Port.Up()
	}
	if st := d.Stats(); st.Lost == 0 {
		t.Errorf("nothing was lost, the test shows nothing: %+v", st)
	}
}

func TestFailedLinkSocketIsReplaced(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	r, d := start(t, sw, func(c *Config) { c.CarrierPoll = -1 }, "p*")
	r.ready("p0")
	receive(t, r.Ready(), "Ready")
	d.current().close()
	sw.Delete("p0")
	sw.veth("p1", host, "h1")
	r.removedOrAdded("p0", "p1")
	if st := d.Stats(); st.Errors == 0 {
		t.Errorf("no error counted: %+v", st)
	}
}

// removedOrAdded waits until one port is gone and another one is up.
func (r *running) removedOrAdded(gone, there string) {
	r.t.Helper()
	for g, th := false, false; !g || !th; {
		ev := receive(r.t, r.Events(), "event")
		g = g || ev.Port.Name == gone && ev.Kind == fabric.PortRemoved
		th = th || ev.Port.Name == there && ev.Kind != fabric.PortRemoved && ev.Port.Up()
	}
}

func TestStormOnOnePortLeavesOthersAlone(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	sw.veth("p1", host, "h1")
	const rate = 1000
	r, d := start(t, sw, func(c *Config) { c.FrameRate, c.QueueFrames = rate, 8 }, "p0", "p1")
	for up := 0; up < 2; {
		if receive(t, r.Events(), "ports up").Port.Up() {
			up++
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	storm, far := host.socket("h0"), host.socket("h1")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for f := control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 0)); ctx.Err() == nil; {
			_ = storm.Send(f)
		}
	}()
	defer func() { cancel(); <-done }()
	eventually(t, "storm begins", func() bool {
		for len(r.Frames()) > 0 {
			<-r.Frames()
		}
		return d.Stats().Ports[0].Throttled > 0
	})
	t0 := time.Now()
	stormed, calm := 0, 0
	const n = 100
	for i := range n {
		if err := far.Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, byte(i)))); err != nil {
			t.Fatal(err)
		}
		for calm == i {
			f := receive(t, r.Frames(), "frames during the storm")
			if f.Port == "p0" {
				stormed++
				continue
			}
			if f.Payload[0] != byte(i) {
				t.Fatalf("frame %d of the calm port is %d", i, f.Payload[0])
			}
			calm++
		}
	}
	took := time.Since(t0)
	if limit := int(took.Seconds()*rate) + rate/10 + 600; stormed > limit {
		t.Errorf("%d frames of the storm in %v, want at most %d", stormed, took, limit)
	}
	eventually(t, "dropped frames are counted", func() bool { return d.Stats().Ports[0].Dropped > 0 })
	if st := d.Stats(); st.Ports[1].Dropped != 0 {
		t.Errorf("the calm port lost frames: %+v", st.Ports[1])
	}
	t.Logf("%d frames of the calm port and %d of the storm in %v; %+v", calm, stormed, took, d.Stats().Ports[0])
}

func TestOverlongFrameIsCountedAndTold(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	for _, end := range []struct {
		s *space
		n string
	}{{sw, "p0"}, {host, "h0"}} {
		if err := end.s.NL.LinkSetMTU(end.s.Link(end.n), 9000); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	r, d := start(t, sw, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }, "p0")
	r.ready("p0")
	far := host.socket("h0")
	for _, n := range []int{8000, fabric.MaxControlPayload + 1, fabric.MaxControlPayload} {
		if err := far.Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(n, 1))); err != nil {
			t.Fatal(err)
		}
	}
	if f := receive(t, r.Frames(), "frame of the right size"); len(f.Payload) != fabric.MaxControlPayload {
		t.Errorf("frame has %d bytes of payload, want %d", len(f.Payload), fabric.MaxControlPayload)
	}
	if n := d.Stats().Ports[0].Overlong; n != 2 {
		t.Errorf("%d overlong frames counted, want 2", n)
	}
	const want = `longer than 1500 bytes" port=p0 from=02:00:00:00:00:99 ethertype=0x88a7 so_far=2`
	if !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, log.String())
	}
}

// lateness gives by how much a timer of this process was late at most since it was asked
// last: what a busy machine adds to whatever is measured.
func lateness(t *testing.T) func() time.Duration {
	var most atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	const every = 10 * time.Millisecond
	go func() {
		defer close(done)
		for {
			began := time.Now()
			select {
			case <-stop:
				return
			case <-time.After(every):
				most.Store(max(most.Load(), int64(time.Since(began)-every)))
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
	return func() time.Duration { return time.Duration(most.Swap(0)) }
}

// TestHeldBackCarrierIsSeenByPolling: the interfaces of this cable have the same
// index in their namespaces, so that linkwatch takes their events for not urgent.
func TestHeldBackCarrierIsSeenByPolling(t *testing.T) {
	for _, source := range []string{"sysfs", "ethtool"} {
		t.Run(source, func(t *testing.T) {
			sw, host := newSpace(t), newSpace(t)
			sw.veth("p0", host, "h0")
			if a, b := sw.Link("p0").Attrs().Index, host.Link("h0").Attrs().Index; a != b {
				netnstest.Require(t, "a cable with one index at both ends", fmt.Errorf("the kernel gave %d and %d", a, b))
			}
			d, err := New(Config{Access: []string{"p0"}, NetNS: sw.Path()})
			if err != nil {
				t.Fatal(err)
			}
			d.noSysfs = source == "ethtool"
			r := run(t, d)
			r.ready("p0")
			if got := d.Stats().PollSource; got != source {
				netnstest.Require(t, "polling by "+source, fmt.Errorf("carrier is polled by %s here", got))
			}
			late := lateness(t)
			var slow []time.Duration
			const losses = 10
			began := time.Now()
			for range losses { // the first may be told at once, the others within a second of it
				host.SetUp("h0", false)
				t0 := time.Now()
				r.up("p0", false)
				if took := time.Since(t0); took > 300*time.Millisecond+2*late() {
					slow = append(slow, took)
				}
				host.SetUp("h0", true) // the return is always urgent
				r.up("p0", true)
			}
			st := d.Stats()
			if len(slow) > losses/2 {
				t.Errorf("%d of %d losses were seen late: %v", len(slow), losses, slow)
			}
			// ETHTOOL_GLINK makes newer kernels send the notification at once, so
			// that one is first then. Once a second one is told at once.
			if source == "sysfs" && st.SeenByPoll+uint64(time.Since(began)/time.Second) < losses/2 {
				t.Errorf("poller saw %d losses first, want most of %d", st.SeenByPoll, losses)
			}
			t.Logf("seen first: notice %d, poll %d, dump %d", st.SeenByNotice, st.SeenByPoll, st.SeenByDump)
		})
	}
}

func TestRunAgainAndTwice(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	d, err := New(Config{Access: []string{"p0"}, NetNS: sw.Path()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		r := &running{t: t, Dataplane: d}
		r.ready("p0")
		if err := d.Run(ctx); err == nil {
			t.Error("a second Run at the same time did not fail")
		}
		cancel()
		if err := receive(t, done, "end of Run"); err != nil {
			t.Error(err)
		}
		isErr(t, d.Send("p0", nil), fabric.ErrNoPort)
	}
}

func TestBadConfigurationAndNamespace(t *testing.T) {
	for _, cfg := range []Config{
		{},
		{Access: []string{"p["}},
		{Access: []string{"p0"}, CarrierPoll: time.Nanosecond},
		{Access: []string{"p0"}, FrameRate: -1},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("New(%+v) gave no error", cfg)
		}
	}
	d, err := New(Config{Access: []string{"p0"}, NetNS: "no-such-namespace"})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(context.Background()); err == nil {
		t.Error("Run in a namespace that does not exist gave no error")
	}
}
