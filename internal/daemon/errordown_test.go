package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
)

const (
	packetError = " inactive packet-error"
	pfcStorm    = " inactive pfc-storm"
)

// faults changes what a running device does about faults.
func (n *node) faults(edit func(e *errdown.Config)) {
	n.t.Helper()
	next := *n.cfg
	edit(&next.ErrorDown)
	if err := n.d.Reload(n.t.Context(), &next, false); err != nil {
		n.t.Fatal(err)
	}
	n.cfg = &next
}

// damage counts CRC errors on a port.
func (n *node) damage(port string, errors uint64) {
	n.t.Helper()
	c, err := n.fake.Counters(port)
	if err == nil {
		c.RxCRC += errors
		err = n.fake.SetCounters(port, c)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) errorDown(port string) (list []api.ErrorDown) {
	n.t.Helper()
	var all []api.ErrorDown
	if err := n.d.device.Do(n.t.Context(), func(c *device.Core, now time.Time) { all = c.ErrorDown(now) }); err != nil {
		n.t.Fatal(err)
	}
	for _, e := range all {
		if e.Port == port && e.Cause != "" {
			list = append(list, e)
		}
	}
	return list
}

// everybody who shares a zone with t3.
func aboutT3(what string) map[string][]string {
	return map[string][]string{"i1": {t3 + what}, "t1": {t3 + what}, "i2": {t3 + what}, "t2": {t3 + what}}
}

func TestCRCErrorsAreToldAndThePortIsShutAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		tor3 := f.nodes["tor3"]
		tor3.damage("eth2", 50)
		settle(5 * time.Second)
		f.expect("the default does nothing", nil)
		tor3.faults(func(e *errdown.Config) {
			e.CRC.Response, e.CRC.Recovery = errdown.RespondShut, time.Minute
		})
		settle(5 * time.Second)
		f.expect("old errors are no fault", nil)
		tor3.damage("eth2", 3)
		settle(2 * time.Second)
		f.expect("CRC errors", aboutT3(packetError))
		list := tor3.errorDown("eth2")
		if len(list) != 1 || list[0].Cause != "crc" || list[0].TimeLeft == 0 || time.Duration(list[0].Recovery) != time.Minute {
			t.Errorf("show error-down: %+v", list)
		}
		if p := tor3.fake.Ports()[1]; p.AdminUp {
			t.Errorf("the port is open: %+v", p)
		}
		settle(time.Minute)
		f.expect("recovered", map[string][]string{"i1": {t3 + active}, "t1": {t3 + active}, "i2": {t3 + active}, "t2": {t3 + active},
			"t3": {i1 + active, t1 + active, i2 + active, t2 + active}})
		if list := tor3.errorDown("eth2"); len(list) != 0 {
			t.Errorf("show error-down: %+v", list)
		}
	})
}

func TestAFaultThatIsOnlyNotifiedEndsWhenAllIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		tor3 := f.nodes["tor3"]
		tor3.faults(func(e *errdown.Config) { e.CRC.Response = errdown.RespondNotify })
		settle(2 * time.Second)
		for range 30 {
			tor3.damage("eth2", 1)
			settle(time.Second)
		}
		f.expect("CRC errors", aboutT3(packetError))
		tor3.halt()
		settle(time.Second)
		tor3.start()
		settle(5 * time.Second)
		f.expect("restart in the middle of it", nil)
		settle(time.Minute)
		f.expect("well again", aboutT3(active))
	})
}

func TestAPFCStormIsMoreSeriousThanCRCErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		tor3 := f.nodes["tor3"]
		h := fabric.Health{Valid: fabric.FieldPauseTime | fabric.FieldPause}
		_ = tor3.fake.SetHealth("eth2", h)
		tor3.faults(func(e *errdown.Config) {
			e.CRC.Response, e.PFCStorm.Response = errdown.RespondNotify, errdown.RespondNotify
		})
		storm := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				h.RxPauseTime[3] += 10 * time.Millisecond
				_ = tor3.fake.SetHealth("eth2", h)
				settle(10 * time.Millisecond)
			}
		}
		storm(5500 * time.Millisecond)
		f.expect("not yet", nil)
		storm(time.Second)
		f.expect("thirty deadlocks", aboutT3(pfcStorm))
		tor3.damage("eth2", 5)
		storm(2 * time.Second)
		f.expect("CRC errors too", nil)
		if list := tor3.errorDown("eth2"); len(list) != 2 {
			t.Errorf("show error-down: %+v", list)
		}
		settle(time.Minute)
		f.expect("over", aboutT3(active))
	})
}

func TestAPortIsShutByHandAndRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		d := f.nodes["tor3"].d
		if err := d.ShutPort(t.Context(), "eth2"); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		f.expect("shut", aboutT3(linkDown))
		settle(time.Hour)
		f.expectAnything()
		if list := f.nodes["tor3"].errorDown("eth2"); len(list) != 1 || list[0].Cause != "manual" {
			t.Errorf("show error-down: %+v", list)
		}
		if err := d.RecoverPort(t.Context(), "eth2"); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Second)
		if p := f.nodes["tor3"].fake.Ports()[1]; !p.Up() {
			t.Errorf("the port is not up: %+v", p)
		}
		for _, err := range []error{d.ShutPort(t.Context(), "nope"), d.RecoverPort(t.Context(), "eth1")} {
			if err == nil {
				t.Error("no error")
			}
		}
	})
}

// A port that is opened by hand passes from one cause to another: that its carrier is not
// there yet is no fault of that moment, neither in the events nor in the figures.
func TestARecoveryByHandIsNoFreshFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		d := f.nodes["tor3"].d
		if err := d.ShutPort(t.Context(), "eth2"); err != nil {
			t.Fatal(err)
		}
		settle(10 * time.Second)
		f.expectAnything()
		faults := func() (n uint64) { // counted at another switch
			for _, s := range f.nodes["tor1"].stages(t) {
				if s.Name == "notice" && s.Reason != "active" {
					n += s.Total.Count
				}
			}
			return n
		}
		before, last := faults(), d.Events(0).Last
		if err := d.RecoverPort(t.Context(), "eth2"); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Second)
		if n := faults() - before; n != 0 {
			t.Errorf("%d faults were measured", n)
		}
		for _, e := range d.Events(last).Events {
			if e.Kind == "fault" && e.Fields["state"] == "faulty" && !strings.Contains(e.Text, "too: its 1 host address(es) have been unreachable since 00:00:") {
				t.Errorf("%s", e.Text)
			}
		}
	})
}

func TestAdminFollowsTheUpdateByItsLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var did []string
		a := newAdmin(func(port string, up bool) { did = append(did, fmt.Sprintf("%s %t at %v", port, up, time.Since(begun))) })
		ctx, stop := context.WithCancel(t.Context())
		go a.run(ctx, time.Now)
		a.put("e1", false, time.Now())
		a.put("e1", true, time.Now())
		a.put("e2", false, time.Now())
		<-time.After(time.Second)
		stop()
		synctest.Wait()
		want := []string{"e1 false at 10ms", "e1 true at 10ms", "e2 false at 10ms"}
		if !slices.Equal(did, want) {
			t.Errorf("%q, want %q", did, want)
		}
	})
}
