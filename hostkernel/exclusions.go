package hostkernel

import (
	"bufio"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Exclusions say what nobody shall connect to: /etc/nvme/exclusions.conf and the files of
// exclusions.conf.d, as libnvme reads them.
type Exclusions []map[string]string

const (
	exclusionsFile = "etc/nvme/exclusions.conf"
	exclusionsDir  = "etc/nvme/exclusions.conf.d"
	maxExclusions  = 1 << 20 // bytes of a file
)

var exclusionKeys = map[string]bool{"transport": true, "traddr": true, "trsvcid": true, "nqn": true, "host-traddr": true, "host-iface": true, "hostnqn": true, "hostid": true}

// Exclusions reads them anew. A file that cannot be read excludes nothing, and is told.
func (t Tree) Exclusions() (Exclusions, error) {
	files := []string{t.path(exclusionsFile)}
	more, _ := filepath.Glob(t.path(exclusionsDir, "*.conf"))
	var all Exclusions
	var errs []error
	for _, name := range append(files, more...) {
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || len(b) > maxExclusions {
			errs = append(errs, errors.Join(err, errors.New(name+" excludes nothing")))
			continue
		}
		all = append(all, parseExclusions(string(b))...)
	}
	return all, errors.Join(errs...)
}

func parseExclusions(text string) Exclusions {
	var all Exclusions
	in, section := bufio.NewScanner(strings.NewReader(text)), ""
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			section = line
		case section == "[exclusions]":
			key, value, ok := strings.Cut(line, "=")
			if !ok || strings.TrimSpace(key) != "exclusion" {
				continue
			}
			if e := parseExclusion(value); e != nil {
				all = append(all, e)
			}
		}
	}
	return all
}

// parseExclusion gives nil for a line with a key that is not known: it never matches.
func parseExclusion(value string) map[string]string {
	e := map[string]string{}
	for pair := range strings.SplitSeq(value, ";") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		k, v, ok := strings.Cut(pair, "=")
		k = strings.TrimSpace(k)
		if !ok || !exclusionKeys[k] {
			return nil
		}
		e[k] = strings.TrimSpace(v)
	}
	if len(e) == 0 {
		return nil
	}
	return e
}

// Match reports whether a connection is excluded: all fields of one line agree with it, addresses
// as numbers.
func (x Exclusions) Match(c *Connect) bool {
	have := map[string]string{"transport": c.Transport, "traddr": c.Target.Addr().String(), "trsvcid": strconv.Itoa(int(c.Target.Port())),
		"nqn": c.NQN, "host-traddr": c.Source.String(), "host-iface": c.Iface, "hostnqn": c.HostNQN, "hostid": c.HostID}
	for _, e := range x {
		all := true
		for k, v := range e {
			if strings.HasSuffix(k, "traddr") {
				if a, err := netip.ParseAddr(v); err == nil {
					v = a.Unmap().String()
				}
			}
			all = all && have[k] == v
		}
		if all {
			return true
		}
	}
	return false
}
