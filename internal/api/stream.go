package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// How long a reader that takes nothing is waited for before it is cut off.
const (
	streamTimeout = 10 * time.Second // for each write of a stream
	answerTimeout = time.Minute      // for a whole answer
)

// patience gives the reader a time to take what is written next.
func patience(w http.ResponseWriter, d time.Duration) {
	// Fails where deadlines are not supported (a recorder in a test): no harm.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

// missedLine tells a stream's reader how many events it lost.
type missedLine struct {
	Missed uint64 `json:"missed"`
}

func eventQuery(p *params) EventQuery {
	return EventQuery{
		After: p.number("after", 64), Kind: p.text("kind"), Port: p.text("port"),
		Addr: p.text("addr"),
	}
}

// ListEvents gives the events that are held, oldest first.
func ListEvents(ctx context.Context, src EventSource, q EventQuery) ([]Event, error) {
	match, learn := eventMatch(ctx, src, q)
	list := src.Events(q.After).Events
	for i := range list {
		learn(&list[i])
	}
	return filter(list, match), nil
}

// wantsEvents reports whether a request asks for Server-Sent Events.
func wantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), eventStream)
}

const (
	eventStream = "text/event-stream"
	// heartbeat is how often a stream of Server-Sent Events says that it is alive.
	heartbeat = 15 * time.Second
)

// streamWriter writes a stream in one of its forms.
type streamWriter interface {
	event(e *Event) error
	missed(n uint64) error
	alive() error // says that the stream stands, where the form has a word for it
	contentType() string
}

// lineWriter writes what a stream has, one JSON value a line.
type lineWriter struct{ enc *json.Encoder }

func (l lineWriter) event(e *Event) error  { return l.enc.Encode(e) }
func (l lineWriter) missed(n uint64) error { return l.enc.Encode(missedLine{n}) }
func (l lineWriter) alive() error          { return nil }
func (l lineWriter) contentType() string   { return "application/jsonl" }

// sseWriter writes it as Server-Sent Events; the ID of each is the event's, by which a browser
// that comes back says where it was (Last-Event-ID).
type sseWriter struct{ w io.Writer }

func (s sseWriter) event(e *Event) error {
	data, err := json.Marshal(e) // JSON has no line ends outside of texts, and escapes those within
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.w, "id: %d\ndata: %s\n\n", e.ID, data)
	return err
}

func (s sseWriter) missed(n uint64) error {
	_, err := fmt.Fprintf(s.w, "event: missed\ndata: {\"missed\":%d}\n\n", n)
	return err
}

func (s sseWriter) alive() error {
	_, err := io.WriteString(s.w, ": alive\n\n")
	return err
}

func (s sseWriter) contentType() string { return eventStream }

// follow streams events until the reader or the server goes. Without `after`, or a
// Last-Event-ID, it begins with the next event.
func (h *handler) follow(w http.ResponseWriter, r *http.Request) {
	p := query(r)
	p.choice("follow", "1", "true")
	q := eventQuery(p)
	if limit := p.text("limit"); limit != "" {
		p.fail("limit", limit, "no limit with follow")
	}
	if err := p.close(); err != nil {
		fail(w, err)
		return
	}
	match, learn := eventMatch(r.Context(), h.src, q)
	after := q.After
	var out streamWriter = lineWriter{json.NewEncoder(w)}
	last, err := uint64(0), errors.New("none")
	if wantsEvents(r) {
		out = sseWriter{w}
		last, err = strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64)
	}
	switch {
	case err == nil:
		after = last
	case !p.values.Has("after"):
		after = h.src.Events(^uint64(0)).Last
	}
	w.Header().Set("Content-Type", out.contentType())
	w.Header().Set("Cache-Control", "no-store")
	rc := http.NewResponseController(w)
	patience(w, streamTimeout)
	if out.alive() != nil || rc.Flush() != nil {
		return
	}
	for {
		ctx, cancel := context.WithTimeout(r.Context(), heartbeat)
		batch, err := h.src.Subscribe(ctx, after)
		cancel()
		patience(w, streamTimeout)
		switch {
		case r.Context().Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			if out.alive() != nil || rc.Flush() != nil {
				return
			}
			continue
		case err != nil:
			return
		}
		after = batch.Last
		if batch.Missed > 0 && out.missed(batch.Missed) != nil {
			return
		}
		for i := range batch.Events {
			learn(&batch.Events[i])
			if match(&batch.Events[i]) && out.event(&batch.Events[i]) != nil {
				return
			}
		}
		if rc.Flush() != nil {
			return
		}
	}
}
