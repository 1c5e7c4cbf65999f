package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever started the daemon may be gone once it was ready, its socket with it or not:
// that is no news at a reload or a stop. That nobody hears READY is.
func TestAServiceManagerThatIsGoneIsNoNews(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "notify")
	t.Setenv("NOTIFY_SOCKET", sock)
	said := func(state string, mayBeGone bool) string {
		var b strings.Builder
		tell(&b, state, mayBeGone)
		return b.String()
	}
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: sock, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	if s := said("READY=1", false); s != "" {
		t.Errorf("told, and yet %q", s)
	}
	buf := make([]byte, 64)
	if n, err := l.Read(buf); err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("heard %q, %v", buf[:n], err)
	}
	for _, how := range []func(){func() { l.Close() }, func() { os.Remove(sock) }} { // nobody listens; no file
		how()
		if s := said("STOPPING=1", true); s != "" {
			t.Errorf("a manager that is gone: %q", s)
		}
		if s := said("READY=1", false); !strings.Contains(s, "cannot be told") {
			t.Errorf("nobody heard that all is ready: %q", s)
		}
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if s := said("READY=1", false); s != "" {
		t.Errorf("without a service manager: %q", s)
	}
	// Anything else that is wrong is said at any time.
	t.Setenv("NOTIFY_SOCKET", strings.Repeat("/long", 100))
	if s := said("STOPPING=1", true); !strings.Contains(s, "cannot be told") {
		t.Errorf("a name that cannot be: %q", s)
	}
}
