package hostkernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The registry says whose a controller is, so that several programs on a host leave each
// other's alone: /run/nvme/registry/nvmeN/owner, as libnvme 3 keeps it. No entry: nobody's.
const registryDir = "run/nvme/registry"

// maxOwner bounds the name of an owner that is read.
const maxOwner = 255

// Owner gives who owns a controller, empty if nobody does or the entry makes no sense.
func (t Tree) Owner(instance int) string {
	name := fmt.Sprintf("nvme%d", instance)
	text, err := t.read(registryDir, name, "owner")
	if err != nil || len(text) > maxOwner || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return ""
	}
	return text
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
