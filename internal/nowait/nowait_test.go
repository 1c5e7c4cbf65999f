package nowait

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
)

func TestSocketsThatDoNotBlock(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b := uintptr(fds[0]), uintptr(fds[1])
	buf := make([]byte, 8)
	if n, err := Read(b, buf); n != 0 || !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("nothing there: read %d, %v", n, err)
	}
	if n, err := Write(a, []byte("abc")); n != 3 || err != nil {
		t.Fatalf("write %d, %v", n, err)
	}
	if n, err := Read(b, buf); err != nil || !bytes.Equal(buf[:n], []byte("abc")) {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	if n, err := Write(a, nil); n != 0 || err != nil {
		t.Errorf("write nothing: %d, %v", n, err)
	}
	big, sent := make([]byte, 1<<20), 0
	for {
		n, err := Write(a, big)
		if err != nil {
			if n != 0 || !errors.Is(err, syscall.EAGAIN) {
				t.Errorf("a full socket: wrote %d, %v", n, err)
			}
			break
		}
		sent += n
	}
	if sent == 0 {
		t.Error("a socket took nothing")
	}
	_ = syscall.Close(fds[0])
	for sent > 0 {
		n, err := Read(b, big)
		if n == 0 || err != nil {
			t.Fatalf("%d bytes are missing: %v", sent, err)
		}
		sent -= n
	}
	if n, err := Read(b, buf); n != 0 || err != nil {
		t.Errorf("at the end: %d, %v; want 0 and no error", n, err)
	}
	if _, err := Write(b, buf); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write to nobody: %v", err)
	}
	_ = syscall.Close(fds[1])
	if _, err := Read(^uintptr(0), buf); !errors.Is(err, syscall.EBADF) {
		t.Errorf("no descriptor: %v", err)
	}
}
