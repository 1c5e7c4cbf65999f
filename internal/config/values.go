package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/internal/setting"
	"go.yaml.in/yaml/v3"
)

// scalar gives a key's text, the environment before the file; ok is false when
// neither has one or the file's is not a single value (which is then reported).
func (s *section) scalar(name, def, allowed string) (text string, ok bool) {
	s.p.keys = append(s.p.keys, key{s.full(name), def, allowed})
	n := s.take(name)
	if !strings.Contains(s.path, "[") {
		if v := s.p.env(s.envName(name)); v != "" {
			return v, true
		}
	}
	if n == nil {
		if _, empty := s.values[name]; empty {
			s.problem(name, "has no value", allowed)
		}
		return "", false
	}
	if !s.single(n, s.full(name), allowed) {
		return "", false
	}
	return n.Value, true
}

// read reads settings that are declared; what is not written has its default.
func (s *section) read(list []setting.Setting) {
	for i := range list {
		list[i].Reset()
	}
	s.set(list)
}

// set reads settings that are declared; what is not written stays as it is.
func (s *section) set(list []setting.Setting) {
	for i := range list {
		one := &list[i]
		if v, ok := s.scalar(one.Key, one.Default, one.Allowed); ok {
			if wrong := one.Read(v); wrong != "" {
				s.problem(one.Key, wrong, one.Allowed)
			}
		}
	}
}

// single tells whether n is one plain value, and reports it if not.
func (s *section) single(n *yaml.Node, path, allowed string) bool {
	pr := s.p.at(n, path)
	pr.Allowed = allowed
	switch {
	case n.Kind != yaml.ScalarNode:
		pr.What = "is " + kindOf(n) + ", not a single value"
	case n.Style&yaml.TaggedStyle != 0:
		pr.What = "has the YAML tag " + shorten(n.Tag) + ", tags are not read"
		if n.Value == "" { // a text that begins with !
			pr.What += fmt.Sprintf("; put it in quotes: %q", shorten(n.Tag))
		}
	default:
		return true
	}
	s.p.add(pr)
	return false
}

// text reads a string; check (may be nil) says what is wrong with it, or nothing.
func (s *section) text(name, def, allowed string, check func(string) string) string {
	v, ok := s.scalar(name, def, allowed)
	if !ok {
		return def
	}
	if check != nil {
		if what := check(v); what != "" {
			s.problem(name, what, allowed)
			return def
		}
	}
	return v
}

func (s *section) choice(name, def string, options ...string) string {
	return s.text(name, def, strings.Join(options, ", "), func(v string) string {
		if slices.Contains(options, v) {
			return ""
		}
		if near := setting.Nearest(v, options); near != "" {
			return fmt.Sprintf("is not a known value, did you mean %q?", near)
		}
		return "is not a known value"
	})
}

func (s *section) boolean(name string, def bool) bool {
	const allowed = "true, false"
	v, ok := s.scalar(name, strconv.FormatBool(def), allowed)
	if !ok {
		return def
	}
	if v != "true" && v != "false" {
		s.problem(name, "is neither true nor false", allowed)
		return def
	}
	return v == "true"
}

func (s *section) number(name string, def, least, most int) int {
	allowed := fmt.Sprintf("a whole number %d..%d", least, most)
	v, ok := s.scalar(name, strconv.Itoa(def), allowed)
	if !ok {
		return def
	}
	n, err := strconv.Atoi(v)
	switch {
	case err != nil:
		s.problem(name, "is not a whole number", allowed)
	case n < least:
		s.problem(name, "is too small", allowed)
	case n > most:
		s.problem(name, "is too large", allowed)
	default:
		return n
	}
	return def
}

// duration reads a time span. With off, the word "off" is allowed and means 0.
func (s *section) duration(name string, def, least, most time.Duration, off bool) time.Duration {
	allowed := setting.Duration(least) + ".." + setting.Duration(most)
	defText := setting.Duration(def)
	if off {
		allowed = "off, " + allowed
		if def == 0 {
			defText = "off"
		}
	}
	v, ok := s.scalar(name, defText, allowed)
	if !ok {
		return def
	}
	if off && v == "off" {
		return 0
	}
	d, err := time.ParseDuration(v)
	switch {
	case err != nil:
		what := "is not a time span"
		if _, err := strconv.ParseFloat(v, 64); err == nil {
			what = "has no unit (ms, s, m or h)"
		}
		s.problem(name, what, allowed)
	case d < least:
		s.problem(name, "is too short", allowed)
	case d > most:
		s.problem(name, "is too long", allowed)
	default:
		return d
	}
	return def
}

// allowedAddr is what errors about addresses of devices say.
const allowedAddr = "an IPv4 or IPv6 unicast address, not loopback (unless device.allow-loopback), link-local, multicast or unspecified"

// checkAddr says what keeps a from being a device's or host's service address.
func checkAddr(a netip.Addr, loopback bool) string {
	switch {
	case a.Zone() != "":
		return "has a scope zone"
	case a.Is4In6():
		return "is an IPv4 address in IPv6 form"
	case a.IsUnspecified():
		return "is the unspecified address"
	case a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "is a group address"
	case a.IsLinkLocalUnicast():
		return "is a link-local address"
	case a.IsLoopback() && !loopback:
		return "is a loopback address"
	}
	return ""
}

// addr reads an address; the zero value when there is none or it is wrong.
func (s *section) addr(name, def string, loopback bool) netip.Addr {
	v, ok := s.scalar(name, def, allowedAddr)
	if !ok {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(v)
	if err != nil {
		s.problem(name, "is not an IP address", allowedAddr)
		return netip.Addr{}
	}
	if what := checkAddr(a, loopback); what != "" {
		s.problem(name, what, allowedAddr)
		return netip.Addr{}
	}
	return a
}

// items gives the elements of a list; anything else is reported.
func (s *section) items(name, def, allowed string) []*yaml.Node {
	s.p.keys = append(s.p.keys, key{s.full(name), def, allowed})
	n := s.take(name)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		pr := s.p.at(n, s.full(name))
		pr.What, pr.Allowed = "is "+kindOf(n)+", not a list", allowed
		if n.Kind == yaml.ScalarNode {
			pr.What += fmt.Sprintf(": write [%s]", shorten(n.Value))
		}
		s.p.add(pr)
		return nil
	}
	out := make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out[i] = resolve(c)
	}
	return out
}

// list reads a list of single values. each says what is wrong with one, or
// nothing; a value given twice is reported too.
func (s *section) list(name, def, allowed string, each func(string) string) (values []string) {
	seen := map[string]int{}
	for i, n := range s.items(name, def, "a list of: "+allowed) {
		path := fmt.Sprintf("%s[%d]", s.full(name), i)
		if isNull(n) {
			n.Value = ""
		}
		if !s.single(n, path, allowed) {
			continue
		}
		what := "is empty"
		if n.Value != "" {
			what = each(n.Value)
		}
		if first, dup := seen[n.Value]; dup && what == "" {
			what = fmt.Sprintf("is listed twice, first in line %d", first)
		}
		if what != "" {
			pr := s.p.at(n, path)
			pr.What, pr.Allowed = what, allowed
			s.p.add(pr)
			continue
		}
		seen[n.Value] = n.Line
		values = append(values, n.Value)
	}
	return values
}

// sections reads a list of mappings.
func (s *section) sections(name, def, allowed string, each func(*section)) {
	for i, n := range s.items(name, def, "a list of: "+allowed) {
		path := fmt.Sprintf("%s[%d]", s.full(name), i)
		if isNull(n) || n.Kind != yaml.MappingNode {
			pr := s.p.at(n, path)
			pr.What, pr.Allowed = "is "+kindOf(n)+", not an entry with keys", allowed
			s.p.add(pr)
			continue
		}
		sub := s.p.section(path, n)
		each(sub)
		sub.close()
	}
}
