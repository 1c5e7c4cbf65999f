package config

import (
	"cmp"
	"slices"
	"strings"
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

// Has reports whether anything below the key differs.
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
	Key     string `json:"key"`
	Value   string `json:"value"`
	From    string `json:"from"`    // FILE:LINE, flag --KEY, environment NAME, or default
	Restart bool   `json:"restart"` // changes only with a restart of the daemon
	secret  Secret // compared, never shown
}

// Settings lists every setting with its effective value in the order of the
// schema. Passwords are not shown.
func (c *Config) Settings() []Setting {
	var out []Setting
	for key, it := range each("", c.items()) {
		out = append(out, Setting{Key: key, Value: it.Text(), From: cmp.Or(c.From[key], "default"), Restart: it.Restart, secret: it.secret})
	}
	return out
}

// Flag is a setting as a flag of a command takes it.
type Flag struct{ Key, Usage string }

// Flags are all settings that can be one: all but lists of entries that have no short form.
func Flags() (out []Flag) {
	for key, it := range each("", (&Config{}).items()) {
		if it.derived || it.list != nil && it.keys != nil && it.short == nil {
			continue
		}
		usage := it.Allowed
		if it.Default != "" {
			usage += " (default " + it.Default + ")"
		}
		out = append(out, Flag{key, usage})
	}
	return out
}
