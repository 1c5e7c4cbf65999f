package bfdd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTheSocketIsForItsOwnerAndForOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bfd.sock")
	l, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Listen(short, path); !errors.Is(err, ErrTaken) {
		t.Errorf("a second process: %v", err)
	}
	type result struct {
		l   net.Listener
		err error
	}
	second := make(chan result, 1)
	go func() { l, err := Listen(t.Context(), path); second <- result{l, err} }()
	l.Close()
	l.(*locked).lock.Close() // the end of the first process
	if r := <-second; r.err != nil {
		t.Error(r.err)
	} else {
		r.l.Close()
	}
}
