package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"maps"
	"os"
	"strconv"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/syslog"
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
		if troubling(&e) {
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

// troubling reports whether an operator should see to an event.
func troubling(e *api.Event) bool {
	return e.Kind == "error" || e.Kind == "conflict" || e.Warning != "" || e.Kind == "warning" && e.Fields["state"] == "raised"
}

// newSyslogs makes what sends the events of this process to servers.
func (d *Daemon) newSyslogs(cfg *config.Syslog) (list []*syslog.Sender) {
	from := remoteLog{d.log, cfg, d.cfg.Load().Device.Name}
	for _, server := range cfg.Servers {
		list = append(list, syslog.New(syslog.Config{
			Server: server, From: from, Sent: uint64(max(d.started.UnixMicro(), 1)) - 1, TLS: cfg.TLS,
			Lost: func(n uint64) syslog.Message {
				return from.message(&api.Event{Time: d.env.Now(), Kind: "events-lost", Fields: map[string]string{"events": strconv.FormatUint(n, 10)},
					Text: fmt.Sprintf("%d event(s) before this were not sent: the server could not be reached, or was too slow", n)})
			},
		}))
	}
	return list
}

// syslogTroubles says which servers are not reached, and why.
func (d *Daemon) syslogTroubles() (list []string) {
	for _, s := range d.syslogs {
		if why := s.Trouble(); why != "" {
			list = append(list, s.String()+": "+why)
		}
	}
	return list
}

// remoteLog is the event log as syslog servers get it.
type remoteLog struct {
	log  *api.EventLog
	cfg  *config.Syslog
	host string
}

// After implements syslog.Log.
func (r remoteLog) After(number uint64) syslog.Batch { return r.batch(r.log.Events(number)) }

// Wait implements syslog.Log.
func (r remoteLog) Wait(ctx context.Context, number uint64) (syslog.Batch, error) {
	b, err := r.log.Subscribe(ctx, number)
	return r.batch(b), err
}

func (r remoteLog) batch(b api.EventBatch) syslog.Batch {
	out := syslog.Batch{Missed: b.Missed, Last: b.Last}
	for i := range b.Events {
		out.Messages = append(out.Messages, r.message(&b.Events[i]))
	}
	return out
}

// message is an event with all that it is about as structured data. Time stamps of syslog end
// at microseconds, so that nanoseconds are there too.
func (r remoteLog) message(e *api.Event) syslog.Message {
	m := syslog.Message{
		Number: e.ID, Facility: r.cfg.Facility, Severity: syslog.Info, Time: e.Time, Host: r.host, App: "inofd", Proc: strconv.Itoa(os.Getpid()),
		ID: e.Kind, Data: "inof@" + strconv.Itoa(r.cfg.Enterprise), Text: e.Text,
		Params: []syslog.Param{
			{Name: "id", Value: strconv.FormatUint(e.ID, 10)}, {Name: "kind", Value: e.Kind}, {Name: "device", Value: e.Device},
			{Name: "port", Value: e.Port}, {Name: "addr", Value: e.Addr}, {Name: "warning", Value: e.Warning},
			{Name: "time-ns", Value: strconv.FormatInt(e.Time.UnixNano(), 10)},
		},
	}
	if troubling(e) {
		m.Severity = syslog.Warning
	}
	for _, k := range slices.Sorted(maps.Keys(e.Fields)) {
		m.Params = append(m.Params, syslog.Param{Name: k, Value: e.Fields[k]})
	}
	return m
}
