package hostkernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The registry says whose a controller is, so that several programs on a host leave each
// other's alone: /run/nvme/registry/nvmeN/owner, as libnvme 3 keeps it. No entry: nobody's.
const registryDir = "run/nvme/registry"

// maxOwner bounds the name of an owner that is read.
const maxOwner = 255

// deviceFile of an entry is our own: the inode of the controller's directory in sysfs, by which it
// is told from a later controller of the same number. Entries of others have none.
const deviceFile = "snsd-device"

// Owner gives who owns a controller, empty if nobody does, or the entry makes no sense or is of a
// former controller.
func (t Tree) Owner(instance int) string {
	name := fmt.Sprintf("nvme%d", instance)
	text, err := t.read(registryDir, name, "owner")
	if err != nil || len(text) > maxOwner || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) || t.outdated(name, name) {
		return ""
	}
	return text
}

// device identifies a controller, empty if there is none of this name.
func (t Tree) device(name string) string {
	var st unix.Stat_t
	if unix.Stat(t.path(controllersDir, name), &st) != nil {
		return ""
	}
	return strconv.FormatUint(st.Ino, 10)
}

// outdated reports whether an entry is of ours and not of the controller that has its name now.
func (t Tree) outdated(entry, name string) bool {
	device, err := t.read(registryDir, entry, deviceFile)
	return err == nil && device != t.device(name)
}

// Tidy removes our entries of controllers that are gone: libnvme's udev rule does so where libnvme
// is.
func (t Tree) Tidy() error {
	entries, err := os.ReadDir(t.path(registryDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		name, old := e.Name(), ".old-"+e.Name()
		if !strings.HasPrefix(name, "nvme") || !t.outdated(name, name) {
			continue
		}
		// Moved aside first: somebody may just put the entry of a new controller in its place.
		if err := os.Rename(t.path(registryDir, name), t.path(registryDir, old)); err != nil {
			errs = append(errs, err)
		} else if t.outdated(old, name) {
			errs = append(errs, os.RemoveAll(t.path(registryDir, old)))
		} else {
			errs = append(errs, os.Rename(t.path(registryDir, old), t.path(registryDir, name)))
		}
	}
	return errors.Join(errs...)
}

// Claim enters an owner for a controller that was just connected. The entry appears whole or not
// at all; with it the kernel's event number is kept, by which a later removal is told
// from one of a former controller of this number.
func (t Tree) Claim(instance int, owner string) (err error) {
	dir := t.path(registryDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(tmp)
		}
	}()
	files := map[string]string{"owner": owner}
	if seq, err := t.read("sys/kernel/uevent_seqnum"); err == nil {
		files["seqnum"] = seq
	}
	if device := t.device(fmt.Sprintf("nvme%d", instance)); device != "" {
		files[deviceFile] = device
	}
	for name, text := range files {
		if err := writeSynced(filepath.Join(tmp, name), text+"\n"); err != nil {
			return err
		}
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	final := t.path(registryDir, fmt.Sprintf("nvme%d", instance))
	err = os.Rename(tmp, final)
	if errors.Is(err, fs.ErrExist) { // of a controller that had this number before
		if err := os.RemoveAll(final); err != nil {
			return err
		}
		err = os.Rename(tmp, final)
	}
	return err
}

// Release removes the entry of a controller that is gone.
func (t Tree) Release(instance int) error {
	return os.RemoveAll(t.path(registryDir, fmt.Sprintf("nvme%d", instance)))
}

func writeSynced(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}
