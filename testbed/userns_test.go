package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/internal/netnstest"
)

const nobody = 65534

// helperNested is what an unprivileged user's lab commands do: up, fault, down.
func helperNested() {
	ctx, opt := context.Background(), Options{Root: DefaultRoot(), NoDaemons: true}
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	switch os.Args[1] {
	case "up":
		if err := Privileged(); err != nil {
			if !errors.Is(err, ErrNotPermitted) || Nested() {
				fail(err)
			}
			code, err := Reexec(ctx)
			fail(err)
			os.Exit(code)
		}
		topo, err := Load(os.Args[2])
		fail(err)
		_, err = Up(ctx, topo, opt)
		fail(err)
		fmt.Println("up")
	case "fault":
		code, done, err := Enter(ctx, "small", "")
		fail(err)
		if done {
			os.Exit(code)
		}
		l, err := Open("small", opt)
		fail(err)
		_, err = l.Fault("sw1", "eth1", false)
		fail(err)
		up, err := l.Carrier("sw1", "eth1")
		fail(err)
		out, err := l.Exec(ctx, "h1", "hostname")
		fail(err)
		fmt.Printf("carrier %v at %s", up, out)
	case "down":
		fail(Down("small", opt))
		fmt.Println("down")
	}
	os.Exit(0)
}

func TestAnUnprivilegedUserHasLabsInAUserNamespace(t *testing.T) {
	requireNetns(t)
	if os.Getuid() != 0 {
		netnstest.Require(t, "playing another user", errors.New("that needs root"))
	}
	dir := testRoot(t)
	root := filepath.Join(dir, "labs")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(root, 0o700), os.Chown(root, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"small.clab.yml": smallLab, "sw.yaml": "a: 1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "prog"), self, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		c := exec.Command(filepath.Join(dir, "prog"), args...)
		c.Dir = dir
		c.Env = []string{"PATH=" + os.Getenv("PATH"), envHelper + "=nested", envRoot + "=" + root}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := c.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	before := takeTraces(t, root)
	t.Cleanup(func() { _, _ = run("down") })
	out, err := run("up", filepath.Join(dir, "small.clab.yml"))
	if err != nil {
		netnstest.Require(t, "this kernel does not give user namespaces to everybody", fmt.Errorf("%w: %s", err, out))
	}
	if out != "up" {
		t.Fatalf("up: %s", out)
	}
	if len(takeTraces(t, root).Processes) == 0 {
		t.Error("nothing holds the lab")
	}
	if out, err := run("fault"); err != nil || out != "carrier false at h1" {
		t.Errorf("fault: %q, %v", out, err)
	}
	if out, err := run("down"); err != nil || out != "down" {
		t.Errorf("down: %q, %v", out, err)
	}
	if diff := cmp.Diff(before, takeTraces(t, root)); diff != "" {
		t.Errorf("left behind:\n%s", diff)
	}
}
