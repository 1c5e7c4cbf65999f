package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// manyMembers are so many addresses that no two of them are one range.
func manyMembers(n int) change.Zone {
	var z change.Zone
	for i := range n {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 15), byte(i >> 7), byte(i << 1)})
		z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: a})
	}
	return z
}

// zonesRefused is how many changes of the zones were refused, as operators see it.
func (n *node) zonesRefused() uint64 {
	n.t.Helper()
	s, err := n.d.Status(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return s.Counters["zone_changes"].(map[string]uint64)["refused"]
}

// Zones beyond the limits are refused where they are looked at and where they are changed, with
// what the limit is; that is counted and an event, and no host is told anything.
func TestZonesBeyondTheLimitsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["spine"]
		for i, c := range []struct {
			want string
			edit func(*change.Plan)
		}{
			{fmt.Sprintf("too many members: %d in all zones, at most %d", zone.DefaultMaxMembers+6, zone.DefaultMaxMembers), func(p *change.Plan) {
				for _, name := range []string{"c", "d", "e", "f"} {
					p.PutZone(name, manyMembers(zone.DefaultMaxMembers/4))
				}
			}},
			{`zone "c": does not fit into a message: 200000 members in`, func(p *change.Plan) { p.PutZone("c", manyMembers(200_000)) }},
		} {
			before, file := n.candidate(func(*change.Plan) {}).Plan, n.zoneFile()
			next := n.candidate(c.edit)
			r, err := n.d.CheckZones(t.Context(), next)
			if err != nil || !strings.Contains(strings.Join(r.Errors, "\n"), c.want) {
				t.Errorf("looked at: %v %v, want %q", r.Errors, err, c.want)
			}
			if _, err := n.d.CommitZones(t.Context(), next); !errors.Is(err, api.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("changed: %v, want %q", err, c.want)
			}
			if after := n.candidate(func(*change.Plan) {}).Plan; !before.Equal(after) || n.zoneFile() != file {
				t.Error("the zones are others now")
			}
			if e := n.lastZoneEvent(); e.Fields["change"] != "refused" || !strings.Contains(e.Text, c.want) {
				t.Errorf("event: %+v", e)
			}
			if got := n.zonesRefused(); got != uint64(i+1) {
				t.Errorf("%d counted, want %d", got, i+1)
			}
		}
		big := api.ZoneOrder{Do: api.ZoneAdd, Name: "c", Members: manyMembers(200_000).Texts()}
		if _, err := n.d.ChangeZone(t.Context(), big); !errors.Is(err, api.ErrInvalid) || n.zonesRefused() != 3 {
			t.Errorf("one zone: %v, %d counted", err, n.zonesRefused())
		}
		settle(time.Second)
		f.toldNothing("refused")
		// What fits is changed in a time that does not grow with its square.
		most := api.ZoneOrder{Do: api.ZoneAdd, Name: "c", Members: manyMembers(100_000).Texts()}
		if c, err := n.d.ChangeZone(t.Context(), most); err != nil || len(c.Added) != 100_000 {
			t.Errorf("%d added, %v", len(c.Added), err)
		}
		most.Do, most.Members = api.MembersRemove, most.Members[:99_999]
		if c, err := n.d.ChangeZone(t.Context(), most); err != nil || len(c.Removed) != 99_999 {
			t.Errorf("%d removed, %v", len(c.Removed), err)
		}
	})
}

// A zone that no message can hold is an error of the file, and leaves the last good copy alone.
func TestAZoneFileWithTooLargeAZoneIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	cfg := &config.Config{State: dir, Zones: config.Zones{File: filepath.Join(dir, "zones.yaml")}}
	large := "zones:\n  - {name: a, members: [" + strings.Join(manyMembers(160_000).Texts(), ", ") + "]}\n"
	for name, text := range map[string]string{"zones.yaml": large, lastGoodZones: goodZones} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	z := newZoneStore(cfg)
	warning, err := z.load(nil)
	if err != nil || !says(warning, cfg.Zones.File+`:1:1: zones: zone "a": does not fit into a message: 160000 members in`) || len(z.first().Zones) != 1 || len(z.first().Zones[0].Members) != 1 {
		t.Errorf("warning %v, error %v", warning, err)
	}
	if good, err := os.ReadFile(z.lastGood); err != nil || string(good) != goodZones {
		t.Errorf("the last good copy has %d bytes now, %v", len(good), err)
	}
}
