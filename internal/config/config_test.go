package config

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/openinof/inof/fabric"
)

// given is what flags and variables say, until the test ends.
func given(t *testing.T, flags, variables map[string]string) *Given {
	t.Helper()
	for name, v := range variables {
		t.Setenv(name, v)
	}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, one := range Flags() {
		set.String(one.Key, "", one.Usage)
	}
	g := NewGiven(set)
	for key, v := range flags {
		if err := set.Set(key, v); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

var cmpNetip = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})

const small = "device: {id: 192.0.2.1, name: a}\nports: {access: [e*]}\n"

func TestDefaultsOfAStandaloneDevice(t *testing.T) {
	got, err := Parse("f", []byte(small), nil)
	if err != nil {
		t.Fatal(err)
	}
	id := netip.MustParseAddr("192.0.2.1")
	want := &Config{
		File: "f", Device: Device{ID: id, Name: "a"}, Dataplane: "linux",
		Zones: Zones{File: "/var/lib/inof/zones.yaml", AutoJoin: true, MaxLoss: 10},
		State: "/var/lib/inof",
		Log:   Log{Level: slog.LevelInfo, Format: "text", Syslog: Syslog{Facility: 23, Enterprise: 32473}},
	}
	for key, it := range each("", got.items()) { // what the defaults are is pinned by docs/config.md
		foreign := strings.HasPrefix(key, "reflector.") || strings.HasPrefix(key, "client.") || strings.HasPrefix(key, "bfd.") || strings.HasPrefix(key, "model.")
		if it.list == nil && it.Default != "" && key != "ports.sonic-redis" && !foreign && it.Text() != it.Default {
			t.Errorf("%s is %s, want %s", key, it.Text(), it.Default)
		}
	}
	// What is a default by itself is above; here is what follows from something else.
	want.Ports, want.LLDP, want.Hosts, want.HardZoning, want.Fence, want.Session, want.Management, want.Metrics = got.Ports, got.LLDP, got.Hosts, got.HardZoning, got.Fence, got.Session, got.Management, got.Metrics
	want.ErrorDown, want.Notify, want.From, want.Mode = got.ErrorDown, got.Notify, got.From, got.Mode
	if got.LLDP.ManagementAddress != id || join(got.Ports.Access) != "e*" || got.Ports.SONiC != "" || got.Management.HTTP != (HTTP{}) {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff(want, got, cmpNetip); d != "" {
		t.Error(d)
	}
	if got.Device.Roles.String() != "standalone" || !got.Device.Roles.Access() || !got.Device.Roles.OwnsZones() {
		t.Errorf("roles: %v", got.Device.Roles)
	}
}

func TestRolesDecideWhatIsReadAndDefaulted(t *testing.T) {
	reflector, err := Parse("f", []byte("device: {id: '2001:db8::1', roles: [reflector]}\nsession: {auth: none}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.AddrPort{netip.MustParseAddrPort("[2001:db8::1]:19516")}
	if d := cmp.Diff(want, reflector.Reflector.Listen, cmpNetip); d != "" {
		t.Error(d)
	}
	both, err := Parse("f", []byte("device: {id: 192.0.2.1, roles: [client, reflector]}\nports: {access: [e1]}\nsession: {auth: none}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if both.Device.Roles.String() != "reflector+client" || len(both.Client.Reflectors) != 0 || both.Zones.File == "" {
		t.Errorf("%+v", both)
	}
	client, err := Parse("f", []byte("device: {id: 192.0.2.1, roles: [client]}\nports: {access: [e1]}\nsession: {auth: none}\nclient: {reflectors: [{address: 192.0.2.2}]}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]netip.AddrPort{netip.MustParseAddrPort("192.0.2.2:19516")}, client.Client.Reflectors, cmpNetip); d != "" {
		t.Error(d)
	}
	if client.Zones != (Zones{}) {
		t.Errorf("a client has zone settings: %+v", client.Zones)
	}
}

func TestAListenerInTheFormOfIPv6IsThatOfIPv4(t *testing.T) {
	for text, want := range map[string]string{"::ffff:192.0.2.1": "192.0.2.1:7", "[::ffff:192.0.2.1]:9": "192.0.2.1:9", "::": "[::]:7"} {
		if got, what := parseNetwork(text, 7); got.String() != want || what != "" {
			t.Errorf("%s: %s %s, want %s", text, got, what, want)
		}
	}
}

// Each row adds lines to a good configuration and names what the one problem must say.
func TestEachMistakeIsReportedWithLineValueAndWhatIsAllowed(t *testing.T) {
	const reflector = "device: {id: 192.0.2.1, name: r, roles: [reflector]}\n"
	const client = "device: {id: 192.0.2.1, name: c, roles: [client]}\nports: {access: [e*]}\n"
	const none = "session: {auth: none}\n"
	const one = "client: {reflectors: [{address: 192.0.2.2}]}\n"
	for _, c := range []struct{ yaml, want string }{
		{"", `f:1:1: device.id: is missing`},
		{"ports: {access: [a]}\n", `f:1:1: device.id: is missing`},
		{"device: {id: 300.1.1.1}\nports: {access: [a]}\n", `f:1:14: device.id: "300.1.1.1": is not an IP address; allowed: an IPv4`},
		{"device: {id: 127.0.0.1}\nports: {access: [a]}\n", `"127.0.0.1": is a loopback address`},
		{"device: {id: '::1'}\nports: {access: [a]}\n", `is a loopback address`},
		{"device: {id: 'fe80::1'}\nports: {access: [a]}\n", `is a link-local address`},
		{"device: {id: 'fe80::1%e0'}\nports: {access: [a]}\n", `has a scope zone`},
		{"device: {id: 224.0.0.1}\nports: {access: [a]}\n", `is a group address`},
		{"device: {id: 0.0.0.0}\nports: {access: [a]}\n", `is the unspecified address`},
		{"device: {id: '::ffff:192.0.2.1'}\nports: {access: [a]}\n", `is an IPv4 address in IPv6 form`},
		{"device: {id: [1]}\nports: {access: [a]}\n", `f:1:14: device.id: is a list, not a single value`},
		{"device: {id: }\nports: {access: [a]}\n", `device.id: has no value`},
		{"device: {id: !x 192.0.2.1}\nports: {access: [a]}\n", `has the YAML tag !x`},
		{"device: 5\nports: {access: [a]}\n", `f:1:9: device: "5": is a single value, not a section`},
		{small + "device: {id: 192.0.2.2}\n", `f:3:1: device: is written twice, first in line 1; allowed: each key once`},
		{small + "lgo: {level: info}\n", `f:3:1: lgo: unknown key, did you mean "log"?; allowed: device, `},
		{small + "log:\n  levle: info\n", `f:4:3: log.levle: unknown key, did you mean "level"?; allowed: level, format`},
		{small + "log:\n  Level: info\n", `log.Level: unknown key, did you mean "level"?`},
		{small + "log: {level: loud}\n", `f:3:14: log.level: "loud": is not a known value; allowed: debug, info, warn, error`},
		{small + "1: 2\n", `1: unknown key`},
		{small + "[a]: 2\n", `the key is a list`},
		{small + "zones: {hard-zoning: yes}\n", `"yes": is neither true nor false`},
		{small + "zones: {file: rel.yaml}\n", `"rel.yaml": is not an absolute path`},
		{small + "dataplane: model\n", `model.device: is missing: dataplane model needs to know which switch`},
		{small + "dataplane: ship\n", `dataplane: "ship": is not a known value; allowed: linux, model`},
		{small + "model: {device: A1}\n", `model.device: "A1": is of no use without dataplane: model`},
		{small + "dataplane: model\nmodel: {device: A1, socket: here}\n", `model.socket: "here": is not an absolute path`},
		{small + "dataplane: model\nmodel: {device: A1, file: here}\n", `model.file: unknown key`},
		{small + "lldp: {interval: 5}\n", `"5": has no unit (ms, s, m or h); allowed: 1s..1h`},
		{small + "lldp: {interval: soon}\n", `"soon": is not a time span`},
		{small + "lldp: {interval: 10ms}\n", `"10ms": is too short`},
		{small + "lldp: {interval: 2h}\n", `"2h": is too long`},
		{small + "lldp: {ttl: 30s}\n", `lldp.ttl: "30s": is not above lldp.interval (30s)`},
		{small + "lldp: {interval: 200s}\n", `f:3:7: lldp.ttl: is not above lldp.interval (3m20s)`},
		{small + "lldp: {ttl: 100500ms}\n", `is not a number of whole seconds`},
		{small + "lldp: {max-hosts: 7999}\n", `"7999": is too small; allowed: a whole number 8000..80000`},
		{small + "lldp: {max-hosts: 80001}\n", `is too large`},
		{small + "lldp: {max-hosts: 99999999999999999999}\n", `is not a whole number`},
		{small + "notify: {retry-first: 2s}\n", `notify.retry-max: is shorter than notify.retry-first (2s)`},
		{small + "notify: {frames-per-window: 250, window: 250ms}\n", `host agents go deaf at 500`},
		{small + "management: {mode: 0860}\n", `is not an octal number`},
		{small + "management: {mode: 0460}\n", `is out of range`},
		{small + "management: {socket: /" + strings.Repeat("x", 107) + "}\n", `has 108 bytes`},
		{small + "management: {http: 192.0.2.1, token-file: /t}\n", `management.certificate-file: is missing: management.http is not on a loopback address`},
		{small + "management: {http: 127.0.0.1}\n", `management.token-file: is missing, as user-file is: management.http lets nobody in without one`},
		{small + "management: {http: 127.0.0.1, user-file: /u, client-ca-file: /ca}\n", `management.client-ca-file: "/ca": is of no use without certificate-file: there is no TLS`},
		{small + "management: {http: 127.0.0.1, token-file: /t, client-ca-file: /ca, certificate-file: /c, key-file: /k}\n", `management.client-ca-file: "/ca": is of no use without user-file: no certificate has a role`},
		{small + "management: {client-ca-file: /ca}\n", `management.client-ca-file: "/ca": does not apply: management.http is off`},
		{small + "management: {http: 19518, token-file: /t}\n", `management.http: "19518": is not an address and port; allowed: off, or an address`},
		{small + "management: {gnmi: 192.0.2.1, token-file: /t}\n", `management.certificate-file: is missing: management.gnmi is not on a loopback address`},
		{small + "management: {gnmi: '127.0.0.1:0', token-file: /t}\n", `management.gnmi: "127.0.0.1:0": is not an address and port`},
		{small + "management: {token-file: /t}\n", `management.token-file: "/t": does not apply: management.http is off`},
		{small + "management: {netconf: 192.0.2.1}\n", `management.user-file: is missing, as token-file is: management.netconf lets nobody in without one`},
		{small + "management: {netconf: 830, user-file: /u}\n", `management.netconf: "830": is not an address and port`},
		{small + "management: {user-file: /u}\n", `management.user-file: "/u": does not apply: management.netconf is off`},
		{small + "management: {http: '[::1]:9', token-file: /t, key-file: /k}\n", `management.key-file: "/k": and certificate-file are needed together`},
		{small + "metrics: {max-series: 1}\n", `metrics.max-series: "1": is too small; allowed: a whole number 100..1000000`},
		{small + "error-down: {link-flap: {recovery: 1s}}\n", `error-down.link-flap.recovery: "1s": is too short; allowed: off, 30s..24h`},
		{small + "error-down: {crc: {errors: 0}}\n", `error-down.crc.errors: "0": is too small; allowed: a whole number 1..1000000`},
		{small + "error-down: {pfc-storm: {deadlocks: 101}}\n", `"101": is never reached: there are at most 100 within the window`},
		{small + "error-down: {low-receive-power: {below: -14}}\n", `"-14": has no unit (dBm); allowed: -39dBm..10dBm`},
		{small + "error-down: {low-receive-power: {below: -40dBm}}\n", `is too low`},
		{small + "error-down: {low-receive-power: {below: NaNdBm}}\n", `is not a number of dBm`},
		{small + "error-down: {low-receive-power: {hysteresis: 11dB}}\n", `is too high; allowed: 0.1dB..10dB`},
		{small + "error-down: {low-receive-power: {clear-percent: 50}}\n", `unknown key`},
		{small + "error-down: {storm-control: {action: notify}}\n", `error-down.storm-control.action: "notify": has nothing to act on`},
		{small + "error-down: {ports: [{crc: {errors: 5}}]}\n", `error-down.ports[0].names: is missing`},
		{small + "error-down: {ports: [{names: [e1], crc: {window: 1ms}}]}\n", `error-down.ports[0].crc.window: "1ms": is too short`},
		{small + "error-down: {ports: [{names: [e1], crc: {eros: 1}}]}\n", `error-down.ports[0].crc.eros: unknown key, did you mean "errors"?`},
		{"device: {id: 192.0.2.1}\nports: {access: [a], counters: [{field: crc}]}\n", `ports.counters[0].name: is missing`},
		{"device: {id: 192.0.2.1}\nports: {access: [a], counters: [{field: pause, name: x}]}\n", `"x": does not fit the field pause; allowed: exactly one #`},
		{"device: {id: 192.0.2.1}\nports: {access: [a], counters: [{field: speed, name: x}]}\n", `is not a known value`},
		{"device: {id: 192.0.2.1}\nports: {access: [a], sonic-redis: redis.sock}\n", `"redis.sock": is no address of a Redis server; allowed: off, HOST:PORT or`},
		{small + "reflector: {grace: 5s}\n", `f:3:12: reflector: does not apply: this device is not a reflector (device.roles: standalone)`},
		{small + "client: {source: 192.0.2.9}\n", `client: does not apply`},
		{small + "session: {password-env: A, password-file: /b}\n", `session.password-env: "A": is a second source of the password, beside password-file`},
		{small + "session: {auth: none, password-file: /b}\n", `a password is given, but session.auth is none`},
		{small + "session: {hold: 1s}\n", `"1s": is less than three times session.keepalive (3s); allowed: 9s..1h`},
		{small + "---\nlog: {}\n", `a second YAML document begins`},
		{small + "a: b: c\n", `f:3:1: "a: b: c": not valid YAML: mapping values are not allowed`},
		{"device:\n\tid: 192.0.2.1\n", `f:2:1: "id: 192.0.2.1": the line is indented with a tab, and YAML takes spaces only; put two spaces`},
		{"device: {id: 192.0.2.1}\nports: {access: [!Ethernet48]}\n", `f:2:1: "ports: {access: [!Ethernet48]}": not valid YAML: did not find expected`},
		{"device: {id: 192.0.2.1}\nports:\n  access:\n  - !Ethernet48\n", `f:4:5: ports.access[0]: has the YAML tag !Ethernet48, tags are not read; put it in quotes: "!Ethernet48"`},
		{"device: {id: 192.0.2.1}\nports: {access: [\"!Ethernet48\"]}\n", `f:2:17: ports.access: only leaves ports out and names none`},
		{"device: {id: 192.0.2.1, roles: [clinet]}\nclient: {reflectors: [{address: 192.0.2.2}]}\nports: {access: [e*]}\nsession: {auth: none}\n", `f:1:33: device.roles[0]: "clinet": is not a role, did you mean "client"?; allowed: reflector, client`},
		{"device: {id: 192.0.2.1, roles: client}\nports: {access: [e*]}\n", `f:1:32: device.roles: "client": is a single value, not a list: write [client]`},
		{`{"device":{"id":"192.0.2.1"},"ports":{"access":["e*"],}, "lldp" {}}`, `f:1:55: "s\":{\"access\":[\"e*\"],}, \"lldp\" {}}": not valid JSON at column 55: invalid character '}'`},
		{"device: {id: 192.0.2.1, name: \"a\\tb\"}\nports: {access: [a]}\n", `has a character that cannot be printed`},
		{"device: {id: 192.0.2.1, name: a}\nports: {access: [a], counters: [{field: broadcast, name: statistics/rx_dropped}]}\n", `is no link statistic that can stand for broadcast`},
		{"device: {id: 192.0.2.1, name: a}\nports: {access: [a], counters: [{field: crc, name: statistics/rx_bytes}]}\n", `is no link statistic that can stand for crc`},
		{client + none + one + "bfd: {interval: 10ms}\n", `f:5:17: bfd.interval: "10ms": does not apply: the reflector sets it for the whole fabric`},
		{client + none + one + "bfd: {auth: keyed-sha1}\n", `f:5:13: bfd.auth: "keyed-sha1": needs keys and none is given`},
		{client + none + one + "bfd: {auth: md5}\n", `bfd.auth: "md5": is not a known value`},
		{client + none + one + "bfd: {keys: [{id: 1, env: K}]}\n", `f:5:27: bfd.keys[0].env: "K": the key in that variable is empty or not set`},
		{client + none + one + "bfd: {auth: keyed-sha1, keys: [{id: 1, file: /k}, {id: 1, file: /l}]}\n", `f:5:56: bfd.keys[1].id: "1": is that of an earlier key`},
		{client + none + one + "bfd: {auth: keyed-sha1, keys: [{id: 256, file: /k}]}\n", `f:5:37: bfd.keys[0].id: "256": is too large`},
		{client + none + one + "bfd: {auth: keyed-sha1, keys: [{id: 1, file: /k, credential: c}]}\n", `2 of file, env and credential are given`},
		{client + none + one + "bfd: {socket: run}\n", `bfd.socket: "run": is not an absolute path`},
		{reflector + none + "bfd: {interval: 2ms}\n", `bfd.interval: "2ms": is too short; allowed: 3ms..1s`},
		{reflector + none + "bfd: {detect-multiplier: 51}\n", `bfd.detect-multiplier: "51": is too large; allowed: a whole number 3..50`},
		{reflector + none + "bfd: {socket: /s}\n", `bfd.socket: "/s": does not apply: this device is a reflector only`},
		{small + "notify: {peers: none}\n", `notify.peers: "none": is not a known value; allowed: by-role, all`},
		{reflector + none + "bfd: {mesh: some}\n", `bfd.mesh: "some": is not a known value; allowed: zones, all`},
		{small + "bfd: {enabled: false}\n", `bfd: does not apply: a standalone device knows of no other device`},
		{"device: {id: 192.0.2.1, roles: [boss]}\nports: {access: [a]}\n", `f:1:33: device.roles[0]: "boss": is not a role; allowed: reflector, client`},
		{"device: {id: 192.0.2.1}\n", `ports.access: is missing: a standalone device`},
		{"device: {id: 192.0.2.1}\nports: {access: ['a[']}\n", `is not a valid glob`},
		{"device: {id: 192.0.2.1}\nports: {access: [a/b]}\n", `has a character that no port name has`},
		{"device: {id: 192.0.2.1}\nports: {access: [a, a]}\n", `f:2:21: ports.access[1]: "a": is listed twice, first in line 2`},
		{"device: {id: 192.0.2.1}\nports: {access: [~]}\n", `ports.access[0]: is empty`},
		{"device: {id: 192.0.2.1}\nports: {access: a}\n", `"a": is a single value, not a list`},
		{reflector, `session.auth: hmac-sha256 needs a password and none is given`},
		{reflector + none + "ports: {access: [a]}\n", `is set on a device that is a reflector only`},
		{reflector + none + "reflector: {listen: ['192.0.2.1:80']}\n", `reflector.listen[0]: "192.0.2.1:80": has the port 80`},
		{reflector + none + "reflector: {listen: [here]}\n", `is not an address and port`},
		{reflector + none + "reflector: {clients: [x]}\n", `reflector.clients[0].device: "x": is not an IP address`},
		{reflector + none + "reflector: {clients: [192.0.2.9, {device: 192.0.2.9}]}\n", `reflector.clients[1].device: "192.0.2.9": is listed twice, first in line 3`},
		{reflector + none + "reflector: {clients: [{prefixes: [10.0.0.0/8]}]}\n", `reflector.clients[0].device: is missing`},
		{reflector + none + "reflector: {clients: [{device: 192.0.2.9, prefixes: [10.0.0.1/8]}]}\n", `reflector.clients[0].prefixes[0]: "10.0.0.1/8": has bits behind the prefix, did you mean "10.0.0.0/8"?`},
		{reflector + none + "reflector: {clients: [{device: 192.0.2.9, nqns: [a]}]}\n", `reflector.clients[0].nqns[0]: "a": does not begin with nqn.`},
		{reflector + none + "reflector: {clients: [{device: 192.0.2.9, max-hosts: -1}]}\n", `reflector.clients[0].max-hosts: "-1": is too small`},
		{client + none, `client.reflectors: is missing: a client needs a reflector; allowed: 1..5 entries`},
		{client + none + "client: {reflectors: [{address: 192.0.2.2}, {address: 192.0.2.3}, {address: 192.0.2.4}, {address: 192.0.2.5}, {address: 192.0.2.6}, {address: 192.0.2.7}]}\n", `client.reflectors: has 6 entries; allowed: 1..5 entries`},
		{client + none + "client: {reflectors: [{address: 192.0.2.2}, {address: 192.0.2.2, port: 20000}]}\n", `client.reflectors: names one reflector twice`},
		{client + none + "client: {zone-agreement: both, reflectors: [{address: 192.0.2.2}]}\n", `client.zone-agreement: "both"`},
		{client + none + "client: {reflectors: [{address: 192.0.2.1}]}\n", `client.reflectors[0].address: "192.0.2.1": is this device's own id`},
		{client + none + "client: {reflectors: [{port: 19516}]}\n", `client.reflectors[0].address: is missing`},
		{client + none + "client: {reflectors: [here]}\n", `f:4:23: client.reflectors[0].address: "here": is not an IP address`},
		{client + none + "client: {reflectors: [{address: 192.0.2.2, prot: 1}]}\n", `client.reflectors[0].prot: unknown key, did you mean "port"?; allowed: address, port`},
		{client + none + one + "zones: {hard-zoning: true}\n", `local settings for these are refused`},
		{client + one + "session: {password-env: SHORT}\n", `session.password-env: "SHORT": the password in that variable has 5 characters; allowed: 8 or more`},
		{client + one + "session: {password-env: UNSET}\n", `the password in that variable is empty or not set`},
		{"device: {id: 192.0.2.1, roles: [client, reflector]}\nports: {access: [a]}\n" + none + "client: {reflectors: [{address: 192.0.2.2}, {address: 192.0.2.3}, {address: 192.0.2.4}, {address: 192.0.2.5}, {address: 192.0.2.6}]}\n", `client.reflectors: has 5 entries, and this device is a reflector itself`},
	} {
		_, err := Parse("f", []byte(c.yaml), given(t, nil, map[string]string{"SHORT": "12345"}))
		if err == nil {
			t.Errorf("no error, want %q for:\n%s", c.want, c.yaml)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s\nfor:\n%s", err, c.want, c.yaml)
		}
		if strings.Contains(err.Error(), "12345") {
			t.Error("an error shows the password")
		}
	}
}

func TestAllMistakesAreReportedAtOnceInTheOrderOfLines(t *testing.T) {
	_, err := Parse("f", []byte("log: {level: x}\nports:\n  access: [a]\n  max: 0\ndevice: {id: x}\n"),
		given(t, nil, map[string]string{"INOF_NOTIFY_HISTORY": "-1"}))
	var all *Error
	if !errors.As(err, &all) {
		t.Fatalf("%T", err)
	}
	got := []string{}
	for _, p := range all.Problems {
		got = append(got, fmt.Sprintf("%d %s", p.Line, p.Key))
	}
	want := []string{"1 log.level", "4 ports.max", "5 device.id", "0 notify.history"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var one Problem
	if !errors.As(err, &one) || one.Key != "log.level" {
		t.Errorf("errors.As gives %v", one)
	}
}

func TestManyMistakesAreCounted(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, "x%d: 1\n", i)
	}
	_, err := Parse("f", []byte(small+b.String()), nil)
	if !strings.HasSuffix(err.Error(), "\nand 400 more problems") {
		t.Error(err.Error()[len(err.Error())-100:])
	}
}

func TestExceptionsForPortsBeginWithTheDefaults(t *testing.T) {
	c, err := Parse("f", []byte(small+`
error-down:
  ports:
    - names: ["e1*"]
      crc: {errors: 9}
      low-receive-power: {below: -7.5dBm}
    - names: [e2]
      pfc-storm: {action: notify}
  crc: {action: error-down, recovery: 5m}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := c.ErrorDown
	want.CRC.Errors, want.LowPower.Below, want.Ports = 9, -7500, nil
	if x := c.ErrorDown.Ports[0]; !cmp.Equal(want, x.Config) || x.Names.String() != "e1*" || want.CRC.Recovery != 5*time.Minute {
		t.Errorf("%s: %s", x.Names, cmp.Diff(want, x.Config))
	}
	other, _ := Parse("f", []byte(small), nil)
	d := Diff(other, c)
	if got := d.Sections(); len(got) != 1 || len(d) != 3 || len(d.Restart()) != 0 || !d.Has("error-down.ports") {
		t.Errorf("%v", d)
	}
	if !strings.Contains(d[2].New, "[e1*] link-down.hold-up: 0s, link-flap.changes: 5") || !strings.Contains(d[2].New, "below: -7.5dBm") {
		t.Errorf("%+v", d[2])
	}
}

func TestNamesOfDriverCounters(t *testing.T) {
	c, err := Parse("f", []byte("device: {id: 192.0.2.1}\nports: {access: [a], counters: [{driver: 'x*', field: pause, name: 'rx_p#'}, {field: crc, name: fcs}]}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []fabric.CounterName{{Driver: "x*", Field: fabric.FieldPause, Name: "rx_p#"}, {Driver: "*", Field: fabric.FieldCRC, Name: "fcs"}}
	if d := cmp.Diff(want, c.Ports.Counters); d != "" {
		t.Error(d)
	}
}

func TestAliasesAreFollowed(t *testing.T) {
	c, err := Parse("f", []byte("device: {id: &a 192.0.2.1}\nports: {access: [e*]}\nlldp: {management-address: *a}\n"), nil)
	if err != nil || c.LLDP.ManagementAddress != c.Device.ID {
		t.Error(c, err)
	}
}

func TestDiffTellsSectionsAndRestarts(t *testing.T) {
	parse := func(text string) *Config {
		t.Helper()
		c, err := Parse("f", []byte(small+text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	base := parse("")
	if d := Diff(base, parse("log: {level: info}\nzones: {default-zone-auto-join: true}\nlldp: {interval: 30000ms}\n")); len(d) != 0 {
		t.Errorf("defaults written out loud are changes: %v", d)
	}
	d := Diff(base, parse("log: {level: debug}\nstate-directory: /s\nerror-down: {link-flap: {action: notify}}\n"))
	if diff := cmp.Diff([]string{"state-directory", "zones", "error-down", "log"}, d.Sections()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"state-directory"}, d.Restart()); diff != "" {
		t.Error(diff)
	}
	if !d.Has("error-down") || !d.Has("log.level") || d.Has("lldp") || d.Has("error-down.link-down") {
		t.Error("Has is wrong")
	}
	a, b := *base, *base
	a.Session.Password, b.Session.Password = "one password", "another password"
	if d := Diff(&a, &b); len(d) != 1 || d[0].Key != "session.password" || strings.Contains(fmt.Sprint(d), "another") {
		t.Errorf("a new password: %v", d)
	}
}

func TestExamplesAreGood(t *testing.T) {
	dir := "../../docs/examples"
	for _, name := range []string{"reflector", "client", "standalone"} {
		data, err := os.ReadFile(filepath.Join(dir, name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse(name+".yaml", data, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := c.Device.Roles.String(); got != name {
			t.Errorf("%s.yaml is a %s", name, got)
		}
	}
	for name, want := range map[string]Model{"leaf1": {"/tmp/inof-model/fabric.sock", "leaf1"}, "leaf2": {"/tmp/inof-model/fabric.sock", "leaf2"}, "spine": {}} {
		data, err := os.ReadFile(filepath.Join(dir, "model", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if c, err := Parse(name+".yaml", data, nil); err != nil || c.Model != want || c.Device.Name != name {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	set, err := LoadZones(filepath.Join(dir, "zones.yaml"), (&Config{}).ZoneRules())
	if err != nil || len(set.Zones) != 2 {
		t.Error(set, err)
	}
}

var update = flag.Bool("update", false, "write the rows of docs/config.md")

// The rows of docs/config.md follow from the declarations: run with -update after a change.
func TestTheRowsOfTheSettingsAreWhatTheirDeclarationsSay(t *testing.T) {
	const doc = "../../docs/config.md"
	data, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	known := map[string]bool{"zones": true, "zones[].name": true, "zones[].members": true} // of the zone file
	keyOf := func(line string) string {
		key, _, _ := strings.Cut(strings.TrimPrefix(line, "| `"), "` |")
		return key
	}
	at := 0 // behind the last row
	for _, row := range rows("", (&Config{}).items()) {
		key := keyOf(row)
		known[key] = true
		if cells := strings.Split(row, "|"); len(cells) < 7 || len(strings.TrimSpace(cells[4])) < 10 {
			t.Errorf("%s: no reason to change it", key)
		}
		i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "| `"+key+"` |") })
		switch {
		case i >= 0 && lines[i] == row:
		case !*update:
			t.Errorf("%s is not documented as it is declared:\n%s", key, row)
		case i >= 0:
			lines[i] = row
		default:
			i = at
			lines = slices.Insert(lines, i, row)
		}
		at = i + 1
	}
	for _, l := range lines {
		if strings.HasPrefix(l, "| `") && !known[keyOf(l)] {
			t.Errorf("%s is documented and does not exist", keyOf(l))
		}
	}
	if *update {
		err = os.WriteFile(doc, []byte(strings.Join(lines, "\n")), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("device: &a [*a]\n"))
	f.Add([]byte("<<: {a: 1}\n? [x]\n: y\n"))
	for _, name := range []string{"reflector", "client", "standalone"} {
		if data, err := os.ReadFile("../../docs/examples/" + name + ".yaml"); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data, nil)
		if err != nil {
			var all *Error
			if !errors.As(err, &all) || len(all.Problems) == 0 {
				t.Fatalf("error without problems: %v", err)
			}
			for _, p := range all.Problems {
				if p.Line < 1 || p.Column < 1 || p.What == "" {
					t.Fatalf("problem without place: %+v", p)
				}
			}
			return
		}
		if !c.Device.ID.IsValid() || c.Session.Hold < 3*c.Session.Keepalive {
			t.Fatalf("accepted: %+v", c)
		}
		if d := Diff(c, c); len(d) != 0 {
			t.Fatal(d)
		}
	})
}
