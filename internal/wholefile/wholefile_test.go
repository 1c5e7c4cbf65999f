package wholefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAFileIsReplacedWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	holds := func(want string) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil || string(b) != want {
			t.Errorf("%q, %v, want %q", b, err, want)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("files %v, %v", files, err)
		}
	}
	if err := Put(path, 0o600, []byte("one")); err != nil {
		t.Fatal(err)
	}
	holds("one")
	full := errors.New("the disk is full")
	err := Write(path, 0o640, func(f *os.File) error {
		if st, err := f.Stat(); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("others may read what is being written: %v, %v", st.Mode(), err)
		}
		_, _ = f.WriteString("half of")
		return full
	})
	if !errors.Is(err, full) {
		t.Error(err)
	}
	holds("one")
	if err := Put(path, 0o640, []byte("two")); err != nil {
		t.Fatal(err)
	}
	holds("two")
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if err := Put(filepath.Join(dir, "none", "file"), 0o600, nil); err == nil {
		t.Error("a file of no directory was written")
	}
}
