package config

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/internal/wholefile"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// MaxZoneFileSize bounds a zone file, in bytes: more than twice what 160,000 zones with
// 320,000 memberships by address need.
const MaxZoneFileSize = 64 << 20

// maxZoneEntries bounds the lines and commas of a zone file, half as many again as those 160,000
// zones and 320,000 memberships need. What a parser takes depends on them, not on the bytes: some
// 400 bytes each.
const maxZoneEntries = 1_000_000

// entriesOf counts what separates entries: commas, and what YAML takes for a line break.
func entriesOf(data []byte) int {
	n := -bytes.Count(data, []byte("\r\n"))
	for _, sep := range []string{",", "\n", "\r", "\u0085", "\u2028", "\u2029"} {
		n += bytes.Count(data, []byte(sep))
	}
	return n
}

const (
	allowedMember = "an address, first-last, a prefix, an nqn., an nqn. at place, port:device/port, or alias:name"
	zoneFileMode  = 0o640
)

// ParseZones is ParsePlan for who only wants to know which zones are in force, in canonical order
// and without repeated members. AutoJoin and Hard are left false: they are settings, not
// part of the file.
func ParseZones(name string, data []byte, rules zone.Rules) (zone.Set, error) {
	p, _, err := ParsePlan(name, data, rules)
	if err != nil {
		return zone.Set{}, err
	}
	return p.InForce(), nil
}

// ParsePlan reads a zone file from data, or a candidate for one; name is what errors call it. Base
// is the version that a candidate was made from, empty: none is named. The error is an
// *Error with all problems.
func ParsePlan(name string, data []byte, rules zone.Rules) (plan *change.Plan, base string, err error) {
	p := newParser(name, nil)
	if n := entriesOf(data); n > maxZoneEntries {
		p.add(Problem{File: name, Line: 1, Column: 1, Key: "zones", What: fmt.Sprintf("the file has %d lines and commas, at most %d", n, maxZoneEntries)})
		return nil, "", p.err()
	}
	root := p.section("", p.document(data))
	if len(p.problems) > 0 && !root.written() {
		return nil, "", p.err()
	}
	f := zoneFile{rules: rules, plan: &change.Plan{Zones: map[string]change.Zone{}}}
	root.sections("aliases", "name: text, members: [...]", nil, f.alias)
	root.sections("zones", "name: text, members: [...]", nil, f.zone)
	root.sections("zone-sets", "name: text, zones: [...]", nil, f.set)
	active := setting.Text("active", &f.plan.Active, "", "the name of a zone set", "", func(v string) string {
		if _, ok := f.plan.Sets[v]; !ok && v != "" {
			return "is no zone set of this file"
		}
		return ""
	})
	from := setting.Text("base", &base, "", "what inofctl zone edit wrote there", "", nil)
	root.readValue(&active)
	root.readValue(&from)
	root.close()
	if len(p.problems) == 0 {
		// What concerns the plan as a whole: how much there may be.
		if err := f.plan.Check(rules); err != nil {
			p.add(Problem{File: name, Line: 1, Column: 1, Key: "zones", What: err.Error()})
		}
	}
	if err := p.err(); err != nil {
		return nil, "", err
	}
	return f.plan, base, nil
}

// zoneFile reads the entries of a zone file.
type zoneFile struct {
	rules                zone.Rules
	plan                 *change.Plan
	aliases, zones, sets map[string]int // the lines in which they begin
}

// name reads the name of an entry, which no other one of its kind has.
func (f *zoneFile) name(e *section, kind string, lines *map[string]int) (name string) {
	if *lines == nil {
		*lines = map[string]int{}
	}
	v := setting.Text("name", &name, "", fmt.Sprintf("1..%d bytes, not %q", zone.MaxName, zone.DefaultName), "", func(v string) string {
		if err := zone.CheckName(v); err != nil {
			return err.Error()
		}
		if v == zone.DefaultName && kind == "zone" {
			return "is the zone that is always there; hosts in no other zone join it by themselves"
		}
		if first, dup := (*lines)[v]; dup {
			return fmt.Sprintf("is a %s already, first in line %d", kind, first)
		}
		(*lines)[v] = e.values["name"].Line
		return ""
	}).Required("")
	e.readValue(&v)
	return name
}

func (f *zoneFile) alias(e *section) {
	name := f.name(e, "alias", &f.aliases)
	f.plan.PutAlias(name, f.members(e, nil))
}

func (f *zoneFile) zone(e *section) {
	name := f.name(e, "zone", &f.zones)
	z := change.Zone{}
	z.Members = f.members(e, func(n *yaml.Node, path, alias string) {
		if _, ok := f.plan.Aliases[alias]; !ok {
			pr := e.p.at(n, path)
			pr.What, pr.Allowed = "is no alias of this file", "alias: and the name of one"
			e.p.add(pr)
		}
		z.Aliases = append(z.Aliases, alias)
	})
	f.plan.PutZone(name, z)
}

// members reads the members of an entry; aliases go to alias, nil: there may be none.
func (f *zoneFile) members(e *section, alias func(n *yaml.Node, path, name string)) (out []zone.Member) {
	for i, n := range e.items("members", "a list of: "+allowedMember) {
		path := fmt.Sprintf("%s[%d]", e.full("members"), i)
		if !e.single(n, path, allowedMember) {
			continue
		}
		if name, ok := strings.CutPrefix(n.Value, change.AliasPrefix); ok && alias != nil {
			alias(n, path, name)
			continue
		}
		m, err := zone.ParseMember(n.Value)
		if err == nil {
			err = f.rules.CheckMember(m)
		}
		if err != nil {
			e.p.add(memberProblem(e.p.at(n, path), err))
			continue
		}
		out = append(out, m)
	}
	return out
}

func (f *zoneFile) set(e *section) {
	name := f.name(e, "zone set", &f.sets)
	var zones []string
	for i, n := range e.items("zones", "a list of names of zones") {
		path := fmt.Sprintf("%s[%d]", e.full("zones"), i)
		if !e.single(n, path, "the name of a zone") {
			continue
		}
		if _, ok := f.plan.Zones[n.Value]; !ok {
			pr := e.p.at(n, path)
			pr.What, pr.Allowed = "is no zone of this file", "the name of a zone"
			e.p.add(pr)
		}
		zones = append(zones, n.Value)
	}
	f.plan.PutSet(name, zones)
}

// memberProblem fills in why a member is wrong without naming it twice.
func memberProblem(pr Problem, err error) Problem {
	pr.What, pr.Allowed = err.Error(), allowedMember
	var m *zone.MemberError
	if errors.As(err, &m) {
		pr.What = m.Problem
		if m.Want != "" {
			pr.Allowed = m.Want
		}
	}
	return pr
}

// LoadZones is LoadPlan for who only wants to know which zones are in force.
func LoadZones(path string, rules zone.Rules) (zone.Set, error) {
	p, _, err := LoadPlan(path, rules)
	if err != nil {
		return zone.Set{}, err
	}
	return p.InForce(), nil
}

// LoadPlan reads the zone file at path, or a candidate for one. A file that does not exist is an
// error that wraps fs.ErrNotExist, so that a first start can tell it from an unreadable one.
func LoadPlan(path string, rules zone.Rules) (plan *change.Plan, base string, err error) {
	data, err := readLimited(path, MaxZoneFileSize)
	if err != nil {
		return nil, "", fmt.Errorf("zone file: %w", err)
	}
	return ParsePlan(path, data, rules)
}

// ZoneFileSum is the digest of the bytes of a zone file, to tell later whether somebody
// has changed it; zero when there is no file.
func ZoneFileSum(path string) (sum [sha256.Size]byte, err error) {
	data, err := readLimited(path, MaxZoneFileSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sum, nil
	case err != nil:
		return sum, fmt.Errorf("zone file: %w", err)
	}
	return sha256.Sum256(data), nil
}

// WriteZones writes a set in the form ParseZones reads.
func WriteZones(w io.Writer, set zone.Set) error { return WritePlan(w, change.PlanOf(set), "") }

// WritePlan writes a plan in the form ParsePlan reads: canonical, so that equal plans give equal
// bytes. With a base it is a candidate.
func WritePlan(w io.Writer, p *change.Plan, base string) error {
	d := p.Document()
	out := bufio.NewWriter(w) // its error stays
	if base == "" {
		out.WriteString("# Zones, written by inofd. After an edit by hand: inofctl check, then reload.\n")
	} else {
		fmt.Fprintf(out, "# A candidate: inofctl zone check, diff, impact and commit take this file.\nbase: %q\n", base)
	}
	entries := func(key, list string, n int, entry func(int) (string, []string)) {
		out.WriteString(key + ":")
		if n == 0 {
			out.WriteString(" []")
		}
		out.WriteByte('\n')
		for i := range n {
			name, values := entry(i)
			b := appendScalar([]byte("  - name: "), name)
			b = append(b, "\n    "+list+":"...)
			if len(values) == 0 {
				b = append(b, " []"...)
			}
			for _, v := range values {
				b = appendScalar(append(b, "\n      - "...), v)
			}
			out.Write(append(b, '\n'))
		}
	}
	if len(d.Aliases) > 0 {
		entries("aliases", "members", len(d.Aliases), func(i int) (string, []string) { return d.Aliases[i].Name, d.Aliases[i].Members })
	}
	entries("zones", "members", len(d.Zones), func(i int) (string, []string) { return d.Zones[i].Name, d.Zones[i].Members })
	if len(d.Sets) > 0 {
		entries("zone-sets", "zones", len(d.Sets), func(i int) (string, []string) { return d.Sets[i].Name, d.Sets[i].Zones })
	}
	if d.Active != "" {
		out.Write(append(appendScalar([]byte("active: "), d.Active), '\n'))
	}
	return out.Flush()
}

// plain is what can stand in YAML without quotes, unless it is one of the words
// or could be one of the numbers that YAML takes for something else than a string.
var (
	plain     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]*[A-Za-z0-9]$`)
	yamlWords = regexp.MustCompile(`(?i)^(null|true|false|yes|no|on|off)$`)
)

// appendScalar appends a YAML string, in quotes (JSON's are YAML's) where it needs them.
func appendScalar(b []byte, s string) []byte {
	address := strings.Count(s, ".") >= 3 || strings.Contains(s, "::")
	letter := s != "" && s[0] >= 'A'
	if plain.MatchString(s) && !yamlWords.MatchString(s) && (letter || address) {
		return append(b, s...)
	}
	text, err := json.Marshal(s)
	if err != nil { // cannot be: it is a string
		return append(b, `""`...)
	}
	return append(b, text...)
}

// SavePlan replaces the zone file at path at once or not at all, also over a
// power cut: a temporary file beside it is synced and renamed. The file keeps its
// permissions; a new one gets 0640. A symbolic link is followed, not replaced.
func SavePlan(path string, plan *change.Plan) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("saving zones to %s: %w", path, err)
		}
	}()
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(zoneFileMode)
	if st, err := os.Stat(path); err == nil {
		mode = st.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return wholefile.Write(path, mode, func(f *os.File) error { return WritePlan(f, plan, "") })
}
