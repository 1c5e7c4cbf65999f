package telemetry

import (
	"slices"
	"time"

	"github.com/openinof/inof/internal/api"
)

// noticeRoom is the room of the counters of notices.
const noticeRoom = "hostnotify"

var noticeCounts = group[api.Counter]{
	path: "/inof/notices", source: "daemon", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *api.Counter, ...string)) {
		for i := range s.Counters {
			if c := &s.Counters[i]; c.Room == noticeRoom && (c.Name == "waiting" || c.Name == "in_flight") {
				give(s.At, c)
			}
		}
	},
	leaves: []leaf[api.Counter]{
		{Leaf{Path: "waiting", Type: "uint64", Class: Gauge, Unit: "notices", Doc: "queued, not yet sent", Metric: Metric{Name: "notices_waiting"}}, named("waiting")},
		{Leaf{Path: "in-flight", Type: "uint64", Class: Gauge, Unit: "notices", Doc: "sent, not acked", Metric: Metric{Name: "notices_unacked"}}, named("in_flight")},
	},
}

func named(name string) func(*api.Counter) any {
	return func(c *api.Counter) any {
		if c.Name != name {
			return nil
		}
		return uint64(c.Value)
	}
}

// results are what becomes of notices, by the counters that count it.
var results = []string{"decided", "sent", "retried", "acked", "superseded", "given_up", "cancelled"}

var noticeResults = group[api.Counter]{
	path: "/inof/notices/result[name]", source: "daemon", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *api.Counter, ...string)) {
		for i := range s.Counters {
			if c := &s.Counters[i]; c.Room == noticeRoom && slices.Contains(results, c.Name) {
				give(s.At, c, c.Name)
			}
		}
	},
	leaves: []leaf[api.Counter]{
		{Leaf{Path: "count", Type: "yang:counter64", Class: Counter, Unit: "notices", Doc: "decided, sent, retried, acked, superseded, given_up or cancelled",
			Metric: Metric{Name: "notices_total", Labels: "result"}}, func(c *api.Counter) any { return uint64(c.Value) }},
	},
}

// stage is a stage of the way from a fault to an ack.
type stage struct {
	*api.Stage
	bounds []float64
}

// quantile is a leaf of a stage, absent while it has no values.
func quantile(path, doc string, of func(*api.Quantiles) float64) leaf[stage] {
	return leaf[stage]{Leaf{Path: path, Type: "uint64", Unit: "nanoseconds", Class: Gauge, Doc: doc}, func(s *stage) any {
		if s.Total.Count == 0 {
			return nil
		}
		return time.Duration(of(&s.Total) * 1e3)
	}}
}

var stages = group[stage]{
	path: "/inof/notices/stage[scope name reason]", source: "daemon", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *stage, ...string)) {
		for i := range s.Latency.Stages {
			st := &s.Latency.Stages[i]
			give(s.At, &stage{st, s.Latency.Bounds}, string(st.Scope), st.Name, st.Reason)
		}
	},
	leaves: []leaf[stage]{
		{Leaf{Path: "times", Type: "container", Unit: "seconds", Class: Counter, Doc: "the distribution, in fixed buckets",
			Metric: Metric{Name: "notice_stage_seconds", Labels: "scope stage reason"}}, func(s *stage) any {
			return Histogram{Count: s.Total.Count, Sum: s.Sum, Bounds: s.bounds, Buckets: s.Buckets}
		}},
		{Leaf{Path: "count", Type: "yang:counter64", Class: Counter, Doc: "values"}, func(s *stage) any { return s.Total.Count }},
		quantile("p50", "half of all are not longer", func(q *api.Quantiles) float64 { return q.P50 }),
		quantile("p90", "nine of ten are not longer", func(q *api.Quantiles) float64 { return q.P90 }),
		quantile("p99", "99 of 100 are not longer", func(q *api.Quantiles) float64 { return q.P99 }),
		quantile("max", "the longest", func(q *api.Quantiles) float64 { return q.Max }),
	},
}

// kind is how many events of a kind there were.
type kind struct{ n uint64 }

var events = group[kind]{
	path: "/inof/events/total[kind]", source: "daemon",
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
		{Leaf{Path: "count", Type: "yang:counter64", Class: Counter, Unit: "events", Doc: "since the start", Metric: Metric{Name: "events_total", Labels: "kind"}}, func(k *kind) any { return k.n }},
	},
}
