package hostkernel

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// nvmetDebug is where the target shows its controllers (from Linux 6.11, NVME_TARGET_DEBUGFS):
// nvmet/SUBSYSTEM/ctrlN, which is there until the controller is freed, after its last command.
const nvmetDebug = "sys/kernel/debug/nvmet"

// ErrNoTargetDebug means that this kernel does not show the controllers of its target.
var ErrNoTargetDebug = errors.New("this kernel does not show the controllers of its target (NVME_TARGET_DEBUGFS, from Linux 6.11; debugfs mounted)")

// TargetController is a controller of the kernel's own target.
type TargetController struct {
	Host, Array netip.Addr
	Transport   string // tcp or rdma
	dir         string
}

// TargetControllers lists the controllers of the target whose ends are known.
func (t Tree) TargetControllers() ([]TargetController, error) {
	if _, err := os.Stat(t.path(nvmetDebug)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoTargetDebug, err)
	}
	dirs, err := filepath.Glob(t.path(nvmetDebug, "*", "ctrl*"))
	if err != nil {
		return nil, err
	}
	var list []TargetController
	var errs []error
	for _, dir := range dirs {
		c, err := t.targetController(dir)
		switch {
		case err == nil:
			list = append(list, c)
		case !errors.Is(err, fs.ErrNotExist) || stillThere(dir):
			errs = append(errs, fmt.Errorf("%s: %w", dir, err))
		}
	}
	return list, errors.Join(errs...)
}

func stillThere(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

func (t Tree) targetController(dir string) (c TargetController, err error) {
	read := func(name string) string {
		b, readErr := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = readErr
		}
		return strings.TrimSpace(string(b))
	}
	host, port := read("host_traddr"), read("port")
	if err != nil {
		return c, err
	}
	// "10.1.1.1:49152", "[fd00::1]:49152" or no port, as the transport prints it.
	if end, perr := netip.ParseAddrPort(host); perr == nil {
		c.Host = end.Addr().Unmap()
	} else if c.Host, err = netip.ParseAddr(strings.Trim(host, "[]")); err != nil {
		return c, fmt.Errorf("host_traddr: %w", err)
	}
	c.Host = c.Host.Unmap()
	if strings.ContainsAny(port, "/.") || port == "" {
		return c, fmt.Errorf("port: %q: want a number", port)
	}
	served, err := t.servedPort(port)
	c.Array, c.Transport, c.dir = served.Addr, served.Transport, dir
	return c, err
}

// Fatal has the target give a controller up, as after a fatal error: it ends its connections, and
// waits for its commands before it frees the controller. One that is gone is no error.
func (c *TargetController) Fatal() error {
	err := os.WriteFile(filepath.Join(c.dir, "state"), []byte("fatal"), 0)
	if gone(err) {
		return nil
	}
	return err
}
