package vm

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// guestShell plays a machine's first process with this machine's shell.
func guestShell(conn net.Conn) {
	in := bufio.NewScanner(conn)
	fmt.Fprintln(conn, "ready")
	for in.Scan() {
		script, _ := base64.StdEncoding.DecodeString(in.Text())
		c := exec.Command("sh", "-c", string(script))
		out, _ := c.CombinedOutput()
		fmt.Fprintf(conn, "%d %d\n%s", c.ProcessState.ExitCode(), len(out), out)
	}
}

// What is run in a machine gives its status and all that it says, whatever is in its
// arguments.
func TestScriptsRunInTheMachine(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	if _, err := Do(context.Background(), socket, "true"); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("no machine: %v", err)
	}
	l, err := listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	guest, theirs := net.Pipe()
	go guestShell(theirs)
	ready, over := make(chan struct{}), make(chan error, 1)
	go func() { over <- serve(guest, l, func() { close(ready) }) }()
	<-ready
	for _, c := range []struct {
		script string
		status int
		output string
	}{
		{"echo one; echo two >&2", 0, "one\ntwo\n"},
		{"exit 7", 7, ""},
		{Quote([]string{"printf", "%s|", "a b", "it's", "$HOME", "new\nline", ""}), 0, "a b|it's|$HOME|new\nline||"},
		{"head -c 100000 /dev/zero | tr '\\0' x", 0, strings.Repeat("x", 100000)},
	} {
		r, err := Do(context.Background(), socket, c.script)
		if err != nil || r.Status != c.status || string(r.Output) != c.output {
			t.Errorf("%q: %v, %+v, want %d, %.80q", c.script, err, r.Status, c.status, c.output)
		}
	}
	if _, err := Do(context.Background(), socket, strings.Repeat("x", maxScript+1)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a script that is too long: %v", err)
	}
	theirs.Close()
	if r, err := Do(context.Background(), socket, "true"); err == nil {
		t.Errorf("the machine has gone: %+v", r)
	}
	if err := <-over; err == nil {
		t.Error("the machine has gone, and serve goes on")
	}
}
