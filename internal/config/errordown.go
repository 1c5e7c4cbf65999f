package config

import (
	"fmt"
	"strings"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
)

// errorDownItem has the causes as errdown declares them, and exceptions for ports.
func (c *Config) errorDownItem() item {
	type exception struct{ names []string }
	ports := entries("ports", "names: [...] and any of the sections of error-down",
		"Exceptions for some ports, such as another limit where the optics are weak. Of two that name a port the first counts.",
		func() string { return exceptionsText(c.ErrorDown.Ports) },
		func(x *exception) []item {
			return []item{words("names", "names, ranges or globs, as in ports.access",
				"Which ports. The other keys of an entry are the sections above; what is not written there is as for all ports.",
				joined(&x.names), appending(&x.names, checkPort)).documented("required", asPorts)}
		}, func(e *section, x *exception) {
			if !e.has("names") {
				e.problem("names", "is missing", "a list of: names, ranges or globs, as in ports.access")
			}
			names, _ := fabric.ParseNames(x.names) // each was checked
			out := errdown.Exception{Names: names, Config: c.ErrorDown}
			out.Config.Ports = nil
			e.read(causes(&out.Config), true) // what is not written is as for all ports
			c.ErrorDown.Ports = append(c.ErrorDown.Ports, out)
		}).documented("", "a list")
	return part("error-down", append(causes(&c.ErrorDown), ports), nil)
}

// causes are the sections of error-down.
func causes(c *errdown.Config) (out []item) {
	for _, set := range c.Sections() {
		out = append(out, part(set.Name, values(set.Settings...), func(s *section) {
			if key, wrong, want := set.Together(); key != "" {
				s.problem(key, wrong, want)
			}
		}))
	}
	return out
}

func exceptionsText(list []errdown.Exception) string {
	var ports []string
	for i := range list {
		var text []string
		for key, it := range each("", causes(&list[i].Config)) {
			text = append(text, key+": "+it.Text())
		}
		ports = append(ports, fmt.Sprintf("[%s] %s", list[i].Names, strings.Join(text, ", ")))
	}
	return strings.Join(ports, "; ")
}
