package config

import (
	"os"
	"slices"
	"strings"

	"github.com/openinof/inof/internal/setting"
)

// notSettings are variables of this project that are no settings, without the prefix: what labs
// tell their processes, where they look for things, and what tests and a build for tests read.
var notSettings = []string{
	"LAB", "LAB_DIR", "LAB_NESTED", "LAB_ROOT", "BIN_DIR", "VM_DIR",
	"NODE", "NODE_DIR", "NODE_LOG", "NODE_RUN", "NODE_STATE",
	"CLOCK_STEPS", "REQUIRE_NETNS", "SKIPPED", "SONIC_VS",
}

// UnknownVariables says which variables of the environment look like settings and are none, as
// with a typing error in their name, each with the one that it may be meant to be.
func (c *Config) UnknownVariables() (list []string) {
	if c.Given == nil {
		return nil
	}
	// The prefix is left out: it would make names near that are not.
	var settings []string
	for _, one := range Flags() {
		settings = append(settings, strings.TrimPrefix(EnvName(one.Key), variables+"_"))
	}
	known := slices.Concat(settings, notSettings)
	secret := func(from PasswordFrom) { known = append(known, strings.TrimPrefix(from.Name, variables+"_")) }
	secret(c.Session.PasswordFrom)
	for _, k := range c.BFD.Keys {
		secret(k.From)
	}
	for i, name := range settings {
		settings[i] = strings.ToLower(name) // as Nearest wants them
	}
	for _, e := range os.Environ() {
		name, value, _ := strings.Cut(e, "=")
		rest, ours := strings.CutPrefix(name, variables+"_")
		if !ours || value == "" || slices.Contains(known, rest) {
			continue
		}
		text := "environment " + name + ": no setting has this variable"
		if near := setting.Nearest(rest, settings); near != "" {
			text += ", did you mean " + variables + "_" + strings.ToUpper(near) + "?"
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}
