package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClientsMayBeBoundToHosts(t *testing.T) {
	c, err := Parse("f", []byte(`device: {id: 192.0.2.1, roles: [reflector]}
session: {auth: none}
reflector:
  clients:
    - 192.0.2.11
    - {device: 192.0.2.12, prefixes: [10.1.0.0/16, "2001:db8::1"], nqns: ["nqn.2026-01.org.example:a-*"], max-hosts: 48}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []BoundClient{{Device: netip.MustParseAddr("192.0.2.11")}, {
		Device:   netip.MustParseAddr("192.0.2.12"),
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8::1/128")},
		NQNs:     []string{"nqn.2026-01.org.example:a-*"}, MaxHosts: 48,
	}}
	if d := cmp.Diff(want, c.Reflector.Clients, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
		t.Error(d)
	}
	if r := &c.Reflector; !r.Allows(want[1].Device) || r.Allows(netip.MustParseAddr("192.0.2.13")) {
		t.Error("others may connect, or these may not")
	}
}

// A zone that names an NQN alone lets in whoever says it: checking the file warns of that, and
// nqn-binding: required refuses it.
func TestANakedNQNIsWarnedOfAndMayBeForbidden(t *testing.T) {
	dir := t.TempDir()
	path, zones := filepath.Join(dir, "inofd.yaml"), filepath.Join(dir, "zones.yaml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	doc := "device: {id: 192.0.2.1, name: a, roles: [reflector]}\nsession: {auth: none}\nzones: {file: " + zones + ", nqn-binding: %s}\n"
	write(zones, "zones: [{name: blue, members: [nqn.2026-01.org.example:a, nqn.2026-01.org.example:b at 192.0.2.11]}]\n")
	write(path, fmt.Sprintf(doc, "warn"))
	for _, file := range []string{path, zones} {
		text, _, err := Check(file, nil)
		if err != nil || !strings.Contains(text, "warning: zone blue: nqn.2026-01.org.example:a is any host that says so") || strings.Contains(text, "warning: zone blue: nqn.2026-01.org.example:b") {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
	write(path, fmt.Sprintf(doc, "required"))
	if text, _, err := Check(path, nil); err == nil || !strings.Contains(err.Error(), zones+":1:") || !strings.Contains(err.Error(), "nqn.2026-01.org.example:a at DEVICE") {
		t.Errorf("%v\n%s", err, text)
	}
	write(zones, "zones: [{name: blue, members: [nqn.2026-01.org.example:b at 192.0.2.11]}]\n")
	if text, _, err := Check(path, nil); err != nil || strings.Contains(text, "warning: zone") {
		t.Errorf("%v\n%s", err, text)
	}
}

// What a device is told that it is bound to is one message: what it cannot hold is no
// configuration.
func TestABindingIsNoLongerThanItsMessage(t *testing.T) {
	for key, entry := range map[string]string{"prefixes": "10.%d.%d.1", "nqns": "nqn.2026-11.test:%d-%d"} {
		for _, n := range []int{mostBound, mostBound + 1} {
			list := make([]string, n)
			for i := range list {
				list[i] = fmt.Sprintf(entry, i/256, i%256)
			}
			_, err := Parse("f", []byte("device: {id: 192.0.2.1, roles: [reflector]}\nsession: {auth: none}\n"+
				"reflector: {clients: [{device: 10.0.0.1, "+key+": [\""+strings.Join(list, "\", \"")+"\"]}]}\n"), nil)
			if (err != nil) != (n > mostBound) || err != nil && !strings.Contains(err.Error(), "has 1025 entries") {
				t.Errorf("%d %s: %v", n, key, err)
			}
		}
	}
}
