package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/testbed/labtest"
)

// inside is a path as the daemon's process sees it, which has mounts of its own.
func (p *proc) inside(path string) string {
	return filepath.Join("/proc", fmt.Sprint(p.cmd.Process.Pid), "root", path)
}

// terminate ends a daemon with SIGTERM: it must end in good order.
func (p *proc) terminate() {
	p.t.Helper()
	p.signal(unix.SIGTERM)
	if code := p.exit(); code != 0 {
		p.t.Errorf("%s ended with %d after SIGTERM", filepath.Base(p.cmd.Args[0]), code)
	}
}

// A state directory without room costs nothing but the memory over a restart: it is
// told once, counted, shown, and over when there is room. A zone that cannot be
// saved is refused.
func TestAFullStateDirectory(t *testing.T) {
	t.Parallel()
	s := newSolo(t, "full")
	d := s.daemon("mount -t tmpfs -o size=256k tmpfs " + s.state)
	s.running()
	if o := s.ctl("sw", "zone", "add", "before", "192.0.2.99"); o.code != 0 {
		t.Fatalf("zone add: %+v", o)
	}
	junk := d.inside(filepath.Join(s.state, "junk"))
	err := os.WriteFile(junk, make([]byte, 1<<20), 0o600)
	if err == nil {
		t.Fatal("the directory does not get full")
	}
	after := s.lastEvent("sw")
	labtest.Eventually(t, "a save that needs room: a small one may find it in the file as it is", func() error {
		s.stillTells()
		if s.counter("sw", "state.errors") == 0 {
			return errors.New("everything was saved")
		}
		return nil
	})
	s.awaitEvent("sw", after, "error", "state cannot be saved", s.state, "no space left on device", "a restart may repeat notices")
	s.awaitCounter("sw", "state.errors", 1)
	if w := s.status("sw").Warnings.String(); !hasAll(w, []string{"state file cannot be written", "tried again every 10s", s.state}) {
		t.Errorf("warnings %q", w)
	}
	s.ctl("sw", "zone", "add", "during", "192.0.2.98").failed(t, "zone add in a full directory",
		"the zones cannot be saved, so nothing was changed", "zones.yaml", "no space left on device")
	if n, m := s.counter("sw", "zone_file.save_errors"), s.counter("sw", "zone_file.refused"); n == 0 || m != 1 {
		t.Errorf("%d save errors and %d refused changes, want some and 1", n, m)
	}
	s.ctl("sw", "show", "zone", "during").failed(t, "show zone", `no zone "during"`)
	s.stillTells()

	if err := os.Remove(junk); err != nil {
		t.Fatal(err)
	}
	s.awaitEvent("sw", after, "state", "state is saved again", s.state)
	if o := s.ctl("sw", "zone", "add", "after", "192.0.2.97"); o.code != 0 {
		t.Errorf("zone add with room: %+v", o)
	}
	labtest.Eventually(t, "the warnings to be over: each file of the state is tried again at a time of its own", func() error {
		if w := s.status("sw").Warnings; len(w) != 0 {
			return fmt.Errorf("warnings %q", w)
		}
		return nil
	})
	s.stillTells()
	d.terminate()
}

// The same with directories that cannot be written at all, from the start.
func TestAStateDirectoryThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, before string
		state        func(s *solo) string
		words        []string
	}{
		{"readonly", "mount -t tmpfs -o ro tmpfs STATE", func(s *solo) string { return s.state }, []string{"read-only file system"}},
		{"nodir", "", func(*solo) string { return "/proc/nobody/makes/this" }, []string{"no such file or directory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSolo(t, c.name)
			s.state = c.state(s)
			s.configure(s.conf, s.state, s.socket("sw"))
			d := s.daemon(strings.ReplaceAll(c.before, "STATE", s.state))
			s.running()
			s.awaitEvent("sw", 0, "error", append(c.words, s.state)...)
			s.awaitEvent("sw", 0, "error", append(c.words, "state cannot be saved", s.state)...)
			s.awaitCounter("sw", "state.errors", 1)
			if w := s.status("sw").Warnings.String(); !hasAll(w, []string{"state file cannot be written", "tried again every 10s", s.state}) {
				t.Errorf("warnings %q", w)
			}
			s.ctl("sw", "zone", "add", "blue", "192.0.2.98").failed(t, "zone add", append(c.words, "so nothing was changed")...)
			s.stillTells()
			d.terminate()
		})
	}
}

// A second daemon keeps off what the first one uses, says what that is, and does the
// first one no harm.
func TestASecondDaemonKeepsOff(t *testing.T) {
	t.Parallel()
	s := newSolo(t, "second")
	first := s.daemon("")
	s.running()
	since := s.marks("i", "t")
	other := filepath.Join(s.dir, "other")
	for _, c := range []struct {
		name, state, socket string
		words               []string
	}{
		{"same state directory", s.state, filepath.Join(s.dir, "other.sock"),
			[]string{"state directory " + s.state, fmt.Sprintf("(pid %d)", first.cmd.Process.Pid), "another inofd is using it", "configure another state-directory"}},
		{"same socket", other, s.socket("sw"), []string{"management socket " + s.socket("sw"), "another daemon is listening there"}},
		{"no socket", other, s.conf, []string{"management socket " + s.conf, "not a socket"}},
		{"socket below a file", other, s.conf + "/sock", []string{"management socket", s.conf, "not a directory"}},
	} {
		conf := s.path("second.yaml")
		s.configure(conf, c.state, c.socket)
		p := s.launchIn("sw", nil, suite.Program(t, "inofd"), "run", "-c", conf)
		if code := p.exit(); code != 1 || !hasLine(p.stderr(), c.words) {
			t.Errorf("%s: exit code %d, it said %q, want 1 and %q", c.name, code, p.stderr(), c.words)
		}
		if first.cmd.ProcessState != nil {
			t.Fatalf("%s: the first daemon has ended", c.name)
		}
	}
	s.stillTells()
	for _, n := range s.notices("i", since["i"]) {
		if n.Subject != target {
			t.Errorf("i was told %v", n)
		}
	}
	// What a killed daemon leaves behind keeps nobody off.
	s.keptBy("sw", 2)
	first.signal(unix.SIGKILL)
	first.exit()
	if _, err := os.Stat(s.socket("sw")); err != nil {
		t.Errorf("the test needs the socket that was left behind: %v", err)
	}
	second := s.daemon("")
	labtest.Eventually(t, "the next daemon to answer", func() error { _, err := s.tryStatus("sw"); return err })
	s.stillTells()
	second.terminate()
	if _, err := os.Stat(s.socket("sw")); err == nil {
		t.Error("a daemon that ended in good order left its socket behind")
	}
}

// A second reflector on the same port says so and ends.
func TestASecondReflectorOnTheSamePort(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "sameport"})
	conf := strings.NewReplacer("${INOF_NODE_STATE}", f.path("other-state"), "${INOF_NODE_RUN}", f.dir).Replace(f.switchConfig("spine"))
	f.write("other.yaml", conf)
	p := f.launchIn("spine", nil, suite.Program(t, "inofd"), "run", "-c", f.path("other.yaml"))
	if code := p.exit(); code != 1 || !hasLine(p.stderr(), []string{"inofd:", "10.0.0.1:19516", "address already in use"}) {
		t.Errorf("exit code %d, it said %q", code, p.stderr())
	}
	f.stillTells()
}
