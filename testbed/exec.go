package testbed

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/testbed/vm"
)

// Cmd is an exec.Cmd whose process begins inside a node's namespaces. Set its
// fields as usual; Start, Run, Output and CombinedOutput are the node's own.
type Cmd struct {
	*exec.Cmd
	ns       nsFiles
	priority uint32 // of SCHED_RR; 0: normal
}

// Command prepares a program to run in a node. The program is looked up on this
// machine: nodes share its file system, but for a vm, which has its own and gets nothing
// on its standard input.
func (l *Lab) Command(node string, args ...string) *Cmd {
	return l.CommandContext(context.Background(), node, args...)
}

// CommandContext is Command; the process is killed when ctx ends.
func (l *Lab) CommandContext(ctx context.Context, node string, args ...string) *Cmd {
	if l.isVM(node) {
		bin, err := l.binary("inofctl")
		c := l.outside(ctx, node, append([]string{bin, "lab", "in-vm", l.vmSocket(node), "--"}, args...)...)
		if err != nil {
			c.Err = err
		}
		return c
	}
	return l.outside(ctx, node, args...)
}

// outside is CommandContext in the namespace of a node, also of one that has a machine
// in there.
func (l *Lab) outside(ctx context.Context, node string, args ...string) *Cmd {
	if len(args) == 0 {
		args = []string{""}
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	if err := l.hasNode(node); err != nil {
		c.Err = err
		return &Cmd{Cmd: c}
	}
	c.Env = l.environment(node)
	return &Cmd{Cmd: c, ns: l.ns(node)}
}

// foreign are variables of a service manager, about this process and not about those of a node.
var foreign = []string{"NOTIFY_SOCKET", "INVOCATION_ID", "JOURNAL_STREAM", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID",
	"STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CREDENTIALS_DIRECTORY"}

// kept are the INOF_ variables that name directories of this machine.
var kept = []string{"INOF_BIN_DIR", vm.EnvImage}

// environment is this process's own, without INOF_ variables, which would override the
// configuration of a node, and without those of a service manager; with the node's variables, and
// with the mark by which processes of a lab are known.
func (l *Lab) environment(node string) []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if (!strings.HasPrefix(name, "INOF_") || slices.Contains(kept, name)) && !slices.Contains(foreign, name) {
			env = append(env, e)
		}
	}
	add := func(m map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			env = append(env, k+"="+m[k])
		}
	}
	l.mu.Lock()
	if n := l.st.node(node); n != nil {
		add(n.Env)
	}
	l.mu.Unlock()
	add(l.nodeVars(node))
	return append(env, envLab+"="+l.Dir)
}

// Start starts the process inside the node.
func (c *Cmd) Start() error {
	if c.Err != nil {
		return c.Err
	}
	return onOwnThread(func() error {
		if err := c.ns.enterWithSys(); err != nil {
			return err
		}
		if c.priority != 0 { // the thread is this command's own, and what it starts inherits its class
			if err := realtime(c.priority); err != nil {
				return err
			}
		}
		return c.Cmd.Start()
	})
}

// realtime gives the calling thread, and what it starts, the scheduling class of
// dist/systemd/inofd.service at a priority. It takes root, CAP_SYS_NICE or RLIMIT_RTPRIO.
func realtime(priority uint32) error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: priority}
	return os.NewSyscallError("sched_setattr SCHED_RR", unix.SchedSetAttr(0, &attr, 0))
}

// unitPriority is CPUSchedulingPriority of the unit.
const unitPriority = 20

// priority of the daemons of a node, 0 for normal.
func (o Options) priority(node string) uint32 {
	if !o.Realtime {
		return 0
	}
	return unitPriority + uint32(max(0, slices.Index(o.way, node)))
}

// Run starts the process and waits for its end.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output runs the process and gives its standard output.
func (c *Cmd) Output() ([]byte, error) {
	var b bytes.Buffer
	c.Stdout = &b
	err := c.Run()
	return b.Bytes(), err
}

// CombinedOutput runs the process and gives its standard output and error.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	var b bytes.Buffer
	c.Stdout, c.Stderr = &b, &b
	err := c.Run()
	return b.Bytes(), err
}

// Exec runs a program in a node and gives its output; the error names the command
// and carries what it wrote.
func (l *Lab) Exec(ctx context.Context, node string, args ...string) ([]byte, error) {
	c := l.CommandContext(ctx, node, args...)
	out, err := c.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("%s: %s: %w%s", node, strings.Join(args, " "), err, quoted(out))
	}
	return out, nil
}

// Do runs fn on a thread inside the node's network namespace: a socket opened there
// stays in the node.
func (l *Lab) Do(node string, fn func() error) error {
	if err := l.hasNode(node); err != nil {
		return err
	}
	return onOwnThread(func() error {
		if err := l.ns(node).enter(); err != nil {
			return err
		}
		return fn()
	})
}

// quoted puts a program's last words behind an error.
func quoted(out []byte) string {
	s := strings.TrimSpace(string(out))
	if s == "" {
		return ""
	}
	const most = 600
	if len(s) > most {
		s = "..." + s[len(s)-most:]
	}
	return ": " + s
}
