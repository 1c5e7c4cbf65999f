package config

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/snsd"
)

const (
	declaringClient = `device: {id: 192.0.2.1, roles: [client]}
session: {auth: none}
ports: {access: ["eth*"]}
client: {reflectors: [192.0.2.2]}
hosts:
  bindings:
    - %s
`
	declaringReflector = `device: {id: 192.0.2.1, roles: [reflector]}
session: {auth: none}
reflector:
  hosts:
    - %s
`
)

func TestHostsThatRegisterNothingAreDeclared(t *testing.T) {
	addr := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	want := []Declared{
		{netip.MustParseAddr("198.51.100.51"), []string{"eth[12]"}, snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolTCP, Port: 4420, NQN: "nqn.2026-01.org.example:a"}},
		{netip.MustParseAddr("2001:db8::51"), []string{"eth3", "eth4"}, snsd.Service{Role: snsd.RoleBoth, Protocol: snsd.ProtocolRoCE}},
	}
	entries := `{address: 198.51.100.51, ports: ["eth[12]"], register: {role: target, protocol: tcp, service-port: 4420, nqn: "nqn.2026-01.org.example:a"}}
    - {address: "2001:db8::51/128", ports: [eth3, eth4], register: {role: both, protocol: roce}}`
	c, err := Parse("f", fmt.Appendf(nil, declaringClient, entries+"\n    - {address: 198.51.100.0/24, ports: [eth9]}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, c.Hosts.Declared(), addr); d != "" || len(c.Hosts.Bindings) != 3 {
		t.Errorf("%d bindings, %s", len(c.Hosts.Bindings), d)
	}
	r, err := Parse("f", fmt.Appendf(nil, declaringReflector, entries), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, r.Reflector.Hosts, addr); d != "" {
		t.Error(d)
	}
	// What is declared otherwise is a change, and is live.
	next, err := Parse("f", fmt.Appendf(nil, declaringReflector, strings.Replace(entries, "4420", "4421", 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if ch := Diff(r, next); len(ch) != 1 || ch[0].Key != "reflector.hosts" || ch[0].Restart {
		t.Errorf("changes %+v", ch)
	}
}

func TestADeclarationThatIsWrongIsRefused(t *testing.T) {
	const good = "{role: target, protocol: tcp}"
	for _, c := range []struct{ entry, want string }{
		{"{address: 198.51.100.51, register: " + good + "}", "ports"},
		{"{ports: [eth1], mac: 02:00:00:00:00:01, register: " + good + "}", "address: is missing"},
		{"{address: 198.51.100.0/24, ports: [eth1], register: " + good + "}", "is the prefix 198.51.100.0/24, and register declares one host"},
		{"{address: 0.0.0.0, ports: [eth1], register: " + good + "}", "is the unspecified address"},
		{"{address: 224.0.0.9, ports: [eth1], register: " + good + "}", "is a group address"},
		{"{address: \"ff02::1\", ports: [eth1], register: " + good + "}", "is a group address"},
		{"{address: \"fe80::1\", ports: [eth1], register: " + good + "}", "is a link-local address"},
		{"{address: 127.0.0.1, ports: [eth1], register: " + good + "}", "is a loopback address"},
		{"{address: \"::ffff:198.51.100.51\", ports: [eth1], register: " + good + "}", "is IPv4 in IPv6 form"},
		{"{address: 198.51.100.51, ports: [eth1], register: {protocol: tcp}}", "register.role: is missing"},
		{"{address: 198.51.100.51, ports: [eth1], register: {role: target}}", "register.protocol: is missing"},
		{"{address: 198.51.100.51, ports: [eth1], register: {role: array, protocol: tcp}}", `register.role: "array"`},
		{"{address: 198.51.100.51, ports: [eth1], register: {role: target, protocol: fc}}", `register.protocol: "fc"`},
		{"{address: 198.51.100.51, ports: [eth1], register: {role: target, protocol: tcp, service-port: 0}}", "service-port"},
		{"{address: 198.51.100.51, ports: [eth1], register: {role: target, protocol: tcp, service-port: 65536}}", "service-port"},
		{"{address: 198.51.100.51, ports: [eth1], register: {role: target, protocol: tcp, nqn: iqn.a}}", "does not begin with nqn."},
		{"{address: 198.51.100.51, ports: [eth1], register: {role: target, protocol: tcp, nqn: nqn.*}}", "has a space, * or ?"},
		{"{address: 198.51.100.51, ports: [eth1], register: {role: target, protocol: tcp, nqn: nqn." + strings.Repeat("x", 220) + "}}", "224 bytes"},
		{"{address: 198.51.100.51, ports: [eth1], register: {role: target, protocol: tcp, size: 1}}", "size"},
		{"{address: 198.51.100.51, ports: [eth1], register: " + good + "}\n    - {address: 198.51.100.51/32, ports: [eth2], register: " + good + "}", "is declared twice, first in line"},
	} {
		for _, text := range []string{declaringClient, declaringReflector} {
			if text == declaringReflector && strings.Contains(c.entry, "mac:") {
				continue
			}
			if _, err := Parse("f", fmt.Appendf(nil, text, c.entry), nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.entry, err, c.want)
			}
		}
	}
	for entry, want := range map[string]string{
		"{address: 198.51.100.51, ports: [eth1]}":                                              "register: is missing",
		"{address: 198.51.100.51, ports: [a, b, c, d, e], register: " + good + "}":             "ports: has 5 entries",
		"{address: 198.51.100.51, ports: [eth1], register: {}}":                                "register",
		"{address: 198.51.100.51, mac: 02:00:00:00:00:01, ports: [a], register: " + good + "}": "mac",
	} {
		if _, err := Parse("f", fmt.Appendf(nil, declaringReflector, entry), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
	var many []string
	for i := range MaxDeclared + 1 {
		many = append(many, fmt.Sprintf("{address: 198.51.%d.%d, ports: [eth1], register: %s}", i/250, i%250+1, good))
	}
	if _, err := Parse("f", fmt.Appendf(nil, declaringClient, strings.Join(many, "\n    - ")), nil); err == nil || !strings.Contains(err.Error(), "at most 1024") {
		t.Errorf("%d declarations: %v", len(many), err)
	}
}
