package api

import (
	"context"
	"encoding/json"
	"net/http"
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

// follow streams events until the reader or the server goes. Without `after` it
// begins with the next event.
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
	if !p.values.Has("after") {
		after = h.src.Events(^uint64(0)).Last
	}
	w.Header().Set("Content-Type", "application/jsonl")
	rc, enc := http.NewResponseController(w), json.NewEncoder(w)
	patience(w, streamTimeout)
	if rc.Flush() != nil {
		return
	}
	for {
		batch, err := h.src.Subscribe(r.Context(), after)
		if err != nil {
			return
		}
		after = batch.Last
		patience(w, streamTimeout)
		if batch.Missed > 0 && enc.Encode(missedLine{batch.Missed}) != nil {
			return
		}
		for i := range batch.Events {
			learn(&batch.Events[i])
			if match(&batch.Events[i]) && enc.Encode(&batch.Events[i]) != nil {
				return
			}
		}
		if rc.Flush() != nil {
			return
		}
	}
}
