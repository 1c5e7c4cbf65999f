package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestTheEnvironmentOverridesTheFile(t *testing.T) {
	env := map[string]string{
		"INOF_LOG_LEVEL": "debug", "INOF_DEVICE_ID": "192.0.2.77", "INOF_STATE_DIRECTORY": "/x",
		"INOF_ERROR_DOWN_LINK_FLAP_CHANGES": "7", "INOF_MANAGEMENT_MODE": "0600",
	}
	c, err := Parse("f", []byte(small+"log: {level: error}\n"), given(t, nil, env))
	if err != nil {
		t.Fatal(err)
	}
	if c.Log.Level != slog.LevelDebug || c.Device.ID.String() != "192.0.2.77" || c.Zones.File != "/x/zones.yaml" ||
		c.ErrorDown.LinkFlap.Changes != 7 || c.Management.Mode != 0o600 {
		t.Errorf("%+v", c)
	}
	_, err = Parse("f", []byte(small), given(t, nil, map[string]string{"INOF_LOG_LEVEL": "loud"}))
	want := `environment INOF_LOG_LEVEL: log.level: "loud": is not a known value; allowed: debug, info, warn, error`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Lists of single values stand in a variable with commas between them, so that a device
// without special wishes needs no file.
func TestTheEnvironmentHasListsToo(t *testing.T) {
	env := map[string]string{
		"INOF_DEVICE_ID": "192.0.2.77", "INOF_DEVICE_ROLES": "client", "INOF_PORTS_ACCESS": "eth1, eth2",
		"INOF_CLIENT_REFLECTORS": "192.0.2.250,192.0.2.251:19600", "INOF_SESSION_AUTH": "none",
	}
	c, err := Parse("f", nil, given(t, nil, env))
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.250:19516"), netip.MustParseAddrPort("192.0.2.251:19600")}
	if d := cmp.Diff(want, c.Client.Reflectors, cmpNetip); d != "" || join(c.Ports.Access) != "eth1, eth2" || !c.Device.Roles.Client {
		t.Errorf("%+v %s", c, d)
	}
	for name, bad := range map[string][2]string{
		"INOF_DEVICE_ROLES":      {"boss", `environment INOF_DEVICE_ROLES: device.roles[0]: "boss": is not a role`},
		"INOF_CLIENT_REFLECTORS": {"192.0.2.250,here", `environment INOF_CLIENT_REFLECTORS: client.reflectors[1].address: "here": is not an IP address`},
		"INOF_PORTS_ACCESS":      {"eth1,eth1", `environment INOF_PORTS_ACCESS: ports.access[1]: "eth1": is listed twice`},
	} {
		wrong := maps.Clone(env)
		wrong[name] = bad[0]
		if _, err := Parse("f", nil, given(t, nil, wrong)); err == nil || !strings.Contains(err.Error(), bad[1]) {
			t.Errorf("%s: got %v, want %s", name, err, bad[1])
		}
	}
}

// A flag wins over the environment, that over the file; each setting says where it is from,
// and an error where its value stands.
func TestEachSettingSaysWhereItComesFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(small+"log:\n  level: error\n  format: json\nlldp: {interval: 10s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"INOF_LOG_LEVEL": "warn", "INOF_LLDP_INTERVAL": "20s", "INOF_MANAGEMENT_EVENTS": ""}
	c, err := LoadWith(path, given(t, map[string]string{"log.level": "debug", "ports.access": "eth1,eth2"}, env))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]string{
		"log.level": {"debug", "flag --log.level"}, "log.format": {"json", path + ":5"}, "lldp.interval": {"20s", "environment INOF_LLDP_INTERVAL"},
		"lldp.ttl": {"2m", "default"}, "ports.access": {"eth1, eth2", "flag --ports.access"}, "device.id": {"192.0.2.1", path + ":1"},
		"management.events": {"4096", "default"}, "zones.file": {"/var/lib/inof/zones.yaml", "default"},
	}
	for _, s := range c.Settings() {
		if w, ok := want[s.Key]; ok && (s.Value != w[0] || s.From != w[1]) {
			t.Errorf("%s is %s from %s, want %v", s.Key, s.Value, s.From, w)
		}
	}
	if again, err := LoadWith(c.File, c.Given); err != nil || len(Diff(c, again)) != 0 {
		t.Errorf("read again: %v %v", Diff(c, again), err)
	}
	_, err = LoadWith(path, given(t, map[string]string{"log.level": "loud"}, env))
	if err == nil || !strings.HasPrefix(err.Error(), `flag --log.level: log.level: "loud": is not a known value`) {
		t.Error(err)
	}
}

// A container needs no file.
func TestFlagsAndTheEnvironmentAreEnough(t *testing.T) {
	env := map[string]string{"INOF_DEVICE_ID": "192.0.2.1", "INOF_DEVICE_ROLES": "client", "INOF_CLIENT_REFLECTORS": "192.0.2.250",
		"INOF_SESSION_PASSWORD_ENV": "SECRET", "SECRET": "a long enough one"}
	c, err := LoadWith(NoFile, given(t, map[string]string{"ports.access": "eth*"}, env))
	if err != nil || !c.Device.Roles.Client || string(c.Session.Password.Reveal()) != "a long enough one" {
		t.Fatal(c, err)
	}
	env["INOF_CLIENT_REFLECTORS"] = ""
	_, err = LoadWith(NoFile, given(t, map[string]string{"ports.access": "eth*"}, env))
	if err == nil || !strings.HasPrefix(err.Error(), "flags and environment: client.reflectors: is missing") {
		t.Error(err)
	}
}

// No two keys share a variable, and none has the name of a flag of the command.
func TestVariablesAndFlagsAreTold(t *testing.T) {
	seen := map[string]string{"INOF_CONFIG": "config", "INOF_OUTPUT": "output"}
	for key := range each("", (&Config{}).items()) {
		if other, twice := seen[EnvName(key)]; twice {
			t.Errorf("%s and %s share %s", key, other, EnvName(key))
		}
		seen[EnvName(key)] = key
	}
	if n := len(Flags()); n < 100 {
		t.Errorf("%d flags", n)
	}
}

// Whatever text stands in the flag of a setting, or else in its variable, arrives as it is, and
// no setting hides another.
func TestEachSettingCanBeGivenByFlagAndVariable(t *testing.T) {
	flags, variables := map[string]string{}, map[string]string{}
	for i, one := range Flags() {
		variables[EnvName(one.Key)] = fmt.Sprintf(" [%s],%d, ", one.Key, i)
		if i%2 == 0 {
			flags[one.Key] = []string{"", "0x10", `[a,"b] `}[i/2%3]
		}
	}
	g := given(t, flags, variables)
	for _, one := range Flags() {
		want, from := variables[EnvName(one.Key)], "environment "+EnvName(one.Key)
		if v, ok := flags[one.Key]; ok {
			want, from = v, "flag --"+one.Key
		}
		if v, f, ok := g.Value(one.Key); v != want || f != from || !ok {
			t.Errorf("%s is %q from %s, want %q from %s", one.Key, v, f, want, from)
		}
	}
	if v, from, ok := NewGiven(new(pflag.FlagSet)).Value("log.colour"); ok {
		t.Errorf("%q from %s", v, from)
	}
}

func TestLoadReadsThePasswordFromEachSource(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	pw := write("pw", "correct horse\n")
	write("cred", "battery staple")
	write("short", "1234567")
	head := "device: {id: 192.0.2.1, roles: [reflector]}\n"
	env := given(t, nil, map[string]string{"CREDENTIALS_DIRECTORY": dir, "SECRET": "a long enough one"})
	for _, c := range []struct{ session, want string }{
		{"password-file: " + pw, "correct horse"},
		{"password-credential: cred", "battery staple"},
		{"password-env: SECRET", "a long enough one"},
	} {
		got, err := LoadWith(write("c.yaml", head+"session: {"+c.session+"}\n"), env)
		if err != nil {
			t.Error(err)
			continue
		}
		if string(got.Session.Password.Reveal()) != c.want {
			t.Errorf("%s: %q", c.session, got.Session.Password.Reveal())
		}
		if text := fmt.Sprintf("%v %+v %#v", got, got.Session, got.Session.Password); strings.Contains(text, c.want) {
			t.Errorf("printing the configuration shows the password: %s", text)
		}
	}
	for _, c := range []struct{ session, want string }{
		{"password-file: /nonexistent/pw", `c.yaml:2:26: session.password-file: "/nonexistent/pw": open /nonexistent/pw: no such file`},
		{"password-credential: short", `the password in that file has 7 characters; allowed: 8 or more`},
		{"password-credential: ../x", `is not a name`},
	} {
		_, err := LoadWith(write("c.yaml", head+"session: {"+c.session+"}\n"), env)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.session, err)
		}
	}
	if _, err := LoadWith(write("c.yaml", head+"session: {password-credential: cred}\n"), nil); err == nil || !strings.Contains(err.Error(), "CREDENTIALS_DIRECTORY is not set") {
		t.Error(err)
	}
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Error(err)
	}
	if _, err := Load(write("big", strings.Repeat("#", MaxFileSize+1))); err == nil || !strings.Contains(err.Error(), "has more than 1048576 bytes") {
		t.Error(err)
	}
}
