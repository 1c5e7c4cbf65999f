package config

import (
	"fmt"
	"net"
	"path"
	"path/filepath"
	"strings"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/setting"
)

// readErrorDown reads the causes, as errdown declares them.
func readErrorDown(c *Config, s *section) {
	defer s.close()
	readCauses(&c.ErrorDown, s, (*section).read)
	s.sections("ports", "[]", "names: [...] and any of the sections of error-down", func(e *section) {
		allowed := "names, ranges or globs, as in ports.access"
		names, _ := fabric.ParseNames(e.list("names", "required", allowed, checkPort)) // each was checked
		if _, ok := e.values["names"]; !ok {
			e.problem("names", "is missing", "a list of: "+allowed)
		}
		// The keys of an exception are those of the section, where they are documented; what
		// is not written there is as for all ports.
		keys := len(s.p.keys)
		x := errdown.Exception{Names: names, Config: c.ErrorDown}
		x.Config.Ports = nil
		readCauses(&x.Config, e, (*section).set)
		c.ErrorDown.Ports = append(c.ErrorDown.Ports, x)
		s.p.keys = s.p.keys[:keys]
	})
}

func readCauses(c *errdown.Config, s *section, read func(*section, []setting.Setting)) {
	for _, set := range c.Sections() {
		sub := s.sub(set.Name)
		read(sub, set.Settings)
		if key, wrong, want := set.Together(); key != "" {
			sub.problem(key, wrong, want)
		}
		sub.close()
	}
}

// errorDownSettings lists everything of error-down; exceptions for ports are one setting.
func errorDownSettings(c *errdown.Config) []Setting {
	var ports []string
	for i := range c.Ports {
		p := &c.Ports[i]
		var text []string
		for _, s := range causeSettings("", &p.Config) {
			text = append(text, s.Key+": "+s.Value)
		}
		ports = append(ports, fmt.Sprintf("[%s] %s", p.Names, strings.Join(text, ", ")))
	}
	return append(causeSettings("error-down.", c), Setting{Key: "error-down.ports", Value: strings.Join(ports, "; ")})
}

func causeSettings(prefix string, c *errdown.Config) (out []Setting) {
	for _, set := range c.Sections() {
		out = append(out, effective(prefix+set.Name+".", set.Settings)...)
	}
	return out
}

func checkRedis(v string) string {
	if _, _, err := net.SplitHostPort(v); v == "off" || err == nil || filepath.IsAbs(v) && len(v) <= maxSocketPath {
		return ""
	}
	return "is no address of a Redis server"
}

// maxCounterName is the longest name a driver's counter can have in bytes.
const maxCounterName = 31

func readCounterNames(c *Config, s *section) {
	const fields = "crc, broadcast, multicast, pause, pause-time or tx-frames"
	s.sections("counters", "[]", "field: "+fields+", name: a driver's name for it", func(e *section) {
		n := fabric.CounterName{Driver: e.text("driver", "*", "a driver's name or glob", func(v string) string {
			if _, err := path.Match(v, ""); err != nil {
				return "is not a valid glob"
			}
			return ""
		})}
		field := e.choice("field", "required", "crc", "broadcast", "multicast", "pause", "pause-time", "tx-frames")
		n.Name = e.text("name", "required", fmt.Sprintf("1..%d bytes, # for the priority", maxCounterName),
			func(v string) string { return checkName(v, maxCounterName) })
		for _, key := range []string{"field", "name"} {
			if _, ok := e.values[key]; !ok {
				e.problem(key, "is missing", "a driver's counter and what it counts")
				return
			}
		}
		f, err := fabric.ParseField(field)
		if err != nil {
			return // reported
		}
		if prio := f&fabric.FieldsOfPFC != 0; prio != strings.Contains(n.Name, "#") {
			e.problem("name", "does not fit the field "+field, "exactly one # for counters by priority, none for others")
			return
		}
		if strings.HasPrefix(n.Name, fabric.KernelCounter) && (f != fabric.FieldCRC || n.Name != fabric.KernelRxErrors && n.Name != fabric.KernelRxDropped) {
			e.problem("name", "is no link statistic that can stand for "+field, fabric.KernelRxErrors+" or "+fabric.KernelRxDropped+" for crc, or a driver's counter")
			return
		}
		n.Field = f
		c.Ports.Counters = append(c.Ports.Counters, n)
	})
}
