package config

import (
	"bufio"
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

	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/zone"
)

// MaxZoneFileSize bounds a zone file, in bytes: more than twice what 160,000 zones with
// 320,000 memberships by address need. To read one takes up to 18 times its size, so
// that is about 1.1 GB at most.
const MaxZoneFileSize = 64 << 20

const (
	allowedMember = "an address, first-last, a prefix, an nqn., an nqn. at place, or port:device/port"
	zoneFileMode  = 0o640
)

// ParseZones reads a zone file from data; name is what errors call it. The zones
// come out in canonical order and without repeated members. AutoJoin and Hard are
// left false: they are settings, not part of the file. The error is an *Error
// with all problems.
func ParseZones(name string, data []byte, rules zone.Rules) (zone.Set, error) {
	p := newParser(name, nil)
	set := zone.Set{}
	root := p.section("", p.document(data))
	if len(p.problems) > 0 && !root.written() {
		return zone.Set{}, p.err()
	}
	lines := map[string]int{}
	root.sections("zones", "name: text, members: [...]", nil, func(e *section) {
		set.Zones = append(set.Zones, readZone(e, rules, lines))
	})
	root.close()
	if len(p.problems) == 0 {
		// What concerns the set as a whole: how many zones and members there may be.
		if err := rules.Check(set); err != nil {
			p.add(Problem{File: name, Line: 1, Column: 1, Key: "zones", What: err.Error()})
		}
	}
	if err := p.err(); err != nil {
		return zone.Set{}, err
	}
	return set.Canonical(), nil
}

// readZone reads one entry; lines remembers where each name was first seen.
func readZone(e *section, rules zone.Rules, lines map[string]int) zone.Zone {
	allowed := fmt.Sprintf("1..%d bytes, not %q", zone.MaxName, zone.DefaultName)
	z := zone.Zone{}
	name := setting.Text("name", &z.Name, "", allowed, "", func(v string) string {
		if err := zone.CheckName(v); err != nil {
			return err.Error()
		}
		if v == zone.DefaultName {
			return "is the zone that is always there; hosts in no other zone join it by themselves"
		}
		if first, dup := lines[v]; dup {
			return fmt.Sprintf("is a zone already, first in line %d", first)
		}
		lines[v] = e.values["name"].Line
		return ""
	}).Required("")
	e.readValue(&name)
	for i, n := range e.items("members", "a list of: "+allowedMember) {
		path := fmt.Sprintf("%s[%d]", e.full("members"), i)
		if !e.single(n, path, allowedMember) {
			continue
		}
		m, err := zone.ParseMember(n.Value)
		if err == nil {
			err = rules.CheckMember(m)
		}
		if err != nil {
			e.p.add(memberProblem(e.p.at(n, path), err))
			continue
		}
		z.Members = append(z.Members, m)
	}
	return z
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

// LoadZones reads the zone file at path. A file that does not exist is an error
// that wraps fs.ErrNotExist, so that a first start can tell it from an unreadable one.
func LoadZones(path string, rules zone.Rules) (zone.Set, error) {
	data, err := readLimited(path, MaxZoneFileSize)
	if err != nil {
		return zone.Set{}, fmt.Errorf("zone file: %w", err)
	}
	return ParseZones(path, data, rules)
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

// WriteZones writes a set in the form ParseZones reads: canonical, so that equal
// sets give equal bytes.
func WriteZones(w io.Writer, set zone.Set) error {
	set = set.Canonical()
	b := []byte("# Zones, written by inofd. After an edit by hand: inofctl check, then reload.\nzones:")
	if len(set.Zones) == 0 {
		b = append(b, " []"...)
	}
	b = append(b, '\n')
	for _, z := range set.Zones {
		b = append(b, "  - name: "...)
		b = appendScalar(b, z.Name)
		b = append(b, "\n    members:"...)
		if len(z.Members) == 0 {
			b = append(b, " []"...)
		}
		b = append(b, '\n')
		for _, m := range z.Members {
			b = append(b, "      - "...)
			b = appendScalar(b, m.String())
			b = append(b, '\n')
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		b = b[:0]
	}
	_, err := w.Write(b)
	return err
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

// SaveZones replaces the zone file at path at once or not at all, also over a
// power cut: a temporary file beside it is synced and renamed. The file keeps its
// permissions; a new one gets 0640. A symbolic link is followed, not replaced.
func SaveZones(path string, set zone.Set) (err error) {
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
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed, as it should
	if err := writeSynced(f, set, mode); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

func writeSynced(f *os.File, set zone.Set, mode fs.FileMode) error {
	w := bufio.NewWriter(f)
	err := WriteZones(w, set)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
