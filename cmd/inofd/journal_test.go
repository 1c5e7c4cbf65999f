package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLinesForTheJournalHaveTheirPriority(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(newJournalHandler(&b, func(w io.Writer) slog.Handler {
		return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})
	}))
	log.Debug("d")
	log.With("port", "e1").Info("i")
	log.Warn("w\nnext line")
	log.WithGroup("g").Error("e", "a", 1)
	want := "<7>level=DEBUG msg=d\n<6>level=INFO msg=i port=e1\n<4>level=WARN msg=\"w\\nnext line\"\n<3>level=ERROR msg=e g.a=1\n"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyTheStreamOfTheServiceManagerIsTheJournal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	for stream, want := range map[string]bool{own: true, "": false, own + "1": false} {
		if got := toJournal(f, stream); got != want {
			t.Errorf("JOURNAL_STREAM=%q: %t", stream, got)
		}
	}
}
