package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"sync"
)

// Deed is a request that changes something, or was to.
type Deed struct {
	By     string            // user, uid and process
	From   string            // the way it came
	What   string            // method, path and query
	Body   string            // the beginning of it
	Detail map[string]string // what the Source has noted
	Result string            // done, or the word of the refusal
	Error  string            // its text
}

// Auditor is a Source that keeps what was done and refused. Audit is called before there is an
// answer.
type Auditor interface {
	Audit(ctx context.Context, d Deed)
}

// Bounds of what is kept of a request, in bytes.
const (
	auditedBody  = 4 << 10
	auditedError = 4 << 10
)

type detailKey struct{}

type detail struct {
	mu    sync.Mutex
	notes map[string]string
}

// Note adds something to what is kept of the request of a context.
func Note(ctx context.Context, key, value string) {
	d, ok := ctx.Value(detailKey{}).(*detail)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes[key] = value
}

// audited has a Source keep what changes something.
func audited(src Source, next http.Handler) http.Handler {
	a, ok := src.(Auditor)
	if !ok {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Changes(r) {
			next.ServeHTTP(w, r)
			return
		}
		notes := &detail{notes: map[string]string{}}
		ctx := context.WithValue(r.Context(), detailKey{}, notes)
		body := &firstBytes{most: auditedBody}
		r = r.WithContext(ctx)
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, body), r.Body}
		answer := &heldAnswer{to: w, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		d := Deed{By: By(ctx), From: way(ctx), What: r.Method + " " + r.URL.RequestURI(), Body: body.String(), Detail: notes.notes, Result: "done"}
		if answer.status/100 != 2 {
			var e Error
			d.Result = http.StatusText(answer.status)
			if json.Unmarshal(answer.body.Bytes(), &e) == nil && e.Code != "" {
				d.Result, d.Error = e.Code, e.Message[:min(len(e.Message), auditedError)]
			}
		}
		a.Audit(ctx, d)
		answer.send()
	})
}

// way is how a request of the API came.
func way(ctx context.Context) string {
	if c, ok := CallerOf(ctx); ok && c.From != "" {
		return "HTTP from " + c.From
	}
	return "management socket"
}

// Do has src keep what is done in a context in another way than by the API, or refused: from is
// that way, what says what is asked for, body how in its first bytes.
func Do(ctx context.Context, src any, from, what, body string, do func(context.Context) error) error {
	a, ok := src.(Auditor)
	if !ok {
		return do(ctx)
	}
	notes := &detail{notes: map[string]string{}}
	ctx = context.WithValue(ctx, detailKey{}, notes)
	d := Deed{By: By(ctx), From: from, What: what, Body: body[:min(len(body), auditedBody)], Result: "done"}
	err := do(ctx)
	if err != nil {
		e := describe(err)
		d.Result, d.Error = e.Code, e.Message[:min(len(e.Message), auditedError)]
	}
	notes.mu.Lock()
	d.Detail = maps.Clone(notes.notes)
	notes.mu.Unlock()
	a.Audit(ctx, d)
	return err
}

// firstBytes keeps the beginning of what is written to it.
type firstBytes struct {
	bytes.Buffer
	most int
}

func (f *firstBytes) Write(b []byte) (int, error) {
	if room := f.most - f.Len(); room > 0 {
		f.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// heldAnswer is an answer that is sent once the deed is kept. Those to changes are small.
type heldAnswer struct {
	to     http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (h *heldAnswer) Header() http.Header         { return h.to.Header() }
func (h *heldAnswer) WriteHeader(status int)      { h.status = status }
func (h *heldAnswer) Write(b []byte) (int, error) { return h.body.Write(b) }

// Unwrap lets http.ResponseController reach the connection.
func (h *heldAnswer) Unwrap() http.ResponseWriter { return h.to }

func (h *heldAnswer) send() {
	h.to.WriteHeader(h.status)
	_, _ = h.to.Write(h.body.Bytes()) // an error here is the reader's: it has gone
}
