package telemetry

import (
	"maps"
	"slices"
	"time"

	"github.com/openinof/inof/internal/api"
)

// noticeRoom is the room of the counters of notices.
const noticeRoom = "hostnotify"

// noticeRow are the counters of notices by their names.
type noticeRow map[string]float64

var notices = group[noticeRow]{
	path: "/inof/notices/state", source: "daemon", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *noticeRow, ...string)) {
		row := noticeRow{}
		for i := range s.Counters {
			if c := &s.Counters[i]; c.Room == noticeRoom {
				row[c.Name] = c.Value
			}
		}
		give(s.At, &row)
	},
	leaves: []leaf[noticeRow]{
		result("decided", "decided", "taken up"),
		result("sent", "sent", "sent first"),
		result("retried", "retried", "sent again"),
		result("acked", "acked", "acked by their hosts"),
		result("superseded", "superseded", "replaced by a newer truth before they were acked"),
		result("given-up", "given_up", "given up: the host left"),
		result("cancelled", "cancelled", "taken back before they were sent"),
		{Leaf{Path: "waiting", Type: TypeUint64, Class: Gauge, Unit: "notices", Doc: "queued, not yet sent", Metric: Metric{Name: "notices_waiting"}}, counted("waiting")},
		{Leaf{Path: "in-flight", Type: TypeUint64, Class: Gauge, Unit: "notices", Doc: "sent, not acked", Metric: Metric{Name: "notices_unacked"}}, counted("in_flight")},
	},
}

// result is how many notices became something, by the counter that counts it.
func result(path, counter, doc string) leaf[noticeRow] {
	return leaf[noticeRow]{Leaf{Path: path, Type: TypeCounter, Class: Counter, Unit: "notices", Doc: doc,
		Metric: Metric{Name: "notices_total", Fixed: "result=" + counter}}, counted(counter)}
}

func counted(name string) func(*noticeRow) any {
	return func(r *noticeRow) any {
		v, ok := (*r)[name]
		if !ok {
			return nil
		}
		return uint64(v)
	}
}

// stage is a stage of the way from a fault to an ack.
type stage struct {
	*api.Stage
	bounds []float64
}

// quantile is a leaf of a stage, absent while it has no values.
func quantile(path, doc string, of func(*api.Quantiles) float64) leaf[stage] {
	return leaf[stage]{Leaf{Path: path, Type: TypeUint64, Unit: "nanoseconds", Class: Gauge, Doc: doc}, func(s *stage) any {
		if s.Total.Count == 0 {
			return nil
		}
		return time.Duration(of(&s.Total) * 1e3)
	}}
}

var stages = group[stage]{
	path: "/inof/notices/stage[scope name reason]/state", source: "daemon", least: time.Second,
	keys: []Leaf{{Path: "scope", Type: TypeEnum, Values: []string{string(api.ScopeOwn), string(api.ScopeReflector), string(api.ScopeTold)}}, {Path: "name", Type: TypeString}, {Path: "reason", Type: TypeString}},
	rows: func(s *Snapshot, give func(time.Time, *stage, ...string)) {
		for i := range s.Latency.Stages {
			st := &s.Latency.Stages[i]
			give(s.At, &stage{st, s.Latency.Bounds}, string(st.Scope), st.Name, st.Reason)
		}
	},
	leaves: []leaf[stage]{
		{Leaf{Path: "times", Type: TypeHistogram, Unit: "seconds", Class: Counter, Doc: "the distribution, in fixed buckets",
			Metric: Metric{Name: "notice_stage_seconds", Labels: "scope stage reason"}}, func(s *stage) any {
			return Histogram{Count: s.Total.Count, Sum: s.Sum, Bounds: s.bounds, Buckets: s.Buckets}
		}},
		{Leaf{Path: "count", Type: TypeCounter, Class: Counter, Doc: "values"}, func(s *stage) any { return s.Total.Count }},
		{Leaf{Path: "sum", Type: TypeUint64, Unit: "nanoseconds", Class: Counter, Doc: "of all values"}, func(s *stage) any { return time.Duration(s.Sum * 1e9) }},
		quantile("p50", "half of all are not longer", func(q *api.Quantiles) float64 { return q.P50 }),
		quantile("p90", "nine of ten are not longer", func(q *api.Quantiles) float64 { return q.P90 }),
		quantile("p99", "99 of 100 are not longer", func(q *api.Quantiles) float64 { return q.P99 }),
		quantile("max", "the longest", func(q *api.Quantiles) float64 { return q.Max }),
	},
}

// latest is atomic: its leaves are of one event.
var latest = group[api.Event]{
	path: "/inof/events/latest/state", source: "daemon", each: true,
	rows: func(s *Snapshot, give func(time.Time, *api.Event, ...string)) {
		if s.Latest != nil {
			give(s.Latest.Time, s.Latest)
		}
	},
	leaves: []leaf[api.Event]{
		{Leaf{Path: "id", Type: TypeUint64, Class: Event, Doc: "grows, also across restarts"}, func(e *api.Event) any { return e.ID }},
		{Leaf{Path: "time", Type: TypeTime, Class: Event, Doc: "when it happened"}, func(e *api.Event) any { return moment(&e.Time) }},
		{Leaf{Path: "kind", Type: TypeString, Class: Event, Doc: "port, host, zone, peer, fault, notice, config, ..."}, func(e *api.Event) any { return e.Kind }},
		{Leaf{Path: "text", Type: TypeString, Class: Event, Doc: "for people"}, func(e *api.Event) any { return e.Text }},
		{Leaf{Path: "device", Type: TypeString, Class: Event, Doc: "of which it is"}, func(e *api.Event) any { return some(e.Device) }},
		{Leaf{Path: "port", Type: TypeString, Class: Event, Doc: "of which it is"}, func(e *api.Event) any { return some(e.Port) }},
		{Leaf{Path: "address", Type: TypeString, Class: Event, Doc: "of the host that it is of"}, func(e *api.Event) any { return some(e.Addr) }},
		{Leaf{Path: "field", Type: TypeString, Many: true, Class: Event, Doc: "what else is said, as name=value"}, func(e *api.Event) any {
			var out []string
			for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
				out = append(out, name+"="+e.Fields[name])
			}
			return list(out)
		}},
	},
}

// kind is how many events of a kind there were.
type kind struct{ n uint64 }

var events = group[kind]{
	path: "/inof/events/total[kind]/state", source: "daemon", keys: keysOf("kind"),
	rows: func(s *Snapshot, give func(time.Time, *kind, ...string)) {
		names := make([]string, 0, len(s.Events))
		for name := range s.Events {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			give(s.At, &kind{s.Events[name]}, name)
		}
	},
	leaves: []leaf[kind]{
		{Leaf{Path: "count", Type: TypeCounter, Class: Counter, Unit: "events", Doc: "since the start", Metric: Metric{Name: "events_total", Labels: "kind"}}, func(k *kind) any { return k.n }},
	},
}

// OfEvent are the leaves that tell of each event, not only of the newest.
func OfEvent(e *api.Event) (t Tree) {
	s := &Snapshot{Latest: e}
	for _, p := range []part{latestPart, messagePart} {
		p.read(s, func(v Value) { t = append(t, v) })
	}
	return t
}
