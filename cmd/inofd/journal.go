package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// toJournal tells whether a file is the stream to systemd's journal that the service
// manager gave us (JOURNAL_STREAM, systemd.exec(5): its device and inode).
func toJournal(f *os.File, stream string) bool {
	var st unix.Stat_t
	if stream == "" || unix.Fstat(int(f.Fd()), &st) != nil {
		return false
	}
	return stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// underJournal tells whether what this process writes on standard error goes there.
func underJournal() bool { return toJournal(os.Stderr, os.Getenv("JOURNAL_STREAM")) }

// priority is the prefix of a line that gives it its priority in the journal
// (sd-daemon(3)); without one all lines have the same.
func priority(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "<3>"
	case l >= slog.LevelWarn:
		return "<4>"
	case l >= slog.LevelInfo:
		return "<6>"
	}
	return "<7>"
}

// journalWriter puts the priority of the record that is being written before its line.
type journalWriter struct {
	mu     sync.Mutex // held while a record is written
	prefix string
	to     io.Writer
}

func (w *journalWriter) Write(line []byte) (int, error) {
	n, err := w.to.Write(append([]byte(w.prefix), line...))
	return max(0, n-len(w.prefix)), err
}

// journalHandler is a handler that writes to w, one line a record.
type journalHandler struct {
	slog.Handler
	w *journalWriter
}

func newJournalHandler(to io.Writer, lines func(io.Writer) slog.Handler) slog.Handler {
	w := &journalWriter{to: to}
	return journalHandler{lines(w), w}
}

// Handle implements slog.Handler.
func (h journalHandler) Handle(ctx context.Context, r slog.Record) error {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.w.prefix = priority(r.Level)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return journalHandler{h.Handler.WithAttrs(attrs), h.w}
}

// WithGroup implements slog.Handler.
func (h journalHandler) WithGroup(name string) slog.Handler {
	return journalHandler{h.Handler.WithGroup(name), h.w}
}
