package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/snsd"
)

// writer is where lines go.
type writer = io.Writer

// line is what is printed.
type line = hostagent.Line

// printer writes one line an event, each in one write so that a reader never sees
// half of one.
type printer func(l line) error

func newPrinter(format string, w writer) (printer, error) {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		return func(l line) error {
			l.NS = l.Time.UnixNano()
			return enc.Encode(l)
		}, nil
	case "text":
		return func(l line) error {
			_, err := io.WriteString(w, text(&l))
			return err
		}, nil
	}
	return nil, fmt.Errorf("--output %q: want text or json", format)
}

func text(l *line) string {
	return fmt.Sprintf("%s %s\n", l.Time.Format("15:04:05.000000000"), oneLine(l))
}

// oneLine is a line without its time.
func oneLine(l *line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s", l.Event)
	field := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	if l.Link != "" {
		field("%s %s", l.Interface, l.Link)
	}
	if l.Switch != "" {
		field("%s %s", l.Interface, l.Switch)
	}
	if len(l.Addresses) > 0 {
		for _, a := range l.Addresses {
			field("%s", a)
		}
	}
	if l.Subject.IsValid() {
		field("%s: %s %s", l.Host, l.Subject, l.State)
		if l.Reason != "" && l.Reason != snsd.ReasonNone.String() {
			field("(%s)", l.Reason)
		}
	}
	if s := l.Service; s != nil {
		field("%s %s", s.Role, s.Protocol)
		if s.Port != 0 {
			field("port %d", s.Port)
		}
		if s.NQN != "" {
			field("%s", s.NQN)
		}
	}
	if l.Seq != nil {
		field("seq %d", *l.Seq)
	}
	if l.Fence != nil {
		field("fence %s", l.Fence)
	}
	if l.Ignored {
		field("ignored")
	}
	if l.Acked != nil && !*l.Acked {
		field("not acked")
	}
	if l.Action != nil {
		field("%s", l.Action.Text())
	}
	if l.Error != "" {
		field("%s", l.Error)
	}
	return b.String()
}
