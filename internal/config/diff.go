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
	dur, num, yes := setting.Duration, strconv.Itoa, strconv.FormatBool
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
		fixed("ports.max", num(c.Ports.Max)),
		live("ports.removal-hold", dur(c.Ports.RemovalHold)),
		fixed("ports.counters", join(c.Ports.Counters)),
		fixed("ports.sonic-redis", cmp.Or(c.Ports.SONiC, "off")),
		live("lldp.transmit", string(c.LLDP.Transmit)),
		live("lldp.interval", dur(c.LLDP.Interval)),
		live("lldp.ttl", dur(c.LLDP.TTL)),
		fixed("lldp.max-neighbours-per-port", num(c.LLDP.MaxNeighboursPerPort)),
		fixed("lldp.max-hosts", num(c.LLDP.MaxHosts)),
		live("lldp.management-address", addrText(c.LLDP.ManagementAddress)),
	}, c.Hosts.settings(), []Setting{
		fixed("reflector.listen", join(c.Reflector.Listen)),
		fixed("reflector.grace", dur(c.Reflector.Grace)),
		fixed("reflector.max-clients", num(c.Reflector.MaxClients)),
		fixed("reflector.max-hosts-per-device", num(c.Reflector.MaxHostsPerDevice)),
		live("reflector.records-per-second", num(c.Reflector.RecordsPerSecond)),
		live("reflector.records-burst", num(c.Reflector.RecordsBurst)),
		live("reflector.clients", join(c.Reflector.Clients)),
		live("reflector.monitors", join(c.Reflector.Monitors)),
	}, c.Reflector.Cluster.settings(), []Setting{
		fixed("client.reflectors", join(c.Client.Reflectors)),
		fixed("client.zone-agreement", string(c.Client.Agreement)),
		fixed("client.reflector-wait", dur(c.Client.ReflectorWait)),
		fixed("client.interest", string(c.Client.Interest)),
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
		fixed("session.keepalive", dur(s.Keepalive)),
		fixed("session.hold", dur(s.Hold)),
		fixed("session.connect-timeout", dur(s.ConnectTimeout)),
		live("zones.file", c.Zones.File),
		live("zones.default-zone-auto-join", yes(c.Zones.AutoJoin)),
		live("zones.hard-zoning", yes(c.Zones.Hard)),
		live("zones.nqn-binding", c.Zones.nqnBinding()),
	}, c.BFD.settings(), errorDownSettings(&c.ErrorDown), []Setting{
		fixed("notify.retry-first", dur(c.Notify.RetryFirst)),
		fixed("notify.retry-max", dur(c.Notify.RetryMax)),
		fixed("notify.frames-per-window", num(c.Notify.FramesPerWindow)),
		fixed("notify.window", dur(c.Notify.Window)),
		fixed("notify.max-in-flight", num(c.Notify.MaxInFlight)),
		fixed("notify.peers", string(c.Notify.Peers)),
		fixed("notify.history", num(c.Notify.History)),
		fixed("state-directory", c.State),
		fixed("management.socket", c.Management.Socket),
		fixed("management.mode", fmt.Sprintf("%04o", c.Management.Mode)),
		fixed("management.group", c.Management.Group),
		fixed("management.events", num(c.Management.Events)),
		live("log.level", strings.ToLower(c.Log.Level.String())),
		fixed("log.format", c.Log.Format),
	})
}

// declared are settings whose reading, comparing and documentation follow from their
// declarations, by section.
type declared struct {
	prefix string // the section with its dot
	list   []setting.Setting
}

func (c *Config) declared() (out []declared) {
	for _, set := range c.ErrorDown.Sections() {
		out = append(out, declared{"error-down." + set.Name + ".", set.Settings})
	}
	return out
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
