package health

import (
	"cmp"
	"slices"
	"time"

	"github.com/openinof/inof/internal/api"
)

// MaxIncidents bounds the incidents that are remembered; beyond it the oldest go.
const MaxIncidents = 1024

// Incidents are the events that raise warnings. The zero value is empty and ready; it
// belongs to one goroutine at a time.
type Incidents struct {
	m map[incidentKey]*incident
}

// incidentKey tells incidents apart: a device that does one thing a thousand times is one.
type incidentKey struct{ rule, device, port, addr string }

type incident struct {
	text  string // of the last event
	last  time.Time
	count uint64
}

// Note takes an event that names a rule; others it ignores.
func (x *Incidents) Note(e *api.Event) {
	if e.Warning == "" {
		return
	}
	k := incidentKey{e.Warning, e.Device, e.Port, e.Addr}
	in := x.m[k]
	if in == nil {
		if x.m == nil {
			x.m = make(map[incidentKey]*incident)
		}
		if len(x.m) >= MaxIncidents {
			x.forgetOldest()
		}
		in = &incident{}
		x.m[k] = in
	}
	in.text, in.last = e.Text, e.Time
	in.count++
}

func (x *Incidents) forgetOldest() {
	var oldest incidentKey
	var at time.Time
	for k, in := range x.m {
		if at.IsZero() || in.last.Before(at) {
			oldest, at = k, in.last
		}
	}
	delete(x.m, oldest)
}

// of returns the warnings of one rule, the newest first, and forgets what is too old.
func (x *Incidents) of(r *Rule, now time.Time) (list api.Warnings) {
	for k, in := range x.m {
		if k.rule != r.Name {
			continue
		}
		if now.Sub(in.last) > r.Memory {
			delete(x.m, k)
			continue
		}
		last := in.last
		list = append(list, api.Warning{Rule: r.Name, Text: in.text, Do: r.Do, Count: in.count, Last: &last})
	}
	slices.SortFunc(list, func(a, b api.Warning) int {
		return cmp.Or(b.Last.Compare(*a.Last), cmp.Compare(a.Text, b.Text))
	})
	return list
}
