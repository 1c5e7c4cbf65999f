package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

func (a *app) showLatencyCmd() *cobra.Command {
	var scope api.Scope
	c := &cobra.Command{Use: "latency", Short: "How long each stage takes, from a fault to the host's ack",
		Long: `Percentiles of every stage from a fault to the ack of the host that was told, since the
daemon started and of the newest values (NEWEST, at most 1,024 a stage):

  own        this device's events, up to the sessions with its reflectors
  reflector  clients' events, through this reflector
  told       events of any device, by the stamps that came with them, up to the hosts here;
             "notice" and "acked" are the whole way, one line for each reason

CLOCK counts values between two devices' clocks that are negative or longer than 10 s: they
are in no percentile; what is slow within a device is no such value. HELD counts those of
hosts whose own port was down meanwhile: they are in no percentile either, but in those of
held-frame and held-ack.`}
	c.Flags().Var(&oneOf{(*string)(&scope), []string{string(api.ScopeOwn), string(api.ScopeReflector), string(api.ScopeTold)}}, "scope", "only these stages")
	return show(a, c, 0, func(ctx context.Context, cl *api.Client, _ []string) (api.Latency, error) {
		l, err := cl.Latency(ctx)
		l.Stages = only(l.Stages, func(s api.Stage) bool { return scope == "" || s.Scope == scope })
		return l, err
	}, func(w io.Writer, l api.Latency, _ []string) { a.latencyTable(w, l) })
}

func (a *app) latencyTable(w io.Writer, l api.Latency) {
	rows := [][]string{}
	for _, s := range l.Stages {
		row := []string{string(s.Scope), s.Name, s.Reason, count(s.Total.Count)}
		row = append(row, quantileCells(s.Total, s.Total.P50, s.Total.P90, s.Total.P99, s.Total.Max)...)
		row = append(row, quantileCells(s.Newest, s.Newest.P50, s.Newest.P99)...)
		rows = append(rows, append(row, some(s.Skewed), some(s.Held), s.From+" to "+s.To))
	}
	query.Table(w, "SCOPE STAGE REASON COUNT P50 P90 P99 MAX NEWEST-P50 NEWEST-P99 CLOCK HELD MEASURED", rows)
	if l.Unmeasured > 0 {
		fmt.Fprintf(w, "\n%d notice(s) told of a fault whose time is not known: it was learned by a sync.\n", l.Unmeasured)
	}
	for _, c := range l.Clocks {
		ahead, side := c.Ahead, "ahead of"
		if ahead < 0 {
			ahead, side = -ahead, "behind"
		}
		fmt.Fprintf(w, "\nClock of reflector %s: %s %s ours, right to %s (%s ago).\n", c.Reflector, fine(ahead), side, fine(c.RoundTrip/2), a.age(c.Measured))
	}
}

// quantileCells are empty where there are no values.
func quantileCells(q api.Quantiles, us ...float64) []string {
	out := make([]string, len(us))
	for i, v := range us {
		if q.Count > 0 {
			out[i] = fine(v)
		}
	}
	return out
}

// some leaves a count of nothing empty.
func some(n uint64) string {
	if n == 0 {
		return ""
	}
	return count(n)
}

// fine gives microseconds in the unit that suits, with tenths of the small ones.
func fine(us float64) string {
	if us < 100 {
		return fmt.Sprintf("%.1fus", us)
	}
	v := int64(us + 0.5)
	return micros(&v)
}

// noticeTimesTable shows the way of each notice: every time as the step from the one
// before it that is known.
func (a *app) noticeTimesTable(w io.Writer, list []api.Notice) {
	rows := [][]string{}
	for _, n := range list {
		origin := addr(n.Origin)
		if origin == "" {
			origin = "here"
		}
		row := []string{addr(n.Host), addr(n.Subject), n.State.String(), query.Because(n.Reason)}
		if n.FaultAt == nil {
			row = append(row, "", "")
		} else {
			row = append(row, origin, a.stamp(*n.FaultAt))
		}
		last := n.FaultAt
		for _, t := range []*time.Time{n.DecidedAt, n.SentAt, n.ReflectorAt, n.ReflectedAt, n.ReceivedAt, n.Queued, n.Sent, n.Acked} {
			row = append(row, step(last, t))
			if t != nil {
				last = t
			}
		}
		rows = append(rows, append(row, sinceFault(&n, n.FaultToAcked)))
	}
	query.Table(w, "HOST SUBJECT STATE REASON ORIGIN FAULT-SEEN DECIDED SENT AT-REFLECTOR REFLECTED RECEIVED TAKEN-UP FRAME ACK FAULT-TO-ACK", rows)
}

// step is the time from one moment to the next that is known. One that is negative is
// between two devices whose clocks differ.
func step(from, to *time.Time) string {
	if from == nil || to == nil {
		return ""
	}
	us := to.Sub(*from).Microseconds()
	if us < 0 {
		return "clock"
	}
	return "+" + micros(&us)
}

// sinceFault is a time from a fault on, by the clocks of two devices.
func sinceFault(n *api.Notice, us *int64) string {
	if n.Skewed {
		return "clock"
	}
	return micros(us)
}
