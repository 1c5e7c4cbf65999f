package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/zone/change"
)

const (
	goodZones   = "zones:\n  - {name: a, members: [192.0.2.1]}\n"
	brokenZones = "zones:\n  - {name: a, members: [192.0.2.1]}\n  - {name: b, members: [192.0.2.300]}\n"
)

// A zone file that is missing or broken is replaced by the last good copy; only a
// first start begins without zones.
func TestStartWithTroubleInTheZoneFile(t *testing.T) {
	for _, c := range []struct {
		name, file, lastGood string // "": there is none
		zones                int
		warning, fails       string
	}{
		{"first start", "", "", 0, "", ""},
		{"good", goodZones, "", 1, "", ""},
		{"good, last good broken", goodZones, "rubbish", 1, "", ""},
		{"missing", "", goodZones, 1, "no such file", ""},
		{"missing, last good broken", "", brokenZones, 0, "", "neither is its last good copy"},
		{"broken", brokenZones, goodZones, 1, "zones.yaml:3:", ""},
		{"broken, no last good", brokenZones, "", 0, "", "zones.yaml:3:"},
		{"both broken", brokenZones, brokenZones, 0, "", "zones.yaml:3:"},
	} {
		dir := t.TempDir()
		cfg := &config.Config{State: dir, Zones: config.Zones{File: filepath.Join(dir, "zones.yaml")}}
		for name, text := range map[string]string{"zones.yaml": c.file, lastGoodZones: c.lastGood} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		z := newZoneStore(cfg)
		warning, err := z.load(nil)
		if !says(err, c.fails) || !says(warning, c.warning) || len(z.first().Zones) != c.zones {
			t.Errorf("%s: %d zones, warning %v, error %v", c.name, len(z.first().Zones), warning, err)
		}
		if got := z.warning(); (got == "") != (c.warning == "") || strings.Contains(got, "\n") || !strings.Contains(got, c.warning) {
			t.Errorf("%s: operators see %q", c.name, got)
		}
	}
}

func says(err error, text string) bool {
	if err == nil {
		return text == ""
	}
	return text != "" && strings.Contains(err.Error(), text)
}

// What somebody wrote into the zone file by hand is not overwritten because it has
// an error.
func TestABrokenZoneFileIsNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	cfg := &config.Config{State: dir, Zones: config.Zones{File: filepath.Join(dir, "zones.yaml")}}
	for name, text := range map[string]string{"zones.yaml": brokenZones, lastGoodZones: goodZones} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	z := newZoneStore(cfg)
	if _, err := z.load(nil); err != nil {
		t.Fatal(err)
	}
	err := z.change(t.Context(), nil, zoneEdit{do: api.ZoneAdd, name: "c"}, change.Meta{})
	if !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), cfg.Zones.File) {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(cfg.Zones.File); err != nil || string(b) != brokenZones {
		t.Errorf("the file is %q, %v", b, err)
	}
	if n := z.status().Refused; n != 1 {
		t.Errorf("%d refused changes counted, want 1", n)
	}
}

// A member that was taken out of the zone file by hand does not come back because
// somebody changes another zone before the reload.
func TestAZoneFileChangedByHandIsNotOverwritten(t *testing.T) {
	const before = "zones:\n  - {name: a, members: [192.0.2.1, 192.0.2.66]}\n"
	for _, c := range []struct{ name, file, says string }{
		{"a member was revoked", goodZones, "- member 192.0.2.66 of zone a"},
		{"a zone was added", before + "  - {name: new, members: []}\n", "+ zone new"},
		{"a comment was written", "# do not touch\n" + before, "in its text"},
		{"it has an error now", brokenZones, "zones.yaml:3:"},
		{"it was removed", "", "removed by hand"},
	} {
		dir := t.TempDir()
		cfg := &config.Config{State: dir, Zones: config.Zones{File: filepath.Join(dir, "zones.yaml")}}
		if err := os.WriteFile(cfg.Zones.File, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		z := newZoneStore(cfg)
		if warning, err := z.load(nil); warning != nil || err != nil {
			t.Fatal(warning, err)
		}
		if c.file == "" {
			if err := os.Remove(cfg.Zones.File); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(cfg.Zones.File, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		err := z.change(t.Context(), stoppedDevice(), zoneEdit{do: api.ZoneAdd, name: "c"}, change.Meta{})
		if !errors.Is(err, api.ErrRefused) || !says(err, c.says) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if b, _ := os.ReadFile(cfg.Zones.File); string(b) != c.file {
			t.Errorf("%s: the file became %q", c.name, b)
		}
		if n := z.status().Refused; n != 1 {
			t.Errorf("%s: %d refused changes counted, want 1", c.name, n)
		}
	}
}

// What was written by a change is no change by hand: the next one is taken up to the
// point where the device is asked.
func TestAZoneFileOfOurOwnIsNoChangeByHand(t *testing.T) {
	dir := t.TempDir()
	cfg := &config.Config{State: dir, Zones: config.Zones{File: filepath.Join(dir, "zones.yaml")}}
	z := newZoneStore(cfg)
	if _, err := z.load(nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		err := z.change(t.Context(), stoppedDevice(), zoneEdit{do: api.ZoneAdd, name: "c"}, change.Meta{})
		if !errors.Is(err, ErrStopped) {
			t.Errorf("error %v, want that of a device that has stopped", err)
		}
	}
}

// stoppedDevice takes no change.
func stoppedDevice() *Device {
	d := &Device{requests: make(chan func(time.Time)), stopped: make(chan struct{})}
	close(d.stopped)
	return d
}
