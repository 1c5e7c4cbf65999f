package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/zone"
)

// The BFD process needs no password, and need not be able to read one.
func TestAConfigurationIsReadWithoutItsSecrets(t *testing.T) {
	for _, session := range []string{
		"session: {password-file: /nonexistent/password}", "session: {password-env: NO_SUCH_VARIABLE}", "session: {password-credential: none}",
		"session: {auth: tls, certificate-file: /nonexistent/c, key-file: /nonexistent/k, ca-file: /nonexistent/ca}",
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		text := "device: {id: 192.0.2.1, roles: [client]}\nclient: {reflectors: [{address: 192.0.2.250}]}\nports: {access: [Ethernet*]}\n" + session +
			"\nbfd: {auth: keyed-sha1, keys: [{id: 1, file: /nonexistent/key}, {id: 2, env: NO_SUCH_VARIABLE}]}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil {
			t.Errorf("%s: the secrets are there", session)
		}
		c, err := LoadPublic(path)
		if err != nil {
			t.Errorf("%s: %v", session, err)
		} else if c.Session.Password != "" || c.BFD.Socket == "" {
			t.Errorf("%s: %+v", session, c.Session)
		}
	}
}

func TestMonitorsAreDevicesAndPrefixes(t *testing.T) {
	const head = "device: {id: 192.0.2.1, roles: [reflector]}\nsession: {auth: none}\nreflector: {monitors: "
	c, err := Parse("f", []byte(head+"[192.0.2.7, 198.51.100.0/24, \"2001:db8::/32\"]}\n"), nil)
	if err != nil || len(c.Reflector.Monitors) != 3 || c.Reflector.Monitors[0].Bits() != 32 {
		t.Errorf("%v, %v", c, err)
	}
	for _, bad := range []string{"[all]", "[192.0.2.7/24]"} {
		if _, err := Parse("f", []byte(head+bad+"}\n"), nil); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// A file that would take gigabytes to read is refused by its size, before it is read.
func TestAHugeZoneFileIsRefusedBySize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zones.yaml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 5<<30); err != nil { // sparse
		netnstest.Require(t, "no sparse file of 5 GiB is to be had here", err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := LoadZones(path, zone.Rules{})
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "5368709120") {
		t.Errorf("%v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were taken for it", took)
	}
}

// Keys made of the sessions' password need one, and are no keys by hand.
func TestBFDKeysOfTheSessionsPassword(t *testing.T) {
	const head = "device: {id: 192.0.2.1, roles: [client]}\nclient: {reflectors: [{address: 192.0.2.250}]}\nports: {access: [Ethernet*]}\n"
	password := given(t, nil, map[string]string{"P": "a long enough password"})
	if c, err := Parse("f", []byte(head+"session: {password-env: P}\nbfd: {auth: session}\n"), password); err != nil || c.BFD.Auth != BFDAuthSession {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"session: {auth: none}\nbfd: {plain-peers: [10.0.0.0/33]}\n", "session: {auth: none}\nbfd: {auth: none, plain-peers: [10.0.0.1]}\n",
		"session: {auth: none}\nbfd: {auth: session, keys: [{id: 1, file: /k}]}\n"} {
		if _, err := Parse("f", []byte(head+bad), nil); err == nil || !strings.Contains(err.Error(), "bfd.") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
