package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program is a daemon that belongs to a node.
type program struct {
	name   string // as in Process.Name
	binary string
	args   []string
	notify bool     // tells READY=1 (sd_notify(3))
	exec   []string // command lines that are run in the node when it is ready
	// realtime: Options.Realtime is for it.
	realtime bool
	boot     time.Duration // how long it may take until then; 0: Options.ReadyTimeout
}

// programs lists what a node's kind runs.
func (l *Lab) programs(n *nodeState) []program {
	switch n.Kind {
	case KindSwitch:
		args := []string{"run", "-c", l.ConfigFile(n.Name)}
		if n.Container {
			vars := l.nodeVars(n.Name)
			args = append(args, "--state-directory", vars["INOF_NODE_STATE"], "--management.socket", filepath.Join(vars["INOF_NODE_RUN"], "inofd.sock"))
		}
		return []program{{name: "inofd", binary: "inofd", args: args, notify: true, realtime: true}}
	case KindHost:
		var ps []program
		for _, a := range n.Agents {
			ps = append(ps, program{name: "snsd-" + a.Port, binary: "snsd", args: a.Args})
		}
		return ps
	case KindVM:
		return []program{l.machine(n)}
	}
	return nil
}

// Start starts the named process of a node, or all of its kind when name is empty.
// What runs already is left alone. A daemon that says so is waited for until it is ready.
func (l *Lab) Start(ctx context.Context, node, name string) error {
	l.mu.Lock()
	n := l.st.node(node)
	if n == nil {
		defer l.mu.Unlock()
		return l.noNode(node)
	}
	ps, running := l.programs(n), slices.Clone(n.Processes)
	l.mu.Unlock()
	found := name == ""
	for _, p := range ps {
		if name != "" && p.name != name {
			continue
		}
		found = true
		if slices.ContainsFunc(running, func(r Process) bool { return r.Name == p.name && r.Alive() }) {
			continue
		}
		if err := l.startProgram(ctx, node, p); err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
	}
	if !found {
		return fmt.Errorf("node %s has no process %q", node, name)
	}
	return nil
}

func (l *Lab) startProgram(ctx context.Context, node string, p program) error {
	if err := l.step("start %s on %s", p.name, node); err != nil {
		return err
	}
	bin, err := l.binary(p.binary)
	if err != nil {
		return err
	}
	var ready *net.UnixConn
	c := l.outside(context.Background(), node, append([]string{bin}, p.args...)...)
	c.Dir = l.NodeDir(node)
	if p.realtime {
		c.priority = l.opt.priority(node)
	}
	if p.notify {
		sock := filepath.Join(l.NodeDir(node), "run", p.name+".notify")
		_ = os.Remove(sock)
		if ready, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: sock, Net: "unixgram"}); err != nil {
			return fmt.Errorf("%s: readiness socket: %w", p.name, err)
		}
		defer os.Remove(sock)
		defer ready.Close()
		c.Env = append(c.Env, "NOTIFY_SOCKET="+sock)
	}
	proc, gone, err := l.spawn(node, p.name, c)
	if err != nil {
		return err
	}
	if p.notify {
		if err := l.waitReady(ctx, ready, proc, gone, cmp.Or(p.boot, l.opt.ReadyTimeout)); err != nil {
			return err
		}
	}
	return l.runExec(ctx, node, p.exec)
}

// spawn starts c detached from this process, its output in the node's log
// directory, and enters it into the state.
func (l *Lab) spawn(node, name string, c *Cmd) (Process, <-chan struct{}, error) {
	logDir := filepath.Join(l.NodeDir(node), "log")
	proc := Process{Name: name, Command: c.Args, Log: filepath.Join(logDir, name+".log"), Output: filepath.Join(logDir, name+".out")}
	files := make([]*os.File, 0, 2)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for _, n := range []string{proc.Output, proc.Log} {
		f, err := os.OpenFile(n, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return proc, nil, err
		}
		files = append(files, f)
	}
	c.Stdout, c.Stderr = files[0], files[1]
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // ^C at the terminal is for the lab command, not for the daemons
	if err := c.Start(); err != nil {
		return proc, nil, fmt.Errorf("%s: %w", name, err)
	}
	proc.PID = c.Process.Pid
	_, start, err := procStat(proc.PID)
	proc.Start = start
	gone := make(chan struct{})
	go func() { // the process may outlive this one; until then it must be reaped here
		_ = c.Wait()
		close(gone)
	}()
	if err != nil {
		return proc, gone, fmt.Errorf("%s died at once%s", name, quoted(tail(proc.Log)))
	}
	err = l.update(func(s *state) {
		l.reaped[proc.PID] = gone
		n := s.node(node)
		n.Processes = slices.DeleteFunc(n.Processes, func(q Process) bool { return q.Name == name })
		n.Processes = append(n.Processes, proc)
	})
	return proc, gone, err
}

// waitReady reads sd_notify messages until READY=1.
func (l *Lab) waitReady(ctx context.Context, conn *net.UnixConn, p Process, gone <-chan struct{}, patience time.Duration) error {
	limit := time.Now().Add(patience)
	buf := make([]byte, 4096)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		n, err := conn.Read(buf)
		if err == nil && slices.Contains(strings.Split(string(buf[:n]), "\n"), "READY=1") {
			return nil
		}
		select {
		case <-gone:
			return fmt.Errorf("%s ended before it was ready%s", p.Name, quoted(tail(p.Log)))
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%s is not ready after %s%s", p.Name, patience, quoted(tail(p.Log)))
		}
	}
}

// Stop ends a process of a node with SIGTERM, and by force after grace.
func (l *Lab) Stop(node, name string, grace time.Duration) error {
	p, err := l.Process(node, name)
	if err != nil {
		return err
	}
	if left := stopAll([]Process{p}, grace); len(left) > 0 {
		return fmt.Errorf("node %s: %s (pid %d) does not end", node, p.Name, p.PID)
	}
	l.awaitReaped(p.PID)
	return nil
}

// killPatience bounds the wait for the end of a process that was killed, on a machine
// that is busy with other things.
const killPatience = 20 * time.Second

// Kill ends a process of a node with SIGKILL: it gets no chance to say goodbye. at
// was taken right before the system call.
func (l *Lab) Kill(node, name string) (at time.Time, err error) {
	p, err := l.Process(node, name)
	if err != nil {
		return time.Time{}, err
	}
	at = time.Now()
	if err := p.signal(unix.SIGKILL); err != nil {
		return at, fmt.Errorf("node %s: %w", node, err)
	}
	if left := waitGone([]Process{p}, killPatience); len(left) > 0 {
		return at, fmt.Errorf("node %s: %s (pid %d) does not end", node, p.Name, p.PID)
	}
	l.awaitReaped(p.PID)
	return at, nil
}

// Signal sends any signal to a process of a node, such as SIGSTOP and SIGCONT. at was
// taken right before the system call.
func (l *Lab) Signal(node, name string, sig unix.Signal) (at time.Time, err error) {
	p, err := l.Process(node, name)
	if err != nil {
		return time.Time{}, err
	}
	at = time.Now()
	if err := p.signal(sig); err != nil {
		return at, fmt.Errorf("node %s: %s: %w", node, p.Name, err)
	}
	return at, nil
}

// awaitReaped waits for the zombie of an own child to go.
func (l *Lab) awaitReaped(pid int) {
	l.mu.Lock()
	gone := l.reaped[pid]
	delete(l.reaped, pid)
	l.mu.Unlock()
	if gone != nil {
		<-gone
	}
}

// startHolder starts the process that keeps the namespaces of a nested lab.
func (l *Lab) startHolder() error {
	if err := l.step("start the holder"); err != nil {
		return err
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return fmt.Errorf("a lab in a user namespace is held by sleep(1): %w", err)
	}
	c := exec.Command(sleep, "infinity")
	c.Env = []string{envLab + "=" + l.Dir}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return err
	}
	p := Process{Name: "hold", PID: c.Process.Pid}
	if _, p.Start, err = procStat(p.PID); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() { _ = c.Wait(); close(gone) }()
	return l.update(func(s *state) { s.Holder = &p; l.reaped[p.PID] = gone })
}

// tail gives the last lines of a log.
func tail(file string) []byte {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) || len(b) < 2000 {
		return b
	}
	return b[len(b)-2000:]
}
