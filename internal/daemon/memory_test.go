package daemon

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/internal/cgroup"
	"github.com/openinof/inof/internal/config"
)

func TestGoKeepsBelowTheLimitOfTheControlGroup(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, c := range []struct {
		limit    uint64
		variable string
		ballast  uint64
		want     int64
	}{
		{0, "", 64 << 20, math.MaxInt64},
		{64 << 20, "", 0, 48 << 20},
		{32 << 20, "", 0, 24 << 20},
		{512 << 20, "", 64 << 20, (384 + 64) << 20},
		{64 << 20, "40MiB", 0, math.MaxInt64},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		got := limitMemory(cgroup.Limit{Bytes: c.limit}, c.variable)
		if limit := debug.SetMemoryLimit(-1); got != c.ballast || limit != c.want {
			t.Errorf("limit %d, GOMEMLIMIT %q: ballast %d, Go's limit %d; want %d, %d", c.limit, c.variable, got, limit, c.ballast, c.want)
		}
	}
}

func TestAPasswordNeedsMemoryForItsKey(t *testing.T) {
	for _, c := range []struct {
		name, session string
		limit         uint64
		refused       string
	}{
		{"hmac", "password-file: /etc/inof/password", 64 << 20, "needs 128 MiB of memory to make a key of the password, and /sys/x/memory.max allows 64: make the key once elsewhere (inofctl password-key)"},
		{"hmac with room", "password-file: /etc/inof/password", 128 << 20, ""},
		{"hmac without a limit", "password-file: /etc/inof/password", 0, ""},
		{"hmac with the key", "password-key-file: /etc/inof/password.key", 64 << 20, ""},
		{"none", "auth: none", 64 << 20, ""},
	} {
		cfg, err := config.Parse("f", []byte("device: {id: 192.0.2.11, roles: [client]}\nclient: {reflectors: [{address: 192.0.2.250}]}\nports: {access: [eth*]}\nsession: {"+c.session+"}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = CheckMemory(cfg, cgroup.Limit{Bytes: c.limit, File: "/sys/x/memory.max"})
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v, want %q", c.name, err, c.refused)
		}
	}
}

// A daemon of the key speaks with one of the password; what is not a key is refused before a
// start, without being repeated.
func TestAPasswordAndItsKeyAreOne(t *testing.T) {
	of, err := link.NewPassword([]byte("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("correct horse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if lines, err := PasswordKeys(file); err != nil || len(lines) != 1 || lines[0] != of.KeyText() {
		t.Errorf("%d lines, %v", len(lines), err)
	}
	var p passwords
	keys, err := p.stretch(config.PasswordKeyFile, config.Secret(of.KeyText()))
	if err != nil || len(keys) != 1 || !keys[0].Equal(of) {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	cfg := &config.Config{}
	cfg.Session.PasswordFrom = config.PasswordFrom{Kind: config.PasswordKeyFile, Name: "/etc/inof/key"}
	for _, bad := range []string{"correct horse", of.KeyText()[1:], of.KeyText() + "00", of.KeyText()[:40], strings.Replace(of.KeyText(), ":", ":zz", 1)} {
		cfg.Session.Password = config.Secret(bad)
		err := CheckSession(cfg, cgroup.Limit{})
		if err == nil || !strings.Contains(err.Error(), "session.password-key-file: /etc/inof/key: a line is no key of a password") || strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
