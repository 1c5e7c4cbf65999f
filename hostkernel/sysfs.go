package hostkernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Tree is where the kernel's files are. The zero value is the running machine.
type Tree struct {
	Root string // before every path; empty is /
}

const (
	controllersDir = "sys/class/nvme"
	subsystemsDir  = "sys/class/nvme-subsystem"
)

func (t Tree) path(parts ...string) string {
	root := t.Root
	if root == "" {
		root = "/"
	}
	return filepath.Join(append([]string{root}, parts...)...)
}

// read gives a file without the blanks around it. Attributes of sysfs are at most a page.
func (t Tree) read(parts ...string) (string, error) {
	b, err := os.ReadFile(t.path(parts...))
	return strings.TrimSpace(string(b)), err
}

// gone reports whether an error says that a device vanished while it was looked at.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENXIO)
}

// Controllers lists the controllers over fabrics, by instance. A controller that cannot be read
// is left out and its error joined to the result's; one that vanishes meanwhile is simply gone.
func (t Tree) Controllers() ([]Controller, error) {
	entries, err := os.ReadDir(t.path(controllersDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("this kernel has no NVMe: %w (modprobe nvme-tcp)", err)
	}
	if err != nil {
		return nil, err
	}
	var list []Controller
	var errs []error
	for _, e := range entries {
		n, err := strconv.Atoi(strings.TrimPrefix(e.Name(), "nvme"))
		if err != nil || n < 0 {
			continue
		}
		c, err := t.Controller(n)
		switch {
		case err == nil && c.Transport != "pcie":
			list = append(list, c)
		case err != nil && !gone(err):
			errs = append(errs, err)
		}
	}
	slices.SortFunc(list, func(a, b Controller) int { return a.Instance - b.Instance })
	return list, errors.Join(errs...)
}

// Controller reads one controller. The error wraps fs.ErrNotExist if there is none.
func (t Tree) Controller(instance int) (Controller, error) {
	c := Controller{Instance: instance, Subsystem: -1}
	get := func(name string, optional bool) (string, error) {
		v, err := t.read(controllersDir, c.Name(), name)
		if optional && gone(err) {
			return "", nil
		}
		return v, err
	}
	transport, err := get("transport", false)
	if err != nil {
		return c, err
	}
	c.Transport = transport
	state, err := get("state", false)
	if err != nil {
		return c, err
	}
	c.State = State(state)
	if c.NQN, err = get("subsysnqn", false); err != nil {
		return c, err
	}
	if c.HostNQN, err = get("hostnqn", true); err != nil {
		return c, err
	}
	kind, err := get("cntrltype", true)
	if err != nil {
		return c, err
	}
	c.Discovery = kind == "discovery"
	if transport == "tcp" || transport == "rdma" {
		address, err := get("address", false)
		if err != nil {
			return c, err
		}
		if err := c.parseAddress(address); err != nil {
			return c, fmt.Errorf("%s: %w", t.path(controllersDir, c.Name(), "address"), err)
		}
	}
	c.Subsystem = t.subsystemOf(c.Name())
	c.Owner = t.Owner(instance)
	return c, nil
}

// subsystemOf finds the subsystem that links to a controller, -1 if none does.
func (t Tree) subsystemOf(name string) int {
	entries, _ := os.ReadDir(t.path(subsystemsDir))
	for _, e := range entries {
		n, err := strconv.Atoi(strings.TrimPrefix(e.Name(), "nvme-subsys"))
		if err != nil {
			continue
		}
		if _, err := os.Lstat(t.path(subsystemsDir, e.Name(), name)); err == nil {
			return n
		}
	}
	return -1
}

// Multipath reports whether the kernel joins the paths of a subsystem into one disk.
func (t Tree) Multipath() (bool, error) {
	v, err := t.read("sys/module/nvme_core/parameters/multipath")
	return v == "Y", err
}

// IOPolicy implements Kernel.
func (t Tree) IOPolicy(c *Controller) (string, error) {
	return t.read(subsystemsDir, "nvme-subsys"+strconv.Itoa(c.Subsystem), "iopolicy")
}

// KeepAliveTimeout implements Kernel.
func (t Tree) KeepAliveTimeout(c *Controller) (time.Duration, error) {
	v, err := t.Attribute(c, "kato")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", t.path(controllersDir, c.Name(), "kato"), err)
	}
	return time.Duration(n) * time.Second, nil
}

// InFlight implements Kernel: each namespace of a controller has a disk of its own, which with
// multipath is hidden (nvmeMcNnK), and its file `inflight` counts reads and writes.
func (t Tree) InFlight(c *Controller) (int, error) {
	files, err := filepath.Glob(t.path(controllersDir, c.Name(), "nvme*", "inflight"))
	if err != nil {
		return 0, err
	}
	total := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if gone(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		for v := range strings.FieldsSeq(string(b)) {
			n, err := strconv.ParseUint(v, 10, 31)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", f, err)
			}
			total += int(n)
		}
	}
	return total, nil
}

// set writes an attribute of a controller.
func (t Tree) set(c *Controller, name, value string) error {
	return os.WriteFile(t.path(controllersDir, c.Name(), name), []byte(value), 0)
}

// Delete removes a controller. Of a path that is dead while I/O is in flight it may block for
// minutes: that is for the caller to rule out (DestroySockets first). A controller that
// is gone already is no error.
func (t Tree) Delete(c *Controller) error {
	if err := t.set(c, "delete_controller", "1"); err != nil && !gone(err) {
		return err
	}
	return nil
}

// Attribute reads one file of a controller.
func (t Tree) Attribute(c *Controller, name string) (string, error) {
	return t.read(controllersDir, c.Name(), name)
}

// Parameter reads one parameter of the module that all controllers share.
func (t Tree) Parameter(name string) (string, error) {
	return t.read("sys/module/nvme_core/parameters", name)
}
