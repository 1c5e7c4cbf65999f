package daemon

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/snsd"
)

// keptOf gives the rows of a device as a kill at this moment leaves them.
func keptOf(t *testing.T, cfg *config.Config) device.State {
	t.Helper()
	f, err := keep.Look(keep.Config{Dir: cfg.State, Device: cfg.Device.ID.String()})
	if err != nil {
		t.Fatal(err)
	}
	st, bad := device.StateOf(f)
	for _, p := range slices.Concat(bad, f.Problems) {
		t.Error(&p)
	}
	st.Incomplete = st.Incomplete && !f.None
	return st
}

func killed(t *testing.T, n *node) device.State { return keptOf(t, n.cfg) }

// still does nothing of what a Core wants, and has no ports to shut.
type still struct{ device.Actions }

func (still) Event(api.Event)       {}
func (still) SetAdmin(string, bool) {}

// nextOf gives the next process of a node as it is restored.
func nextOf(t *testing.T, n *node, st device.State, now time.Time) *device.Core {
	t.Helper()
	c, err := device.New(device.Config{Self: n.cfg.Device.ID, Access: true}, still{}, now)
	if err == nil {
		err = c.Restore(st, now)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// silentPorts never says that all its ports are known.
type silentPorts struct{ *fabric.Fake }

func (silentPorts) Ready() <-chan struct{} { return nil }

func TestADaemonCanBeStoppedBeforeItsPortsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1")
		n.halt()
		env := n.d.env
		env.Dataplane = silentPorts{fabric.NewFake(fabric.FakeConfig{Name: "tor1"})}
		d, err := New(n.cfg, env)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		settle(time.Second)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A process that is killed before the database is written again must not leave a
// port shut that nobody knows to be in error-down, nor one that was opened as if it were.
func TestADeviceKilledRightAfterItShutAPortKnowsOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1", "eth2")
		n.faults(func(e *errdown.Config) { e.CRC.Response = errdown.RespondShut })
		f.host("t1", "tor1", "eth2", t1, snsd.RoleTarget)
		settle(5 * time.Second)
		open := func() bool { return n.fake.Ports()[1].AdminUp }
		until := func(want bool) {
			t.Helper()
			for range 10000 {
				if open() == want {
					return
				}
				settle(time.Millisecond)
			}
			t.Fatalf("open %v, want %v", open(), want)
		}
		kept := func() errdown.Saved { settle(time.Millisecond); return killed(t, n).Ports["eth2"].Saved }

		n.damage("eth2", 3)
		until(false)
		got := kept()
		if got.Port != "eth2" || !got.Shut || got.Unseen || len(got.Latched) != 1 || got.Latched[0].Cause != errdown.CRC {
			t.Fatalf("left: %+v", got)
		}
		now := time.Now()
		next := nextOf(t, n, device.State{Ports: map[string]device.KeptPort{"eth2": {Saved: got}}}, now)
		next.Port(fabric.Event{Kind: fabric.PortAdded, At: now, Port: fabric.Port{Name: "eth2", Index: 2}}, now)
		if list := next.ErrorDown(now); len(list) != 1 || list[0].Cause != errdown.CRC.String() {
			t.Errorf("the next process says of the port %+v", list)
		}
		if err := n.d.RecoverPort(t.Context(), "eth2"); err != nil {
			t.Fatal(err)
		}
		until(true)
		if got := kept(); got.Shut || got.Opening || len(got.Latched) > 0 {
			t.Errorf("left of a port that is open again: %+v", got)
		}
	})
}

// What an earlier version of the program kept is not read: that is said, and costs no outage.
func TestTheStateOfAnEarlierVersionIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1")
		n.halt()
		for _, name := range []string{keep.FileName, "state.json"} {
			_ = os.Remove(filepath.Join(n.cfg.State, name))
		}
		if err := os.WriteFile(filepath.Join(n.cfg.State, "state.json"), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		n.start()
		settle(time.Second)
		said := 0
		for _, e := range n.d.log.Events(0).Events {
			if strings.Contains(e.Text, "is of an earlier version") {
				said++
			}
		}
		if said != 1 || n.d.device.core.HeldBack() == nil {
			t.Errorf("said %d times, held back %v", said, n.d.device.core.HeldBack())
		}
	})
}

// Events and notices are there after a restart; of a kill the last moment is missing.
func TestHistorySurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1", "eth2")
		settle(5 * time.Second)
		f.host("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
		f.host("t1", "tor1", "eth2", t1, snsd.RoleTarget)
		settle(5 * time.Second)
		notices, err := ask[[]api.Notice](t.Context(), n.d, "notices")
		if err != nil || len(notices) == 0 {
			t.Fatalf("%d notices, %v", len(notices), err)
		}
		events := n.d.log.Events(0)
		n.halt()
		n.start()
		settle(time.Second)
		again, err := ask[[]api.Notice](t.Context(), n.d, "notices")
		if err != nil || len(again) < len(notices) {
			t.Fatalf("%d notices, %v", len(again), err)
		}
		for i := range notices {
			if a, b := notices[i], again[i]; a.Host != b.Host || a.Subject != b.Subject || a.Seq != b.Seq || b.Acked == nil || !a.Acked.Equal(*b.Acked) {
				t.Errorf("notice %d: %+v, was %+v", i, b, a)
			}
		}
		var texts []string
		for _, e := range n.d.log.Events(0).Events {
			texts = append(texts, e.Text)
		}
		for i, e := range events.Events {
			if texts[i] != e.Text {
				t.Errorf("event %d is %q, was %q", i, texts[i], e.Text)
			}
		}
		if after := n.d.log.Events(events.Last); after.Missed > 0 || len(after.Events) == 0 || after.Events[0].Text != "stopping" {
			t.Errorf("after the last one that was seen: %+v", after)
		}
	})
}

// Notices of the last moment before a stop are there too, and so are their acks.
func TestAStopKeepsTheNewestNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1", "eth2")
		settle(5 * time.Second)
		f.host("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
		f.host("t1", "tor1", "eth2", t1, snsd.RoleTarget)
		settle(5 * time.Second)
		n.fake.SetCarrier("eth2", false)
		settle(10 * time.Millisecond)
		notices, err := ask[[]api.Notice](t.Context(), n.d, "notices")
		if err != nil || len(notices) == 0 || notices[len(notices)-1].Acked == nil {
			t.Fatalf("%+v, %v", notices, err)
		}
		n.halt()
		n.start()
		settle(time.Second)
		again, err := ask[[]api.Notice](t.Context(), n.d, "notices")
		if err != nil {
			t.Fatal(err)
		}
		last := notices[len(notices)-1]
		if !slices.ContainsFunc(again, func(a api.Notice) bool {
			return a.Subject == last.Subject && a.Seq == last.Seq && a.State == last.State && a.Acked != nil && a.Acked.Equal(*last.Acked)
		}) {
			t.Errorf("%+v is not among %+v", last, again)
		}
	})
}

func TestADeviceKilledRightAfterANoticeKnowsOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1", "eth2")
		settle(5 * time.Second)
		f.host("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
		f.host("t1", "tor1", "eth2", t1, snsd.RoleTarget)
		settle(10 * time.Millisecond) // the database is written later
		st := killed(t, n)
		if st.Incomplete || len(st.Neighbours) != 2 || len(st.Told.Hosts) != 2 || len(st.Told.Hosts[0].Told) != 1 {
			t.Fatalf("left: incomplete %v, %d neighbours, told %+v", st.Incomplete, len(st.Neighbours), st.Told)
		}
		n.fake.SetCarrier("eth2", false)
		settle(10 * time.Millisecond)
		st = killed(t, n)
		now := time.Now()
		next := nextOf(t, n, st, now)
		for i, p := range []string{"eth1", "eth2"} {
			next.Port(fabric.Event{Kind: fabric.PortAdded, At: now, Port: fabric.Port{Name: p, Index: i + 1, AdminUp: true, Carrier: true}}, now)
		}
		if got := st.Told.Hosts; got[0].Told[0].State != snsd.Inactive || got[0].Told[0].Reason != snsd.ReasonLinkDown {
			t.Errorf("last told: %+v", got)
		}
		if h := next.AppendHosts(nil, netip.MustParseAddr(t1)); len(h) != 1 || h[0].State != snsd.Inactive {
			t.Errorf("behind the port that was down, unheard since: %+v", h)
		}
	})
}
