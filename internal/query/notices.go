package query

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

var notices = list[api.Notice]{
	name: "notice", path: "notices", short: "What local hosts were told, and how long it took",
	read: func(ctx context.Context, src Source, _ Asked) (list []api.Notice, err error) {
		err = src.Do(ctx, func(c *device.Core, _ time.Time) { list = c.Notices() })
		return list, err
	},
	filters: []filter[api.Notice]{
		at(Filter{Name: "host", Usage: "only notices to this host"}, func(n *api.Notice) netip.Addr { return n.Host }),
		at(Filter{Name: "subject", Usage: "only notices about this host"}, func(n *api.Notice) netip.Addr { return n.Subject }),
		equal(Filter{Name: "port", Usage: "only notices out of this port", Words: PortNames}, func(n *api.Notice) string { return n.Port }),
		equal(Filter{Name: "status", Usage: "only notices that got this far", Options: []string{string(api.NoticeQueued), string(api.NoticeSent), string(api.NoticeAcked),
			string(api.NoticeSuperseded), string(api.NoticeGivenUp), string(api.NoticeObserved)}}, func(n *api.Notice) string { return string(n.Status) }),
		limit[api.Notice](),
	},
	flags: []Flag{{Name: "times", Usage: "the way of each from the fault to the ack, step by step"}},
	show: func(p *Page, rows *[]api.Notice, f Asked) {
		if f.Yes("times") {
			noticeTimes(p, *rows)
			return
		}
		p.rows(tableOf(p, *rows, noticeColumns))
	},
}.query()

var noticeColumns = []column[api.Notice]{
	{"QUEUED", func(n *api.Notice, p *Page) string {
		if n.Queued == nil {
			return ""
		}
		return p.Stamp(*n.Queued)
	}},
	{"SEQ", func(n *api.Notice, _ *Page) string { return Count(uint64(n.Seq)) }},
	{"HOST", func(n *api.Notice, _ *Page) string { return Addr(n.Host) }},
	{"SUBJECT", func(n *api.Notice, _ *Page) string { return Addr(n.Subject) }},
	{"STATE", func(n *api.Notice, _ *Page) string { return n.State.String() }},
	{"REASON", func(n *api.Notice, _ *Page) string { return Because(n.Reason) }},
	{"FENCED", func(n *api.Notice, _ *Page) string { return fenced(n) }},
	{"PORT", func(n *api.Notice, _ *Page) string { return n.Port }},
	{"STATUS", func(n *api.Notice, _ *Page) string { return string(n.Status) }},
	{"RETRIES", func(n *api.Notice, _ *Page) string { return Count(n.Retries) }},
	{"FAULT-TO-SENT", func(n *api.Notice, _ *Page) string { return sinceFault(n, n.FaultToSent) }},
	{"SENT-TO-ACKED", func(n *api.Notice, _ *Page) string { return Micros(n.SentToAcked) }},
}

// fenced is what a notice of a fault said of the fence, in short.
func fenced(n *api.Notice) string {
	switch {
	case n.Fenced == "":
		return ""
	case n.Fence == nil:
		return "no: agent"
	case n.Fence.Level == snsd.FenceNone:
		return "no"
	}
	return fmt.Sprintf("%s by %s in %v", n.Fence.Level, n.Fence.Way, n.Fence.Took)
}

// noticeTimes shows the way of each notice: every time as the step from the one
// before it that is known.
func noticeTimes(p *Page, list []api.Notice) {
	rows := [][]string{}
	for _, n := range list {
		origin := Addr(n.Origin)
		if origin == "" {
			origin = "here"
		}
		row := []string{Addr(n.Host), Addr(n.Subject), n.State.String(), Because(n.Reason)}
		if n.FaultAt == nil {
			row = append(row, "", "")
		} else {
			row = append(row, origin, p.Stamp(*n.FaultAt))
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
	p.rows("HOST SUBJECT STATE REASON ORIGIN FAULT-SEEN DECIDED SENT AT-REFLECTOR REFLECTED RECEIVED TAKEN-UP FRAME ACK FAULT-TO-ACK", rows)
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
	return "+" + Micros(&us)
}

// sinceFault is a time from a fault on, by the clocks of two devices.
func sinceFault(n *api.Notice, us *int64) string {
	if n.Skewed {
		return "clock"
	}
	return Micros(us)
}
