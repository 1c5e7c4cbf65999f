package testbed

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/testbed/agentlog"
	"github.com/openinof/inof/testbed/truth"
)

// heard is one notice as a host agent printed it.
type heard struct {
	truth.Notice
	At    time.Time // the kernel's receive time stamp of the frame
	Seq   uint32
	Agent string // node/process
	// Again: the agent had this very notice before. A switch that has no ack of it, as of a
	// host whose link went, repeats it: so the host is told in time all the same.
	Again bool
}

// agents follows the output files of all host agents of a lab.
type agents struct {
	output agentlog.Follower
	asked  map[netip.Addr][]time.Time // zone queries of a host, in order
	last   map[told]string            // the state it was told last
	spent  map[told]time.Time         // the latest query that a repetition answered
}

// told is a host and another of which it is told.
type told struct{ host, subject netip.Addr }

func followAgents(l *Lab) (*agents, error) {
	a := newAgents()
	for _, n := range l.Status().Nodes {
		if n.Kind != KindHost {
			continue
		}
		for _, p := range n.Processes {
			a.output.Add(n.Name+"/"+p.Name, p.Output)
		}
	}
	if a.output.Len() == 0 {
		return nil, fmt.Errorf("lab %s has no host agents", l.Name)
	}
	return a, nil
}

func newAgents() *agents {
	return &agents{asked: make(map[netip.Addr][]time.Time), last: make(map[told]string), spent: make(map[told]time.Time)}
}

func (a *agents) close() { a.output.Close() }

// read gives the notices printed since the last call.
func (a *agents) read() ([]heard, error) {
	var out []heard
	err := a.output.Read(func(agent string, l agentlog.Line) {
		switch l.Event {
		case "notice", "duplicate":
			out = append(out, heard{truth.NoticeOf(l.Host, l.Subject, l.State, l.Reason), l.Time, l.Seq, agent, l.Event == "duplicate"})
		case "query":
			for _, host := range l.Addresses {
				a.asked[host] = append(a.asked[host], l.Time)
			}
		}
	})
	return out, err
}

// answerTime is how long the answer to a zone query may take: the switch answers a host
// once a second at most, and a busy machine may take its time.
const answerTime = 10 * time.Second

// known reports whether a host was told the same last: that the other is active.
func (a *agents) known(h heard) bool {
	p := told{h.Host, h.Subject}
	known := a.last[p] == truth.Active && h.State == truth.Active
	a.last[p] = h.State
	return known
}

// answers reports whether a notice that a host need not be given comes because it asked: a
// zone query that arrives when what the return of the link brought is acked already is
// answered in full, once.
func (a *agents) answers(h heard) bool {
	p := told{h.Host, h.Subject}
	asked := a.asked[h.Host]
	i := slices.IndexFunc(asked, func(q time.Time) bool {
		return q.After(a.spent[p]) && h.At.Sub(q).Abs() < answerTime
	})
	if i < 0 {
		return false
	}
	a.spent[p] = asked[i]
	return true
}
