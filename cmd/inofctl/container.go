package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// Pauses before a program is started again: doubled from the first to the last, and the first
// again after it ran for as long as steadyAfter.
const (
	firstRestart = 200 * time.Millisecond
	lastRestart  = 10 * time.Second
	steadyAfter  = 30 * time.Second
)

// containerCmd is the entry point of the container images: a container that ends loses its
// links to other nodes of a lab, and comes back without them, so it must outlive its program.
func (a *app) containerCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "container PROGRAM [ARGS]", Short: "Run a program as the first process of a container, and again when it ends",
		Long: `Runs a program as the first process of a container: again whenever it ends, with pauses of up to 10 s, until
it is told to end itself. SIGTERM, SIGINT and SIGHUP are passed on to the program; processes that lost their
parent are buried.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			signals := make(chan os.Signal, 16)
			signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGCHLD)
			defer signal.Stop(signals)
			return supervise(args, signals, a.err)
		},
	}
	c.Flags().SetInterspersed(false)
	return c
}

// supervise runs a program until one of the signals that end it has come and it has ended.
func supervise(args []string, signals <-chan os.Signal, log io.Writer) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	var (
		child   *os.Process
		started time.Time
		pause   = firstRestart
		ending  bool
		again   = time.NewTimer(0)
	)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			started = time.Now()
			if child, err = os.StartProcess(path, args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}}); err != nil {
				fmt.Fprintf(log, "inofctl container: %v; again in %s\n", err, pause)
				again.Reset(pause)
				pause = min(2*pause, lastRestart)
			}
		case s := <-signals:
			if s != unix.SIGCHLD {
				ending = ending || s != unix.SIGHUP
				if child == nil && ending {
					return nil
				}
				if child != nil {
					_ = child.Signal(s)
				}
				continue
			}
			status, ended := bury(child)
			if !ended {
				continue
			}
			child = nil
			if ending {
				return endOf(status)
			}
			if time.Since(started) >= steadyAfter {
				pause = firstRestart
			}
			fmt.Fprintf(log, "inofctl container: %s ended (%s); again in %s\n", args[0], describe(status), pause)
			again.Reset(pause)
			pause = min(2*pause, lastRestart)
		}
	}
}

// bury takes the status of all processes that have ended, and gives that of the child.
func bury(child *os.Process) (status unix.WaitStatus, ended bool) {
	for {
		var s unix.WaitStatus
		pid, err := unix.Wait4(-1, &s, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return status, ended
		}
		if child != nil && pid == child.Pid && (s.Exited() || s.Signaled()) {
			status, ended = s, true
		}
	}
}

func describe(s unix.WaitStatus) string {
	if s.Signaled() {
		return s.Signal().String()
	}
	return fmt.Sprintf("exit status %d", s.ExitStatus())
}

// endOf is how the container ends when its program was told to.
func endOf(s unix.WaitStatus) error {
	if s.Exited() && s.ExitStatus() == 0 || s.Signaled() && (s.Signal() == unix.SIGTERM || s.Signal() == unix.SIGINT) {
		return nil
	}
	return fmt.Errorf("the program ended with %s", describe(s))
}
