package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
)

// A host that is gone, but whose time to live is not over, is forgotten at once where an
// operator says so; one that is there comes back.
func TestAClearedHostIsGoneUntilItIsHeardAgain(t *testing.T) {
	for _, restart := range []bool{false, true} { // of its switch meanwhile
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) { clearHost(t, restart) })
	}
}

func clearHost(t *testing.T, restart bool) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n, host := f.nodes["tor1"], netip.MustParseAddr(i1)
		if _, err := f.nodes["tor2"].d.ClearHost(t.Context(), host); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "it is on device "+n.cfg.Device.ID.String()+" port eth1") {
			t.Errorf("on another device: %v", err)
		}
		settle(time.Second)
		f.expect("after it was refused", nil)
		if _, err := n.d.ClearHost(t.Context(), netip.MustParseAddr("192.0.2.250")); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("one that nobody knows: %v", err)
		}
		f.hosts["i1"].muted.Store(true)
		list, err := n.d.ClearHost(t.Context(), host)
		if err != nil || len(list) != 1 || list[0].Port != "eth1" || len(list[0].MACs) != 1 || list[0].MACs[0] != hostMAC("i1") {
			t.Fatalf("%+v, %v", list, err)
		}
		settle(time.Second)
		f.expect("cleared", map[string][]string{"t1": {i1 + agedOut}, "t3": {i1 + agedOut}})
		var last api.Event
		for _, e := range n.d.Events(0).Events {
			if e.Fields["change"] == "cleared" {
				last = e
			}
		}
		if want := "host " + i1 + " (" + hostMAC("i1").String() + ") of port eth1 was cleared by an operator"; last.Text != want || last.Addr != i1 {
			t.Errorf("event %+v", last)
		}
		settle(time.Minute)
		f.expect("while it is silent", nil)
		if err := f.nodes["tor2"].fake.SetCarrier("eth1", false); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		f.expect("a fault while it is silent", map[string][]string{"t3": {t1 + linkDown}})
		if restart {
			n.halt()
			settle(3 * time.Second)
			n.start()
			settle(30 * time.Second)
			f.expect("restarted", nil)
		}
		f.hosts["i1"].muted.Store(false)
		settle(time.Minute)
		f.expect("heard again", map[string][]string{"i1": {t1 + linkDown, t3 + active}, "t3": {i1 + active}})
	})
}
