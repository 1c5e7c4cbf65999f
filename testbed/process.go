package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a process a lab started. PID and Start together name one process for
// as long as the machine runs: a recycled pid has another start time.
type Process struct {
	Name    string   `json:"name"` // inofd, snsd-PORT, or hold
	PID     int      `json:"pid"`
	Start   uint64   `json:"start"` // clock ticks since boot, proc(5) stat field 22
	Command []string `json:"command,omitempty"`
	Log     string   `json:"log,omitempty"`    // file with its error output
	Output  string   `json:"output,omitempty"` // file with its standard output
}

// procStat reads the state letter and start time of a process.
func procStat(pid int) (state byte, start uint64, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	// The command name, in parentheses, may contain anything; fields count from behind it.
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) < 20 {
		return 0, 0, fmt.Errorf("unreadable /proc/%d/stat", pid)
	}
	start, err = strconv.ParseUint(f[19], 10, 64)
	return f[0][0], start, err
}

// Alive reports whether the very process is still running (a zombie is not).
func (p Process) Alive() bool {
	if p.PID <= 0 {
		return false
	}
	state, start, err := procStat(p.PID)
	return err == nil && start == p.Start && state != 'Z' && state != 'X'
}

// errGone says that there is no such process any more.
var errGone = errors.New("process is gone")

// signal sends sig to the very process, never to a later one with its pid.
func (p Process) signal(sig unix.Signal) error {
	if p.PID <= 1 || p.PID == os.Getpid() {
		return fmt.Errorf("refusing to signal pid %d", p.PID)
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("pidfd of %s (pid %d): %w", p.Name, p.PID, err)
	}
	defer unix.Close(fd)
	// The descriptor holds whoever has the pid now; only then is the start time compared.
	if !p.Alive() {
		return errGone
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %s (pid %d): %w", p.Name, p.PID, err)
	}
	return nil
}

// findProcesses lists every process for which match is true, this one excepted.
func findProcesses(match func(pid int) bool) []Process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var out []Process
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid == os.Getpid() {
			continue
		}
		state, start, err := procStat(pid)
		if err != nil || state == 'Z' || state == 'X' || !match(pid) {
			continue
		}
		comm, _ := os.ReadFile("/proc/" + n + "/comm")
		out = append(out, Process{Name: strings.TrimSpace(string(comm)), PID: pid, Start: start})
	}
	return out
}

// hasEnv reports whether a process was started with NAME=value in its environment.
func hasEnv(pid int, entry string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for e := range bytes.SplitSeq(b, []byte{0}) {
		if string(e) == entry {
			return true
		}
	}
	return false
}

// stopAll ends processes: politely, and after grace by force. It returns those
// that are still there.
func stopAll(ps []Process, grace time.Duration) []Process {
	for _, p := range ps {
		_ = p.signal(unix.SIGTERM)
	}
	left := waitGone(ps, grace)
	for _, p := range left {
		_ = p.signal(unix.SIGKILL)
	}
	return waitGone(left, killPatience)
}

// waitGone waits until the processes are gone, and returns those that are not.
func waitGone(ps []Process, limit time.Duration) []Process {
	end := time.Now().Add(limit)
	for {
		var left []Process
		for _, p := range ps {
			if p.Alive() {
				left = append(left, p)
			}
		}
		if ps = left; len(left) == 0 || time.Now().After(end) {
			return left
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// bootID names this boot of the machine; pids and start times mean nothing after it.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
