package daemon

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
)

func (n *node) lastZoneEvent() (last api.Event) {
	for _, e := range n.d.Events(0).Events {
		if e.Kind == "zone" {
			last = e
		}
	}
	return last
}

func TestAZoneChangeNamesTheMembersAndWhatWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		n := f.nodes["spine"]
		c, err := n.d.ChangeZone(t.Context(), api.ZoneOrder{Do: api.MembersAdd, Name: "a", Members: []string{t2, i1, t2}})
		if err != nil || !slices.Equal(c.Added, []string{t2}) || !slices.Equal(c.Present, []string{i1}) {
			t.Errorf("%+v, %v", c, err)
		}
		if e := n.lastZoneEvent(); e.Text != "zone a was changed by an operator: added "+t2 || e.Fields["added"] != t2 {
			t.Errorf("event %+v", e)
		}
		before := n.lastZoneEvent().ID
		if c, err = n.d.ChangeZone(t.Context(), api.ZoneOrder{Do: api.MembersAdd, Name: "a", Members: []string{i1}}); err != nil || len(c.Added) != 0 {
			t.Errorf("%+v, %v", c, err)
		}
		if id := n.lastZoneEvent().ID; id != before {
			t.Error("an event tells of a change that was none")
		}
		if c, err = n.d.ChangeZone(t.Context(), api.ZoneOrder{Do: api.ZoneRemove, Name: "b"}); err != nil || len(c.Removed) != 3 {
			t.Errorf("%+v, %v", c, err)
		}
		if e := n.lastZoneEvent(); !strings.Contains(e.Text, "zone b was removed by an operator, it had ") || !strings.Contains(e.Text, t3) {
			t.Errorf("event %q", e.Text)
		}
	})
}

// What a dry run says is what hosts are told when it is done, and it does nothing itself.
func TestADryRunSaysWhatHostsAreToldThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["spine"]
		o := api.ZoneOrder{Do: api.MembersRemove, Name: "b", Members: []string{i2}, DryRun: true}
		c, err := n.d.ChangeZone(t.Context(), o)
		if err != nil || c.Impact == nil {
			t.Fatal(c, err)
		}
		settle(time.Minute)
		f.initiators("dry run")
		var said []string
		for _, x := range c.Impact.Told {
			if x.Host.String() == i2 {
				said = append(said, fmt.Sprintf("%s %s %s", x.Subject, x.State, x.Reason))
			}
		}
		slices.Sort(said)
		o.DryRun = false
		if _, err := n.d.ChangeZone(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		if got := f.hosts["i2"].heard(); !slices.Equal(got, said) || len(got) != 2 {
			t.Errorf("i2 was told %q, the dry run had said %q", got, said)
		}
	})
}

// A typing mistake in the switches of zones is refused as one in the ports is.
func TestAReloadThatWouldTakeHostsApartIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["spine"]
		next := *n.cfg
		next.Zones.File = n.cfg.State + "/other.yaml"
		if err := os.WriteFile(next.Zones.File, []byte("zones: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		next.Zones.AutoJoin = false
		err := n.d.Reload(t.Context(), &next, false)
		if err == nil || !strings.Contains(err.Error(), "notices would take hosts apart") || !strings.Contains(err.Error(), i1+" of "+t1) {
			t.Errorf("error %v", err)
		}
		settle(time.Second)
		f.initiators("refused")
		if err := n.d.Reload(t.Context(), &next, true); err != nil {
			t.Error(err)
		}
		settle(time.Second)
		if got := f.hosts["i1"].heard(); len(got) != 2 {
			t.Errorf("forced: i1 was told %q", got)
		}
	})
}
