package logbound

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// Window is how long lines are counted together.
	Window = 10 * time.Second
	// PerSource is how many lines that are alike one port, device or peer writes in a Window.
	PerSource = 32
	// PerKind is how many lines that are alike are written in a Window in all.
	PerKind = 500
	// maxKinds bounds the memory: what is new beyond it counts as one kind.
	maxKinds = 4096
	// maxShape is how much of a text is compared, in bytes.
	maxShape = 96
)

// sources are the attributes that tell who causes a line, in the log of this project.
var sources = map[string]bool{"port": true, "device": true, "peer": true, "reflector": true}

// Handler is a slog.Handler before another one. Use New.
type Handler struct {
	next  slog.Handler
	known string // source attributes of With
	*state
}

// state is what a Handler shares with those made of it.
type state struct {
	mu       sync.Mutex
	kinds    map[key]*kind
	counters Counters
}

// Counters are totals since New.
type Counters struct {
	Written uint64 `json:"written"`  // lines, without those that say what was left out
	LeftOut uint64 `json:"left_out"` // lines
}

// key names lines that are counted together; source is empty for those of all sources.
type key struct {
	level  slog.Level
	shape  string
	source string
}

// kind is what is known of such lines in the present window.
type kind struct {
	written, leftOut int
	last             slog.Record // that was left out
	next             slog.Handler
}

// New puts bounds before next.
func New(next slog.Handler) *Handler {
	return &Handler{next: next, state: &state{kinds: make(map[key]*kind)}}
}

// Counters may be called by any goroutine.
func (h *Handler) Counters() Counters {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counters
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	known := h.known
	for _, a := range attrs {
		known += sourceOf(a)
	}
	return &Handler{h.next.WithAttrs(attrs), known, h.state}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.next.WithGroup(name), h.known, h.state}
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	source := h.known
	r.Attrs(func(a slog.Attr) bool {
		source += sourceOf(a)
		return true
	})
	if !h.pass(key{level: r.Level, shape: shape(r.Message), source: source}, r) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

// pass reports whether a line may be written now, and counts it.
func (h *Handler) pass(k key, r slog.Record) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	own, all := h.kind(k), h.kind(key{level: k.level, shape: k.shape})
	switch {
	case k.source != "" && own.written >= PerSource:
		h.leave(own, r)
		return false
	case all.written >= PerKind:
		h.leave(all, r)
		return false
	}
	own.written++
	if all != own {
		all.written++
	}
	h.counters.Written++
	return true
}

// kind gives the count of a key; a window begins with its first line.
func (h *Handler) kind(k key) *kind {
	c := h.kinds[k]
	if c != nil {
		return c
	}
	if len(h.kinds) >= maxKinds {
		k = key{level: k.level}
		if c = h.kinds[k]; c != nil {
			return c
		}
	}
	c = &kind{next: h.next}
	h.kinds[k] = c
	time.AfterFunc(Window, func() { h.end(k) })
	return c
}

func (h *Handler) leave(c *kind, r slog.Record) {
	c.leftOut++
	c.last = r.Clone()
	h.counters.LeftOut++
}

// end ends a window, and says what was left out in it.
func (h *Handler) end(k key) {
	h.mu.Lock()
	c := h.kinds[k]
	delete(h.kinds, k)
	h.mu.Unlock()
	if c.leftOut == 0 {
		return
	}
	r := slog.NewRecord(c.last.Time, c.last.Level, c.last.Message, c.last.PC)
	c.last.Attrs(func(a slog.Attr) bool { r.AddAttrs(a); return true })
	r.AddAttrs(slog.Int("left_out", c.leftOut))
	_ = c.next.Handle(context.Background(), r) // as slog does: there is nobody to tell
}

// sourceOf gives what an attribute says of who causes a line; of an address and port, the
// address: a client comes from another port each time.
func sourceOf(a slog.Attr) string {
	if !sources[a.Key] {
		return ""
	}
	v := a.Value.Resolve().String()
	if a.Key == "peer" {
		if i := strings.LastIndexByte(v, ':'); i > 0 {
			v = v[:i]
		}
	}
	return a.Key + "=" + v + " "
}

// shape is a text without what differs between lines that are alike: words with a digit
// in them, which are numbers, addresses and names of ports.
func shape(text string) string {
	if len(text) > maxShape {
		text = text[:maxShape]
	}
	var b strings.Builder
	for word := range strings.FieldsSeq(text) {
		if strings.ContainsAny(word, "0123456789") {
			word = "#"
		}
		b.WriteString(word)
		b.WriteByte(' ')
	}
	return b.String()
}
