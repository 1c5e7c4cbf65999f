package daemon

import (
	"context"
	"log/slog"
	"slices"

	"maps"

	"github.com/openinof/inof/internal/api"
)

// logWriter writes events to the log. It reads them from the event log at its own
// pace, so that no fault waits for a log line.
type logWriter struct{ d *Daemon }

func (w logWriter) String() string { return "log writer" }

func (w logWriter) Run(ctx context.Context) error {
	var after uint64
	for {
		b, err := w.d.log.Subscribe(ctx, after)
		if err != nil {
			w.write(w.d.log.Events(after))
			return nil
		}
		after = b.Last
		w.write(b)
	}
}

func (w logWriter) write(b api.EventBatch) {
	if b.Missed > 0 {
		w.d.logged.Add(b.Missed)
		w.d.env.Log.Warn("the log could not keep up", "events_not_logged", b.Missed)
	}
	for _, e := range b.Events {
		level := slog.LevelInfo
		if e.Kind == "error" || e.Kind == "conflict" || e.Warning != "" || e.Kind == "warning" && e.Fields["state"] == "raised" {
			level = slog.LevelWarn
		}
		attrs := []slog.Attr{slog.String("kind", e.Kind)}
		for _, a := range []struct{ key, value string }{{"device", e.Device}, {"port", e.Port}, {"addr", e.Addr}} {
			if a.value != "" {
				attrs = append(attrs, slog.String(a.key, a.value))
			}
		}
		for _, k := range slices.Sorted(maps.Keys(e.Fields)) {
			attrs = append(attrs, slog.String(k, e.Fields[k]))
		}
		w.d.env.Log.LogAttrs(context.Background(), level, e.Text, attrs...)
	}
}
