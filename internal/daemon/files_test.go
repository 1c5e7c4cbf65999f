package daemon

import (
	"errors"
	"testing"
)

// A state directory is new until a daemon has used it, however it ended.
func TestADirectoryIsUnusedOnce(t *testing.T) {
	dir := t.TempDir()
	for _, unused := range []bool{true, false, false} {
		l, err := lockDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if l.unused != unused {
			t.Errorf("unused is %v, want %v", l.unused, unused)
		}
		if _, err := lockDir(dir); !errors.Is(err, errLocked) {
			t.Errorf("a second daemon gets %v", err)
		}
		l.release()
	}
}
