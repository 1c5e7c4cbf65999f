package query

import (
	"context"
	"fmt"

	"github.com/openinof/inof/internal/api"
)

var latencies = object[api.Latency, api.Stage]{
	name: "latency", short: "How long each stage takes, from a fault to the host's ack",
	long: `Percentiles of every stage from a fault to the ack of the host that was told, since the
daemon started and of the newest values (NEWEST, at most 1,024 a stage):

  own        this device's events, up to the sessions with its reflectors
  reflector  clients' events, through this reflector
  told       events of any device, by the stamps that came with them, up to the hosts here;
             "notice" and "acked" are the whole way, one line for each reason

CLOCK counts values between two devices' clocks that are negative or longer than 10 s: they
are in no percentile; what is slow within a device is no such value. HELD counts those of
hosts whose own port was down meanwhile: they are in no percentile either, but in those of
held-frame and held-ack.`,
	read: func(ctx context.Context, src Source, _ Asked) (api.Latency, error) { return src.Latency(ctx) },
	rows: func(l *api.Latency) *[]api.Stage { return &l.Stages },
	filters: []filter[api.Stage]{
		equal(Filter{Name: "scope", Usage: "only these stages", Options: []string{string(api.ScopeOwn), string(api.ScopeReflector), string(api.ScopeTold)}},
			func(s *api.Stage) string { return string(s.Scope) }),
	},
	show: func(p *Page, l *api.Latency, _ Asked) {
		p.rows(tableOf(p, l.Stages, stageColumns))
		if l.Unmeasured > 0 {
			fmt.Fprintf(p, "\n%d notice(s) told of a fault whose time is not known: it was learned by a sync.\n", l.Unmeasured)
		}
		for _, c := range l.Clocks {
			ahead, side := c.Ahead, "ahead of"
			if ahead < 0 {
				ahead, side = -ahead, "behind"
			}
			fmt.Fprintf(p, "\nClock of reflector %s: %s %s ours, right to %s (%s ago).\n", c.Reflector, fine(ahead), side, fine(c.RoundTrip/2), p.Age(c.Measured))
		}
	},
}.query()

var stageColumns = []column[api.Stage]{
	{"SCOPE", func(s *api.Stage, _ *Page) string { return string(s.Scope) }},
	{"STAGE", func(s *api.Stage, _ *Page) string { return s.Name }},
	{"REASON", func(s *api.Stage, _ *Page) string { return s.Reason }},
	{"COUNT", func(s *api.Stage, _ *Page) string { return Count(s.Total.Count) }},
	{"P50", func(s *api.Stage, _ *Page) string { return quantile(&s.Total, s.Total.P50) }},
	{"P90", func(s *api.Stage, _ *Page) string { return quantile(&s.Total, s.Total.P90) }},
	{"P99", func(s *api.Stage, _ *Page) string { return quantile(&s.Total, s.Total.P99) }},
	{"MAX", func(s *api.Stage, _ *Page) string { return quantile(&s.Total, s.Total.Max) }},
	{"NEWEST-P50", func(s *api.Stage, _ *Page) string { return quantile(&s.Newest, s.Newest.P50) }},
	{"NEWEST-P99", func(s *api.Stage, _ *Page) string { return quantile(&s.Newest, s.Newest.P99) }},
	{"CLOCK", func(s *api.Stage, _ *Page) string { return unlessZero(s.Skewed) }},
	{"HELD", func(s *api.Stage, _ *Page) string { return unlessZero(s.Held) }},
	{"MEASURED", func(s *api.Stage, _ *Page) string { return s.From + " to " + s.To }},
}

// quantile is empty where there are no values.
func quantile(q *api.Quantiles, us float64) string {
	if q.Count == 0 {
		return ""
	}
	return fine(us)
}

// unlessZero leaves a count of nothing empty.
func unlessZero(n uint64) string {
	if n == 0 {
		return ""
	}
	return Count(n)
}

// fine gives microseconds in the unit that suits, with tenths of the small ones.
func fine(us float64) string {
	if us < 100 {
		return fmt.Sprintf("%.1fus", us)
	}
	v := int64(us + 0.5)
	return Micros(&v)
}
