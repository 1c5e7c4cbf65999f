package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Limit is a memory limit. The zero value is none.
type Limit struct {
	Bytes uint64
	File  string // that says so
}

// noLimit is what version 1 shows for none, and more: its largest page counter is 2^63 less a page.
const noLimit = 1 << 60

// MemoryLimit reads the limit. What is not there, such as control groups at all, is no limit.
func MemoryLimit() (Limit, error) { return memoryLimit("/") }

// memoryLimit is MemoryLimit of a tree of files that stands for the root directory.
func memoryLimit(root string) (Limit, error) {
	paths, err := groups(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return Limit{}, err
	}
	mounts, err := mountsOf(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return Limit{}, err
	}
	var least Limit
	for _, m := range mounts {
		at, ok := paths[m.version]
		if !ok {
			continue
		}
		l, err := m.least(root, at)
		if err != nil {
			return Limit{}, err
		}
		if l.Bytes > 0 && (least.Bytes == 0 || l.Bytes < least.Bytes) {
			least = l
		}
	}
	return least, nil
}

// version of control groups, and the file with the limit there.
type version int

func (v version) file() string {
	if v == 1 {
		return "memory.limit_in_bytes"
	}
	return "memory.max"
}

// groups reads which group the process is in (cgroups(7)): lines of ID:CONTROLLERS:PATH.
func groups(file string) (map[version]string, error) {
	paths := map[version]string{}
	err := eachLine(file, func(line string) {
		f := strings.SplitN(line, ":", 3)
		switch {
		case len(f) != 3:
		case f[0] == "0" && f[1] == "":
			paths[2] = f[2]
		case listed(f[1], "memory"):
			paths[1] = f[2]
		}
	})
	return paths, err
}

// mount is a mounted hierarchy with memory limits: root is the group that point shows.
type mount struct {
	version     version
	root, point string
}

// mountsOf reads proc_pid_mountinfo(5): root and mount point are the fourth and fifth field, type
// and options of the file system the first and third behind " - ".
func mountsOf(file string) (list []mount, err error) {
	err = eachLine(file, func(line string) {
		before, after, _ := strings.Cut(line, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if len(f) < 5 || len(kind) < 3 {
			return
		}
		m := mount{root: unescape(f[3]), point: unescape(f[4])}
		switch {
		case kind[0] == "cgroup2":
			m.version = 2
		case kind[0] == "cgroup" && listed(kind[2], "memory"):
			m.version = 1
		default:
			return
		}
		list = append(list, m)
	})
	return list, err
}

// least reads the limits of a group and of those above it, as far as they are mounted.
func (m mount) least(root, at string) (least Limit, err error) {
	below, ok := strings.CutPrefix(path.Clean(at)+"/", strings.TrimSuffix(m.root, "/")+"/")
	if !ok || strings.HasPrefix(at, "/..") { // a group outside of what this namespace shows
		below = ""
	}
	for dir := path.Join("/", below); ; dir = path.Dir(dir) {
		file := path.Join(m.point, dir, m.version.file())
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Limit{}, fmt.Errorf("memory limit: %w", err)
		}
		if v := strings.TrimSpace(string(b)); err == nil && v != "max" {
			n, err := strconv.ParseUint(v, 10, 64)
			if err != nil {
				return Limit{}, fmt.Errorf("memory limit: %s: %q is no number of bytes", file, v)
			}
			if n < noLimit && (least.Bytes == 0 || n < least.Bytes) {
				least = Limit{n, file}
			}
		}
		if dir == "/" {
			return least, nil
		}
	}
}

func eachLine(file string, do func(string)) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("memory limit: %w", err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		do(s.Text())
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("memory limit: %s: %w", file, err)
	}
	return nil
}

func listed(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// unescape takes the octal escapes out of a path of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
