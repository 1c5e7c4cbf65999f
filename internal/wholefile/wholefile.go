// Package wholefile replaces files so that a crash, also of the machine, leaves what was there
// before or what is there now, and never a part of either.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts a file at path that fill writes, and waits for the disk. Until it has its permissions
// nobody but its owner may read it. When there is an error the file of before is still there.
func Write(path string, mode fs.FileMode, fill func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed, as it should
	if err := errors.Join(fill(f), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Put is Write of bytes.
func Put(path string, mode fs.FileMode, b []byte) error {
	return Write(path, mode, func(f *os.File) error { _, err := f.Write(b); return err })
}

// SyncDir waits until the disk knows which files there are in a directory.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
