package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/openinof/inof/internal/setting"
)

// Change is one setting that differs between two configurations.
type Change struct {
	Key     string // full key path
	Old     string
	New     string
	Restart bool // takes effect only after a restart of the daemon
}

// Changes are all differing settings in the order of the schema.
type Changes []Change

// Sections lists the sections (or top-level settings) that differ, each once.
func (c Changes) Sections() []string {
	var out []string
	for _, ch := range c {
		name, _, _ := strings.Cut(ch.Key, ".")
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Restart lists the keys that differ and need a restart.
func (c Changes) Restart() []string {
	var out []string
	for _, ch := range c {
		if ch.Restart {
			out = append(out, ch.Key)
		}
	}
	return out
}

// Has tells whether anything below the key differs.
func (c Changes) Has(key string) bool {
	return slices.ContainsFunc(c, func(ch Change) bool {
		return ch.Key == key || strings.HasPrefix(ch.Key, key+".")
	})
}

// Diff compares two configurations by their effect: writing a default out loud
// is no change.
func Diff(old, new *Config) Changes {
	var out Changes
	a, b := old.Settings(), new.Settings()
	for i := range a {
		if a[i].Value == b[i].Value && (a[i].secret == b[i].secret) {
			continue
		}
		out = append(out, Change{Key: a[i].Key, Old: a[i].Value, New: b[i].Value, Restart: a[i].Restart})
	}
	return out
}

// Setting is one effective setting as text.
type Setting struct {
	Key     string
	Value   string
	Restart bool   // changes only with a restart of the daemon
	secret  Secret // compared, never shown
}

// Settings lists every setting with its effective value in the order of the
// schema. Passwords are not shown.
func (c *Config) Settings() []Setting {
	live := func(key, value string) Setting { return Setting{Key: key, Value: value} }
	fixed := func(key, value string) Setting { return Setting{Key: key, Value: value, Restart: true} }
	yes := strconv.FormatBool
	s := c.Session
	from := func(kind PasswordKind) string {
		if s.PasswordFrom.Kind == kind {
			return s.PasswordFrom.Name
		}
		return ""
	}
	return slices.Concat([]Setting{
		fixed("device.id", addrText(c.Device.ID)),
		fixed("device.name", c.Device.Name),
		fixed("device.roles", join(c.Device.Roles.Names())),
		fixed("device.allow-loopback", yes(c.Device.AllowLoopback)),
		fixed("dataplane", c.Dataplane),
		fixed("model.socket", c.Model.Socket),
		fixed("model.device", c.Model.Device),
		live("ports.access", join(c.Ports.Access)),
	}, effective("ports.", c.Ports.settings()), []Setting{
		fixed("ports.counters", join(c.Ports.Counters)),
		fixed("ports.sonic-redis", cmp.Or(c.Ports.SONiC, "off")),
	}, effective("lldp.", c.LLDP.settings()), []Setting{
		live("lldp.management-address", addrText(c.LLDP.ManagementAddress)),
	}, effective("hosts.", c.Hosts.settings()), []Setting{
		live("hosts.bindings", join(c.Hosts.Bindings)),
		fixed("reflector.listen", join(c.Reflector.Listen)),
	}, effective("reflector.", c.Reflector.settings()), []Setting{
		live("reflector.clients", join(c.Reflector.Clients)),
		live("reflector.monitors", join(c.Reflector.Monitors)),
	}, c.Reflector.Cluster.settings(), []Setting{
		fixed("client.reflectors", join(c.Client.Reflectors)),
	}, effective("client.", c.Client.settings()), []Setting{
		fixed("client.source", addrText(c.Client.Source)),
		fixed("session.auth", string(s.Auth)),
		live("session.password-file", from(PasswordFile)),
		live("session.password-env", from(PasswordEnv)),
		live("session.password-credential", from(PasswordCredential)),
		{Key: "session.password", Value: s.Password.String(), secret: s.Password},
		{Key: "session.password-old", Value: s.OldPassword.String(), secret: s.OldPassword},
		live("session.certificate-file", s.TLS.CertificateFile),
		live("session.key-file", s.TLS.KeyFile),
		live("session.ca-file", s.TLS.CAFile),
		live("session.tls-allow", strings.Join(s.TLS.Allow, ", ")),
		live("session.certificate", s.TLS.Keys.Digest()),
	}, effective("session.", c.Session.settings()), []Setting{
		live("zones.file", c.Zones.File),
		live("zones.default-zone-auto-join", yes(c.Zones.AutoJoin)),
		live("zones.hard-zoning", yes(c.Zones.Hard)),
		live("zones.nqn-binding", c.Zones.nqnBinding()),
	}, c.BFD.settings(), errorDownSettings(&c.ErrorDown), effective("notify.", c.Notify.settings()), []Setting{
		fixed("state-directory", c.State),
		fixed("management.socket", c.Management.Socket),
		fixed("management.mode", fmt.Sprintf("%04o", c.Management.Mode)),
		fixed("management.group", c.Management.Group),
	}, effective("management.", c.Management.settings()), []Setting{
		live("log.level", strings.ToLower(c.Log.Level.String())),
		fixed("log.format", c.Log.Format),
	})
}

// effective gives what is in force of declared settings, whose section is prefix.
func effective(prefix string, list []setting.Setting) []Setting {
	out := make([]Setting, len(list))
	for i, s := range list {
		out[i] = Setting{Key: prefix + s.Key, Value: s.Text(), Restart: s.Restart}
	}
	return out
}

// addrText leaves an unset address empty.
func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func join[T any](list []T) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, ", ")
}
