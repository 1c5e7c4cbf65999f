package device

import (
	"fmt"
	"time"

	"github.com/openinof/inof/internal/api"
)

// eventLimiter keeps errors that somebody outside can cause at will from flooding
// the event log: at most errorBurst of one source in errorWindow, the rest is
// counted and told with the next one that passes.
type eventLimiter struct {
	sources map[string]*errorSource
}

type errorSource struct {
	since   time.Time
	told    int
	skipped int
}

const (
	errorWindow  = 10 * time.Second
	errorBurst   = 3
	errorSources = 1024 // sources remembered; beyond them the oldest windows go
)

// pass reports whether an error of this source may be told now, and how many before
// it were not.
func (l *eventLimiter) pass(source string, now time.Time) (skipped int, ok bool) {
	if l.sources == nil {
		l.sources = make(map[string]*errorSource)
	}
	s := l.sources[source]
	if s == nil {
		if len(l.sources) >= errorSources {
			l.forget(now)
		}
		s = &errorSource{since: now}
		l.sources[source] = s
	}
	if now.Sub(s.since) >= errorWindow {
		skipped = s.skipped
		*s = errorSource{since: now}
	}
	if s.told >= errorBurst {
		s.skipped++
		return 0, false
	}
	s.told++
	return skipped, true
}

func (l *eventLimiter) forget(now time.Time) {
	for k, s := range l.sources {
		if now.Sub(s.since) >= errorWindow {
			delete(l.sources, k)
		}
	}
	if len(l.sources) >= errorSources {
		clear(l.sources)
	}
}

// Complain tells operators of an error that came from outside. The counter that
// belongs to it is the caller's.
func (c *Core) Complain(now time.Time, what, source string, err error) {
	skipped, ok := c.limiter.pass(what+" "+source, now)
	if !ok {
		return
	}
	text := err.Error()
	if skipped > 0 {
		text = fmt.Sprintf("%s (and %d more like it were not shown)", text, skipped)
	}
	e := api.Event{Time: now, Kind: "error", Text: text, Fields: map[string]string{"room": what}}
	if what == "peer" {
		e.Device = source
	} else {
		e.Port = source
	}
	c.event(e)
}
