package units

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/labtest"
)

// The image has three programs that need nothing else, and they run from nothing but its tree.
func TestContainerImage(t *testing.T) {
	labtest.RequireNetns(t)
	tree := filepath.Join(t.TempDir(), "tree")
	run := exec.Command("../../scripts/image", tree)
	run.Env = append(os.Environ(), "BUILDER=")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("scripts/image: %v\n%s", err, out)
	}
	t.Run("its tree", func(t *testing.T) { imageTree(t, tree) })
	t.Run("a daemon that is killed in it", func(t *testing.T) { killedInImage(t, tree) })
	t.Run("built", func(t *testing.T) { builtImage(t, tree) })
}

func imageTree(t *testing.T, tree string) {
	var programs []string
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, _ := filepath.Rel(tree, path)
		f, err := elf.Open(path)
		if err != nil {
			return nil // a file of /etc
		}
		defer f.Close()
		programs = append(programs, name)
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				t.Errorf("%s needs a dynamic linker", name)
			}
		}
		return nil
	})
	if err != nil || !slices.Equal(programs, []string{"usr/bin/inofctl", "usr/sbin/inofd", "usr/sbin/snsd"}) {
		t.Errorf("programs %v, %v", programs, err)
	}
}

// killedInImage runs the tree as a container would: as its root, with its entry point.
func killedInImage(t *testing.T, tree string) {
	if err := os.WriteFile(filepath.Join(tree, "etc/inof/inofd.yaml"), []byte("device: {id: 192.0.2.1}\nports: {access: [eth1]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(tree, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	inside := func(args ...string) *exec.Cmd {
		c := exec.Command("chroot", append([]string{tree}, args...)...)
		c.Env = []string{"PATH=/usr/sbin:/usr/bin"}
		return c
	}
	// A network and processes of its own; the first process is the entry point.
	script := `mount -t proc proc "$1/proc" && exec chroot "$1" /usr/bin/inofctl container inofd run`
	box := exec.Command("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount", "sh", "-c", script, "sh", tree)
	box.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	var said bytes.Buffer
	box.Stdout, box.Stderr = &said, &said
	if err := box.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- box.Wait() }()
	t.Cleanup(func() { _ = box.Process.Kill() })
	pid := 0
	answers := func(not int) func() error {
		return func() error {
			out, err := inside("/usr/bin/inofctl", "show", "status", "-o", "json").Output()
			if err != nil {
				return err
			}
			var s struct{ PID int }
			if err := json.Unmarshal(out, &s); err != nil {
				return err
			}
			if pid = s.PID; pid == not {
				return errors.New("the killed daemon still answers")
			}
			return nil
		}
	}
	labtest.Eventually(t, "an answer of the daemon", answers(0))
	first := pid
	if err := unix.Kill(hostPID(t, box.Process.Pid, first), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, "an answer of the next daemon", answers(first))
	entry := hostPID(t, box.Process.Pid, 1)
	if err := unix.Kill(entry, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("told to end: %v\n%s", err, said.String())
	}
	if !strings.Contains(said.String(), "inofd ended (killed); again in 200ms") {
		t.Errorf("the end of the daemon is not told: %s", said.String())
	}
}

// hostPID gives the process that has a number in the namespace of a process's children.
func hostPID(t *testing.T, parent, inner int) int {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	space := ""
	if kids, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent)); err == nil {
		space, _ = os.Readlink("/proc/" + strings.Fields(string(kids))[0] + "/ns/pid")
	}
	for _, file := range all {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if at, _ := os.Readlink(filepath.Join(filepath.Dir(file), "ns/pid")); at != space {
			continue
		}
		for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
			if f := strings.Fields(lines.Text()); len(f) > 2 && f[0] == "NSpid:" && f[len(f)-1] == fmt.Sprint(inner) {
				var pid int
				_, _ = fmt.Sscan(filepath.Base(filepath.Dir(file)), &pid)
				return pid
			}
		}
	}
	t.Fatalf("no process has the number %d in the container", inner)
	return 0
}

// builtImage has a builder make the image, with the label that SONiC reads.
func builtImage(t *testing.T, tree string) {
	netnstest.Programs(t, "buildah")
	root := t.TempDir()
	args := []string{"--storage-driver", "vfs", "--root", filepath.Join(root, "root"), "--runroot", filepath.Join(root, "run")}
	run := exec.Command("../../scripts/image", filepath.Join(root, "tree"))
	run.Env = append(os.Environ(), "BUILDER=buildah", "BUILDFLAGS=--isolation chroot "+strings.Join(args, " "))
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("scripts/image: %v\n%s", err, out)
	}
	out, err := exec.Command("buildah", append(args, "inspect", "--type", "image", "inof:latest")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var image struct {
		OCIv1 struct {
			Config struct {
				Entrypoint, Cmd []string
				Labels          map[string]string
			} `json:"config"`
		}
	}
	if err := json.Unmarshal(out, &image); err != nil {
		t.Fatal(err)
	}
	c := image.OCIv1.Config
	if got := strings.Join(append(c.Entrypoint, c.Cmd...), " "); got != "/usr/bin/inofctl container inofd run" {
		t.Errorf("it runs %s", got)
	}
	sonicManifest(t, c.Labels["com.azure.sonic.manifest"])
}

// sonicManifest checks what SONiC's package manager asks of the label: required fields, and
// their types (sonic-utilities, manifest schema 1.0.0).
func sonicManifest(t *testing.T, label string) {
	var m struct {
		Version string `json:"version"`
		Package struct {
			Version, Name, Description string
			Depends                    []string
			DebugDump                  string `json:"debug-dump"`
		} `json:"package"`
		Service struct {
			Name            string
			Requires, After []string
			HostService     *bool                            `json:"host-service"`
			ASICService     *bool                            `json:"asic-service"`
			WarmShutdown    struct{ Before, After []string } `json:"warm-shutdown"`
			FastShutdown    struct{ Before, After []string } `json:"fast-shutdown"`
		} `json:"service"`
		Container struct {
			Privileged bool
			Volumes    []string
			TmpFS      []string `json:"tmpfs"`
		} `json:"container"`
		Processes []struct {
			Name       string
			Reconciles bool
		} `json:"processes"`
	}
	d := json.NewDecoder(strings.NewReader(label))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		t.Fatalf("%v in %s", err, label)
	}
	if m.Package.Name != "inof" || m.Service.Name != "inof" || strings.Contains(m.Package.Version, "@") || len(m.Processes) != 1 || !m.Container.Privileged {
		t.Errorf("%+v", m)
	}
}
