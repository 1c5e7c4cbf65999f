package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostkernel"
)

func listening(socket string) (stop func(), err error) {
	s := &service{cfg: hostagent.Config{Socket: socket}}
	return s.listen()
}

// Two agents would register every address twice. A socket that a dead one left behind is replaced.
func TestASecondAgentIsRefusedWhileTheFirstAnswers(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "run", "snsd.sock")
	stop, err := listening(socket)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := listening(socket); err == nil || !strings.Contains(err.Error(), "another agent runs on this host") {
		t.Errorf("a second one: %v", err)
		if err == nil {
			second()
		}
	}
	if _, err := os.Lstat(socket); err != nil {
		t.Errorf("the socket of the first: %v", err)
	}
	stop()
	if stop, err = listening(socket); err != nil {
		t.Fatal("after the first has ended:", err)
	}
	stop()
}

func TestWhatIsNoSocketIsNotReplacedByOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hostnqn")
	if err := os.WriteFile(file, []byte("nqn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if stop, err := listening(file); err == nil {
		stop()
		t.Error("it listens there")
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "nqn" {
		t.Errorf("the file has %q, %v", b, err)
	}
}

// A status without controllers, because they cannot be read, is no good one.
func TestAStatusThatLacksTheControllersFails(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "snsd.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(status{Error: "open /sys/class/nvme: permission denied"})
	})}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	for _, format := range []string{"text", "json"} {
		c := statusCmd()
		c.SetArgs([]string{"--socket", socket, "-o", format})
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetOut(io.Discard)
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestStatusWarnsOfAnIdentityThatDiffers(t *testing.T) {
	const id = "6f8ff1a5-5a0e-4d5f-9b5e-000000000001"
	for _, c := range []struct{ id, want string }{
		{id, ""},
		{"6f8ff1a5-5a0e-4d5f-9b5e-000000000002", "warning: hostid 6f8ff1a5-5a0e-4d5f-9b5e-000000000002 is not the UUID in hostnqn nqn.2014-08.org.nvmexpress:uuid:" + id},
	} {
		cfg := hostagent.Config{}
		policy := cfg.Policy(hostkernel.Identity{NQN: "nqn.2014-08.org.nvmexpress:uuid:" + id, ID: c.id})
		s := &service{actor: hostagent.NewActor(nil, policy, nil, nil, nil)}
		var b strings.Builder
		printStatus(&b, &status{Warnings: s.warnings()})
		if got := b.String(); strings.Contains(got, "warning") != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("hostid %s: %s", c.id, got)
		}
	}
}
