// Package journald writes a log into systemd's journal with fields of its own: `journalctl
// INOF_PORT=swp1` or `MESSAGE_ID=...` finds what a text search would not.
package journald

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/journal"
)

// Here reports whether what this process writes on standard error goes to the journal
// (JOURNAL_STREAM, systemd.exec(5)).
func Here() bool {
	is, err := journal.StderrIsJournalStream()
	return err == nil && is
}

// Prefix gives a line on standard error its priority in the journal (sd-daemon(3)); without
// one all lines have the same.
func Prefix(l slog.Level) string { return fmt.Sprintf("<%d>", priority(l)) }

func priority(l slog.Level) journal.Priority {
	switch {
	case l >= slog.LevelError:
		return journal.PriErr
	case l >= slog.LevelWarn:
		return journal.PriWarning
	case l >= slog.LevelInfo:
		return journal.PriInfo
	}
	return journal.PriDebug
}

// MessageID is the MESSAGE_ID of a kind of event: the first half of the SHA-1 of
// "inof/" and the kind, as a UUID of version 5 (RFC 9562 section 5.5, without a namespace).
func MessageID(kind string) string {
	sum := sha1.Sum([]byte("inof/" + kind))
	sum[6] = sum[6]&0x0f | 0x50
	sum[8] = sum[8]&0x3f | 0x80
	return hex.EncodeToString(sum[:16])
}

// maxField is the longest name of a field, bytes; journald's own limit is 64.
const maxField = 60

// Handler is a slog.Handler that gives the journal each record with its attributes as fields:
// INOF_ and the name in capitals. If the journal does not take it, it is a line on standard
// error, with its priority before it.
type Handler struct {
	slog.Handler // writes a line into buffer
	shared       *shared
	group        string
	fields       map[string]string
}

type shared struct {
	mu     sync.Mutex
	buffer bytes.Buffer
	send   func(message string, priority journal.Priority, vars map[string]string) error
	stderr io.Writer
}

// New makes a handler; lines makes the one for lines of text.
func New(stderr io.Writer, lines func(io.Writer) slog.Handler) slog.Handler {
	return newHandler(stderr, journal.Send, lines)
}

func newHandler(stderr io.Writer, send func(string, journal.Priority, map[string]string) error, lines func(io.Writer) slog.Handler) slog.Handler {
	s := &shared{send: send, stderr: stderr}
	return Handler{Handler: lines(&s.buffer), shared: s}
}

// Handle implements slog.Handler.
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	fields := maps.Clone(h.fields)
	if fields == nil {
		fields = map[string]string{}
	}
	r.Attrs(func(a slog.Attr) bool {
		add(fields, h.group, a)
		return true
	})
	if kind := fields["INOF_KIND"]; kind != "" {
		fields["MESSAGE_ID"] = MessageID(kind)
	}
	s := h.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffer.Reset()
	if err := h.Handler.Handle(ctx, r); err != nil {
		return err
	}
	line := bytes.TrimSuffix(s.buffer.Bytes(), []byte("\n"))
	if s.send(string(line), priority(r.Level), fields) == nil {
		return nil
	}
	_, err := fmt.Fprintf(s.stderr, "%s%s\n", Prefix(r.Level), line)
	return err
}

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	fields := maps.Clone(h.fields)
	if fields == nil {
		fields = map[string]string{}
	}
	for _, a := range attrs {
		add(fields, h.group, a)
	}
	h.Handler, h.fields = h.Handler.WithAttrs(attrs), fields
	return h
}

// WithGroup implements slog.Handler.
func (h Handler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	if name != "" {
		h.group += name + "_"
	}
	return h
}

// add makes an attribute a field, a group several.
func add(fields map[string]string, group string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "_"
		}
		for _, sub := range v.Group() {
			add(fields, group, sub)
		}
		return
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, "INOF_"+group+a.Key)
	fields[name[:min(len(name), maxField)]] = v.String()
}
