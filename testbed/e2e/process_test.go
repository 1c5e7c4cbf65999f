package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/testbed/labtest"
)

// proc is a program that a test started itself, in a node or outside.
type proc struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  string // files with its standard output and error
	err  string
	gone chan struct{}
}

// starter is an exec.Cmd, or a testbed.Cmd that starts inside a node.
type starter interface{ Start() error }

// launch starts a program; it is killed at the end of the test if it still runs.
func launch(t testing.TB, s starter, c *exec.Cmd) *proc {
	t.Helper()
	dir := t.TempDir()
	p := &proc{t: t, cmd: c, out: filepath.Join(dir, "out"), err: filepath.Join(dir, "err"), gone: make(chan struct{})}
	stdout, err := os.Create(p.out)
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	stderr, err := os.Create(p.err)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	c.Stdout, c.Stderr = stdout, stderr
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Wait(); close(p.gone) }()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-p.gone
		noRace(t, p.err)
		if t.Failed() {
			text := p.stdout() + p.stderr()
			t.Logf("%s said:\n%s", strings.Join(c.Args, " "), text[max(0, len(text)-4000):])
		}
	})
	return p
}

// launchIn starts a program inside a node.
func (f *fab) launchIn(node string, env []string, args ...string) *proc {
	f.t.Helper()
	c := f.lab.Command(node, args...)
	c.Env = append(c.Env, env...)
	return launch(f.t, c, c.Cmd)
}

// launchHere starts a program outside of all nodes.
func launchHere(t testing.TB, args ...string) *proc {
	t.Helper()
	c := exec.Command(args[0], args[1:]...)
	return launch(t, c, c)
}

func (p *proc) stdout() string { return readText(p.out) }
func (p *proc) stderr() string { return readText(p.err) }

func readText(file string) string {
	b, _ := os.ReadFile(file)
	return string(b)
}

// signal sends a signal to the program.
func (p *proc) signal(sig unix.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the program's end and gives its exit code, -1 after a signal.
func (p *proc) exit() int {
	p.t.Helper()
	select {
	case <-p.gone:
	case <-time.After(labtest.Patience):
		p.t.Fatalf("%s does not end", strings.Join(p.cmd.Args, " "))
	}
	return p.cmd.ProcessState.ExitCode()
}

// says waits until the program has written a line with all of the words.
func (p *proc) says(words ...string) {
	p.t.Helper()
	labtest.Eventually(p.t, fmt.Sprintf("%s to say %q", filepath.Base(p.cmd.Args[0]), words), func() error {
		if text := p.stdout() + p.stderr(); !hasLine(text, words) {
			return fmt.Errorf("it said:\n%s", text)
		}
		return nil
	})
}

func hasLine(text string, words []string) bool {
	for line := range strings.Lines(text) {
		if hasAll(line, words) {
			return true
		}
	}
	return false
}

// outcome is what a program that ended by itself left.
type outcome struct {
	stdout, stderr string
	code           int
}

// ctl runs inofctl against a node's daemon.
func (f *fab) ctl(node string, args ...string) outcome {
	f.t.Helper()
	return runHere(f.t, nil, append([]string{suite.Program(f.t, "inofctl"), "--socket", f.socket(node)}, args...)...)
}

// runHere runs a program to its end.
func runHere(t testing.TB, env []string, args ...string) outcome {
	t.Helper()
	c := exec.CommandContext(within(t, labtest.Patience), args[0], args[1:]...)
	// Not the user's own variables: they would beat the file.
	c.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "INOF_") }), env...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{out.String(), errs.String(), c.ProcessState.ExitCode()}
}

// failed checks that a program refused, and said all of the words in one line.
func (o outcome) failed(t testing.TB, what string, words ...string) {
	t.Helper()
	if o.code != 1 || !hasLine(o.stderr, words) {
		t.Errorf("%s: exit code %d, want 1; it said %q, want %q in one line", what, o.code, o.stderr, words)
	}
}

// logLine waits until a daemon's log has a line with all of the words.
func (f *fab) logLine(node string, words ...string) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("%q in a line of the log of %s", words, node), func() error {
		if !hasLine(readText(f.logFile(node)), words) {
			return errors.New("there is none")
		}
		return nil
	})
}

// hup asks a daemon to read its configuration again.
func hup(t testing.TB, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGHUP); err != nil {
		t.Fatal(err)
	}
}
