package portguard

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openinof/inof/internal/netnstest"
)

func TestTheObjectIsOfThisSource(t *testing.T) {
	sums, err := os.ReadFile("bpf/guard.sum")
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(sums)), "\n")
	if len(lines) != 2 {
		t.Errorf("%d sums, want 2", len(lines))
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile(filepath.Join("bpf", name))
		must(t, err)
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum {
			t.Errorf("%s has changed since the object was made: go generate ./fabric/linux/portguard", name)
		}
	}
}

const envChild = "INOF_TEST_PORTGUARD_CHILD"

func TestWithoutRightsTheErrorNamesThem(t *testing.T) {
	if os.Getenv(envChild) == "" {
		open(t, netnstest.New(t), Config{})
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
		cmd.Env, cmd.Dir = append(os.Environ(), envChild+"=1"), "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	g, err := Open(Config{})
	if g != nil || !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "CAP_BPF") {
		t.Errorf("%v %v", g, err)
	}
}
