package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/openinof/inof/hardzone"
)

func TestHostsAreKeptApartWhereFramesAreForwarded(t *testing.T) {
	for _, c := range []struct {
		attach hardzone.Attach
		redis  string
		want   bool
	}{
		{hardzone.AttachAuto, "", false},
		{hardzone.AttachAuto, "/run/redis.sock", true},
		{hardzone.AttachASIC, "/run/redis.sock", true},
		{hardzone.AttachNative, "/run/redis.sock", false},
	} {
		if got := inASIC(hardzone.Config{Attach: c.attach}, c.redis); got != c.want {
			t.Errorf("attach %s with Redis at %q: in the ASIC %t", c.attach, c.redis, got)
		}
	}
	cfg := hardzone.Default()
	cfg.Attach = hardzone.AttachASIC
	if f, err := openFilter(cfg, ""); f != nil || err == nil || !strings.Contains(err.Error(), "ports.sonic-redis") {
		t.Errorf("%v %v", f, err)
	}
	if f, err := openFilter(cfg, filepath.Join(t.TempDir(), "none.sock")); f != nil || err == nil || !strings.Contains(err.Error(), "redis") {
		t.Errorf("without a server: %v %v", f, err)
	}
	if err := endFilter(cfg, filepath.Join(t.TempDir(), "none.sock")); err == nil {
		t.Error("the end of what cannot be reached is no error")
	}
}
