package hostkernel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asWriter has the test binary be the child.
const asWriter = "INOF_TEST_WRITER"

func TestMain(m *testing.M) {
	if os.Getenv(asWriter) != "" {
		if ServeWrites(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newTestWriter(t *testing.T) *Writer {
	t.Helper()
	t.Setenv(asWriter, "1")
	w := NewWriter("/proc/self/exe")
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// A write that blocks holds up no other, and the waiting for it can be ended.
func TestAWriteThatBlocksHoldsUpNoOther(t *testing.T) {
	w, dir := newTestWriter(t), t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil { // nobody reads from it
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	blocked := make(chan error, 1)
	go func() { blocked <- w.Write(ctx, pipe, "1") }()
	if err := w.Write(t.Context(), file, "reset"); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(file); string(b) != "reset" {
		t.Errorf("%q is written", b)
	}
	if err := w.Write(t.Context(), filepath.Join(dir, "none", "x"), "1"); err == nil || !strings.Contains(err.Error(), "none/x: no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
	select {
	case err := <-blocked:
		t.Errorf("the blocked one ended: %v", err)
	default:
	}
	cancel()
	if err := <-blocked; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A child that ended is said, and the next write has another one.
func TestAWriterThatEndedIsStartedAgain(t *testing.T) {
	w, dir := newTestWriter(t), t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	blocked := make(chan error, 1)
	go func() { blocked <- w.Write(t.Context(), pipe, "1") }()
	for w.waits() == 0 {
		time.Sleep(time.Millisecond)
	}
	w.mu.Lock()
	w.in.Close() // as if it ended: it does at the end of its input
	w.mu.Unlock()
	if err := <-blocked; !errors.Is(err, ErrWriterGone) {
		t.Error(err)
	}
	if err := w.Write(t.Context(), file, "again"); err != nil {
		t.Error(err)
	}
	w.mu.Lock()
	w.in.Close() // and before anybody has noticed
	w.mu.Unlock()
	if err := w.Write(t.Context(), file, "once more"); err != nil {
		t.Error(err)
	}
}

func (w *Writer) waits() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}
