package daemon

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

func (n *node) drain(port string, undo bool) api.Drained {
	n.t.Helper()
	d, err := n.d.Drain(n.t.Context(), api.DrainOrder{Port: port, Undo: undo})
	if err != nil {
		n.t.Fatal(err)
	}
	return d
}

// A wait of 0 s is one of 0 s, not the default.
func TestADrainThatIsNotToWaitShutsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1", "eth2")
		settle(time.Second)
		f.host("t1", "tor1", "eth2", t1, snsd.RoleTarget)
		settle(5 * time.Second)
		if _, err := n.d.Drain(t.Context(), api.DrainOrder{Port: "eth2", Wait: new(api.Duration(0))}); err != nil {
			t.Fatal(err)
		}
		settle(500 * time.Millisecond)
		if s := n.state("eth2"); s != api.PortDrained+", shut" {
			t.Error(s)
		}
	})
}

func (n *node) state(port string) string {
	n.t.Helper()
	ports, err := n.d.Ports(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	for _, p := range ports {
		if p.Name == port {
			if p.AdminUp {
				return p.State
			}
			return p.State + ", shut"
		}
	}
	return "none"
}

// The peers of an array hear that it has left, in order; the port is open until they had
// time to act on it.
func TestADrainedPortIsShutAfterThePeersWereTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["tor3"]
		if d := n.drain("eth2", false); d.Hosts != 1 || len(d.Ports) != 1 {
			t.Errorf("%+v", d)
		}
		settle(time.Second)
		f.initiators("draining", t3+agedOut)
		if s := n.state("eth2"); s != "draining" {
			t.Errorf("a second later the port is %s", s)
		}
		settle(2 * time.Second)
		f.initiators("drained")
		if s := n.state("eth2"); s != "drained, shut" {
			t.Errorf("three seconds later the port is %s", s)
		}
		if !n.warned("port eth2 is drained and shut") {
			t.Error("the status does not say so")
		}
		n.drain("eth2", true)
		settle(5 * time.Second)
		f.initiators("undone", t3+active)
		if s := n.state("eth2"); s != "up" {
			t.Errorf("undone, and the port is %s", s)
		}
		if n.warned("drained") {
			t.Error("undone, and the status still says so")
		}
	})
}

// An initiator behind the port hears that its peers have left, so that its multipath
// moves before the link goes.
func TestAHostBehindADrainedPortIsToldOfItsPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["tor2"]
		n.drain("eth2", false)
		settle(time.Second)
		if got, want := f.hosts["i2"].heard(), []string{t2 + agedOut, t3 + agedOut}; !slices.Equal(got, want) {
			t.Errorf("i2 was told %q, want %q", got, want)
		}
		n.drain("eth2", true) // before it was shut
		settle(time.Second)
		if got, want := f.hosts["i2"].heard(), []string{t2 + active, t3 + active}; !slices.Equal(got, want) {
			t.Errorf("i2 was told %q, want %q", got, want)
		}
		if s := n.state("eth2"); s != "up" {
			t.Errorf("the port is %s", s)
		}
		settle(time.Minute)
		f.initiators("later")
	})
}

// A host that acks nothing holds up no draining for longer than was said.
func TestASilentHostDoesNotHoldUpADraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		mute := f.hosts["i2"]
		mute.silent(true)
		n := f.nodes["tor2"]
		n.drain("eth2", false)
		settle(device.DrainWait - time.Second)
		if s := n.state("eth2"); s != "draining" {
			t.Errorf("the port is %s", s)
		}
		settle(2 * time.Second)
		if s := n.state("eth2"); s != "drained, shut" {
			t.Errorf("the port is %s", s)
		}
	})
}

func TestADrainingSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["tor3"]
		n.drain("", false)
		settle(time.Second)
		n.halt()
		n.start()
		settle(20 * time.Second)
		if a, b := n.state("eth1"), n.state("eth2"); a != "drained, shut" || b != a {
			t.Errorf("restarted before they were shut: %s, %s", a, b)
		}
		n.halt()
		n.start()
		settle(20 * time.Second)
		if a, b := n.state("eth1"), n.state("eth2"); a != "drained, shut" || b != a {
			t.Errorf("restarted after they were shut: %s, %s", a, b)
		}
		if got := f.hosts["i1"].heard(); !slices.Equal(got, []string{t3 + agedOut}) {
			t.Errorf("i1 was told %q", got)
		}
		if d := n.drain("", true); len(d.Ports) != 2 {
			t.Errorf("undone: %+v", d)
		}
		settle(5 * time.Second)
		if got := f.hosts["i1"].heard(); !slices.Equal(got, []string{t3 + active}) {
			t.Errorf("i1 was told %q", got)
		}
	})
}

// The notice proves the chain and changes nothing.
func TestATestNoticeIsAckedAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		before := f.nodes["tor1"].d
		list, err := before.TestNotice(t.Context(), netip.MustParseAddr(i1))
		if err != nil || len(list) != 1 || !list[0].Acked || list[0].Sent != 1 || list[0].RoundTrip == nil || list[0].Port != "eth1" {
			t.Fatalf("%+v, %v", list, err)
		}
		h := f.hosts["i1"]
		done := make(chan uint64, 1)
		h.do <- func(time.Time) (out snsd.AgentOutput) { done <- h.agent.Counters().Ignored; return }
		if n := <-done; n != 1 {
			t.Errorf("the agent ignored %d notices, want this one", n)
		}
		if got := h.heard(); !slices.Equal(got, []string{i1 + agedOut}) {
			t.Errorf("the agent was told %q", got)
		}
		h.silent(true)
		if list, err = before.TestNotice(t.Context(), netip.MustParseAddr(i1)); err != nil || list[0].Acked || list[0].Sent != testNoticeTries {
			t.Errorf("a silent host: %+v, %v", list, err)
		}
		if _, err = before.TestNotice(t.Context(), netip.MustParseAddr(t3)); err == nil || !strings.Contains(err.Error(), "device 10.0.0.3 port eth2") {
			t.Errorf("a host of another switch: %v", err)
		}
	})
}
