package load

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A flood takes processor time, of the reflector and of the benchmark's own clients, which are
// elsewhere in a fabric. What that alone does to a fault is measured by a control: processes that
// have nothing to do with the reflector take as much.

// used is the processor time that the reflector and the benchmark have taken so far.
func (f *fanout) used(ctx context.Context) (time.Duration, error) {
	s, err := f.own.stats(ctx, false)
	if err != nil {
		return 0, err
	}
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return s.CPU + time.Duration(u.Utime.Nano()+u.Stime.Nano()), nil
}

// burn has as many processes as there are processors take so much processor time, all of it at
// once as a flood does, or until stop is called.
func burn(ctx context.Context, budget time.Duration) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var all []*exec.Cmd
	done := make(chan struct{})
	stop = func() {
		cancel()
		<-done
	}
	for range runtime.NumCPU() {
		c := exec.CommandContext(ctx, "/bin/sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			close(done)
			stop()
			return nil, fmt.Errorf("a process that takes processor time: %w", err)
		}
		all = append(all, c)
	}
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			took := time.Duration(0)
			for _, c := range all {
				took += processTime(c.Process.Pid)
			}
			if took >= budget {
				cancel()
			}
		}
		for _, c := range all {
			_ = c.Wait() // it was killed
		}
	}()
	return stop, nil
}

// processTime is what a process has taken, in steps of 10 ms; zero if it is not there.
func processTime(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
