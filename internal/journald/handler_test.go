package journald

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/google/go-cmp/cmp"
)

// entry is what the journal gets.
type entry struct {
	Message  string
	Priority journal.Priority
	Fields   map[string]string
}

func logTo(stderr io.Writer, send func(string, journal.Priority, map[string]string) error) *slog.Logger {
	return slog.New(newHandler(stderr, send, func(w io.Writer) slog.Handler {
		return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}})
	}))
}

func TestAttributesAreFieldsOfTheJournal(t *testing.T) {
	var got []entry
	log := logTo(nil, func(m string, p journal.Priority, f map[string]string) error {
		got = append(got, entry{m, p, f})
		return nil
	})
	log.Debug("d")
	log.With("port", "e1").Info("i", "kind", "host", "fault-ns", 12)
	log.WithGroup("g").With("a", 1).Error("e\nf", slog.Group("h", "b", "x\ny"))
	want := []entry{
		{"msg=d", journal.PriDebug, map[string]string{}},
		{"msg=i port=e1 kind=host fault-ns=12", journal.PriInfo, map[string]string{
			"INOF_PORT": "e1", "INOF_KIND": "host", "INOF_FAULT_NS": "12", "MESSAGE_ID": MessageID("host")}},
		{`msg="e\nf" g.a=1 g.h.b="x\ny"`, journal.PriErr, map[string]string{"INOF_G_A": "1", "INOF_G_H_B": "x\ny"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestALineTheJournalDoesNotTakeIsOnStandardError(t *testing.T) {
	var b bytes.Buffer
	log := logTo(&b, func(string, journal.Priority, map[string]string) error { return errors.New("no socket") })
	log.Debug("d")
	log.With("port", "e1").Info("i")
	log.Warn("w\nnext line")
	log.WithGroup("g").Error("e", "a", 1)
	want := "<7>msg=d\n<6>msg=i port=e1\n<4>msg=\"w\\nnext line\"\n<3>msg=e g.a=1\n"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAKindHasAlwaysTheSameMessageID(t *testing.T) {
	if got, want := MessageID("conflict"), MessageID("conflict"); got != want || len(got) != 32 || got[12] != '5' || got == MessageID("host") {
		t.Error(got)
	}
}
