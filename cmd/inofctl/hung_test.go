package main

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api/apitest"
)

// hungDaemon listens as a daemon that is stopped does: the kernel takes connections, nobody answers.
func hungDaemon(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return socket
}

func TestEachCommandGivesUpOnADaemonThatDoesNotAnswer(t *testing.T) {
	socket := hungDaemon(t)
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	for args, want := range map[string]string{
		"show status":           "did not answer",
		"watch":                 "did not answer",
		"top -n 1":              "did not answer",
		"doctor":                "did not answer",
		"reload":                "did not answer",
		"zone confirm":          "did not answer",
		"zone history":          "did not answer",
		"drain device":          "did not answer",
		"config check":          "did not answer",
		"zone rollback 1":       "did not answer",
		"support " + file:       "did not answer",
		"test-notice 192.0.2.1": "did not answer",
		"hard-zoning show":      "did not answer",
	} {
		t.Run(args, func(t *testing.T) {
			var out, errs bytes.Buffer
			a := &app{out: &out, err: &errs, now: func() time.Time { return apitest.Now }, patience: 20 * time.Millisecond}
			done := make(chan int, 1)
			go func() { done <- a.execute(t.Context(), append(strings.Fields(args), "--socket", socket)) }()
			select {
			case code := <-done:
				if said := out.String() + errs.String(); !strings.Contains(said, want) || (code == 0) != strings.HasPrefix(args, "support") {
					t.Errorf("exit code %d, %q", code, said)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it waits without end")
			}
		})
	}
}
