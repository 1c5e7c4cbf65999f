package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// envNested is set in a program that runs inside the user namespace made for it.
const envNested = "INOF_LAB_NESTED"

// Nested reports whether this program runs in a user namespace that Reexec made.
func Nested() bool { return os.Getenv(envNested) != "" }

// Privileged reports whether this process can build labs. The error, which wraps
// ErrNotPermitted, says what is missing.
func Privileged() error {
	err := onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWUTS); err != nil {
			return fmt.Errorf("%w: a new network namespace needs CAP_SYS_ADMIN: %w", ErrNotPermitted, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("%w: a new mount namespace: %w", ErrNotPermitted, err)
		}
		if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("%w: mounting needs CAP_SYS_ADMIN in the namespace that owns the mounts: %w", ErrNotPermitted, err)
		}
		return nil
	})
}

// Reexec runs this program again, with the same arguments, inside a new user,
// network and mount namespace where the caller is root, and gives its exit code.
func Reexec(ctx context.Context) (int, error) {
	if Nested() {
		return 0, fmt.Errorf("%w: not even inside a user namespace of its own", ErrNotPermitted)
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	c := exec.Command(self, os.Args[1:]...)
	c.Env = append(os.Environ(), envNested+"=1", envRoot+"="+DefaultRoot())
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	code, err := passThrough(ctx, c)
	if err != nil {
		return code, fmt.Errorf("%w: run as root, or allow user namespaces: %w%s", ErrNotPermitted, err, userNSHints())
	}
	return code, nil
}

// Enter runs this program again inside the namespaces of a nested lab, by way of
// nsenter(1): a program with several threads cannot change its user namespace.
// done is false when there is no need to.
func Enter(ctx context.Context, name, root string) (code int, done bool, err error) {
	if root == "" {
		root = DefaultRoot()
	}
	st, err := readState(filepath.Join(root, name))
	if err != nil {
		return 0, false, err
	}
	if !st.Nested || st.UserNS == currentNS(0, "user") || st.Boot != bootID() {
		return 0, false, nil
	}
	holder := st.Holder
	if holder == nil || !holder.Alive() || currentNS(holder.PID, "user") != st.UserNS {
		return 0, false, fmt.Errorf("lab %s lost the process that holds its user namespace; use lab down", name)
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return 0, false, fmt.Errorf("lab %s lives in a user namespace, which is entered with nsenter(1) from util-linux: %w", name, err)
	}
	self, err := os.Executable()
	if err != nil {
		return 0, false, err
	}
	args := []string{"--target", fmt.Sprint(holder.PID), "--user", "--net", "--mount", "--preserve-credentials", "--", self}
	c := exec.Command(nsenter, append(args, os.Args[1:]...)...)
	c.Env = append(os.Environ(), envNested+"=1", envRoot+"="+root)
	code, err = passThrough(ctx, c)
	return code, true, err
}

// passThrough runs c with this program's terminal and signals and gives its exit code.
func passThrough(ctx context.Context, c *exec.Cmd) (int, error) {
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		return 0, err
	}
	// The terminal sends ^C to both; the child decides what it means.
	sigs := make(chan os.Signal, 4)
	signal.Notify(sigs, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(sigs)
	over := make(chan struct{})
	defer close(over)
	go func() {
		for done := ctx.Done(); ; {
			select {
			case s := <-sigs:
				if s != unix.SIGINT {
					_ = c.Process.Signal(s)
				}
			case <-done:
				_ = c.Process.Signal(unix.SIGTERM)
				done = nil
			case <-over:
				return
			}
		}
	}()
	err := c.Wait()
	if ee := (*exec.ExitError)(nil); errors.As(err, &ee) {
		if ee.ExitCode() < 0 {
			return 1, nil // a signal ended it
		}
		return ee.ExitCode(), nil
	}
	return 0, err
}

// userNSHints names the settings by which this machine may forbid user namespaces.
func userNSHints() string {
	var out []string
	for _, k := range []struct{ file, bad, hint string }{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns is 1"},
		{"/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0"},
	} {
		if b, err := os.ReadFile(k.file); err == nil && strings.TrimSpace(string(b)) == k.bad {
			out = append(out, k.hint)
		}
	}
	if _, err := os.Stat("/proc/self/ns/user"); err != nil {
		out = append(out, "this kernel has no user namespaces")
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, "; ") + ")"
}
