package cluster

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestWhatTheLibrarySaysIsForDebugging(t *testing.T) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	l := newLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))).Named("raft").With("peer", "m1")
	l.Error("it repeats itself", "term", 7)
	if out.Len() > 0 {
		t.Errorf("operators are told: %s", &out)
	}
	level.Set(slog.LevelDebug) // as a reload does
	l.Error("it repeats itself", "term", 7)
	if s := out.String(); !strings.Contains(s, `level=DEBUG msg="cluster: it repeats itself" peer=m1 term=7`) {
		t.Errorf("%q", s)
	}
	newLogger(nil).Warn("nobody is told")
}
