package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openinof/inof/hostagent"
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
