package scenario

import (
	"slices"
	"strings"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/control"
)

// Film is a run to be looked at again, moment by moment: the fabric, its queues over time, what
// broke, and how hosts were told.
type Film struct {
	Name     string       `json:"name"`
	About    string       `json:"about,omitempty"`
	End      float64      `json:"end_ms"`
	Switches []FilmNode   `json:"switches"`
	Hosts    []FilmNode   `json:"hosts"`
	Ports    []string     `json:"ports"` // that the frames tell of
	Frames   []Frame      `json:"frames"`
	Events   []FilmEvent  `json:"events"`
	Notices  []FilmNotice `json:"notices"`
	Series   FilmSeries   `json:"series"`
}

// FilmNode is a node with its ports.
type FilmNode struct {
	Name  string     `json:"name"`
	Ports []FilmPort `json:"ports"`
}

// FilmPort is a port, and "node:port" at the other end of its cable.
type FilmPort struct {
	Name string `json:"name"`
	Peer string `json:"peer"`
}

// Frame is one moment.
type Frame struct {
	Ms     float64        `json:"ms"`
	Queues []QueueReading `json:"queues"`
	Down   []string       `json:"down,omitempty"` // "node:port" without carrier
}

// QueueReading is a queue of a port, with totals since the beginning of the run.
type QueueReading struct {
	Port       string  `json:"port"` // "node:port"
	Queue      int     `json:"queue"`
	Bytes      int64   `json:"bytes"`     // queued now
	Headroom   int64   `json:"headroom"`  // of its class, used now, bytes
	Paused     float64 `json:"paused_ms"` // for how long it was kept from sending
	PFC        uint64  `json:"pfc"`       // XOFF frames received for it and sent for its class
	Deadlocks  uint64  `json:"deadlocks"`
	Deadlocked bool    `json:"deadlocked,omitempty"` // PFC of it is turned off
}

// FilmEvent is a step of the control plane, or something that a switch told its operator.
type FilmEvent struct {
	Ms   float64 `json:"ms"`
	Kind string  `json:"kind"`
	Node string  `json:"node"`
	To   string  `json:"to,omitempty"`
	Text string  `json:"text"`
}

// FilmNotice is how a host was told of a fault. Times are microseconds of virtual time; absent:
// there was no such step.
type FilmNotice struct {
	Host      string   `json:"host"`
	Subject   string   `json:"subject"`
	State     string   `json:"state"`
	Reason    string   `json:"reason"`
	Status    string   `json:"status"`
	Origin    string   `json:"origin"` // the device that found the fault
	Fault     float64  `json:"fault_at"`
	Detected  *float64 `json:"detected_at,omitempty"`
	Decided   *float64 `json:"origin_decided_at,omitempty"`
	Sent      *float64 `json:"origin_sent_at,omitempty"`
	Reflected *float64 `json:"reflected_at,omitempty"`
	Received  *float64 `json:"received_at,omitempty"`
	Frame     *float64 `json:"sent,omitempty"`
	Taken     *float64 `json:"acked,omitempty"`
	Acts      *float64 `json:"acted_at,omitempty"`
}

// FilmSeries are the samples of the run, as Series has them.
type FilmSeries struct {
	Times  []float64   `json:"times_ms"`
	Names  []string    `json:"names"`
	Values [][]float64 `json:"values"`
}

// Bounds of a Film: beyond them every second frame is left out, again and again.
const (
	maxFrames   = 600
	maxReadings = 200_000 // of all frames
	maxEvents   = 20_000
)

// Readings are those queues of a fabric that have something to tell, in the order of its ports.
func Readings(s *model.Sim) []QueueReading {
	out := []QueueReading{}
	for n := range model.NodeID(s.Nodes()) {
		for k := range s.Ports(n) {
			p := s.PortOf(n, k)
			for q := range model.NumQueues {
				st := s.Queue(p, q)
				if st.Bytes == 0 && st.Headroom == 0 && st.Paused == 0 && st.RxXoff+st.TxXoff+st.Deadlocks == 0 {
					continue
				}
				out = append(out, QueueReading{Port: s.PortName(p), Queue: q, Bytes: st.Bytes, Headroom: st.Headroom, Paused: st.Paused.Seconds() * 1e3,
					PFC: st.RxXoff + st.TxXoff, Deadlocks: st.Deadlocks, Deadlocked: st.TurnedOff})
			}
		}
	}
	return out
}

// camera takes the frames of a run.
type camera struct {
	film  *Film
	every int // how many samples there are to a frame
	seen  int
	sum   int // readings of all frames
}

// take looks at the fabric.
func (c *camera) take(s *model.Sim) {
	c.seen++
	if c.seen%max(1, c.every) != 0 {
		return
	}
	f := Frame{Ms: s.Now().Seconds() * 1e3, Queues: Readings(s)}
	for n := range model.NodeID(s.Nodes()) {
		for k := range s.Ports(n) {
			if p := s.PortOf(n, k); !s.LinkUp(p) {
				f.Down = append(f.Down, s.PortName(p))
			}
		}
	}
	c.film.Frames = append(c.film.Frames, f)
	c.sum += len(f.Queues)
	for len(c.film.Frames) > maxFrames || c.sum > maxReadings && len(c.film.Frames) > 2 {
		c.thin()
	}
}

// thin leaves out every second frame; the newest stays.
func (c *camera) thin() {
	old := c.film.Frames
	kept := make([]Frame, 0, len(old)/2+1)
	c.sum = 0
	for i := range old {
		if (len(old)-1-i)%2 == 0 {
			kept = append(kept, old[i])
			c.sum += len(old[i].Queues)
		}
	}
	c.film.Frames, c.every = kept, max(1, c.every)*2
}

// cut makes the film of what the camera saw and of the result.
func (c *camera) cut(s *model.Sim, r *Result) *Film {
	f := c.film
	f.Name, f.About, f.End = r.Name, r.About, r.End.Seconds()*1e3
	f.Switches, f.Hosts, f.Ports, f.Notices = []FilmNode{}, []FilmNode{}, []string{}, []FilmNotice{}
	f.Events = []FilmEvent{}
	for n := range model.NodeID(s.Nodes()) {
		node := FilmNode{Name: s.NodeName(n), Ports: []FilmPort{}}
		for k := range s.Ports(n) {
			p := s.PortOf(n, k)
			node.Ports = append(node.Ports, FilmPort{s.PortShortName(p), s.PortName(s.Peer(p))})
		}
		if s.IsSwitch(n) {
			f.Switches = append(f.Switches, node)
		} else {
			f.Hosts = append(f.Hosts, node)
		}
	}
	seen := map[string]bool{}
	for _, fr := range f.Frames {
		for _, q := range fr.Queues {
			if !seen[q.Port] {
				seen[q.Port] = true
				f.Ports = append(f.Ports, q.Port)
			}
		}
	}
	f.Series = FilmSeries{Times: append([]float64{}, r.Series.Times...), Names: r.Series.Names, Values: r.Series.Values}
	if r.Control == nil {
		for _, m := range r.Faults {
			f.Events = append(f.Events, FilmEvent{Ms: m.Ms, Kind: control.StepFault, Text: m.What})
		}
	} else {
		for _, st := range r.Control.Log[:min(len(r.Control.Log), maxEvents)] {
			f.Events = append(f.Events, FilmEvent{Ms: st.At.Seconds() * 1e3, Kind: st.Step, Node: st.Node, To: st.To, Text: st.What})
		}
		for i := range r.Control.Chains {
			f.notice(&r.Control.Chains[i])
		}
	}
	for _, x := range r.Incidents {
		f.Events = append(f.Events, FilmEvent{Ms: x.At, Kind: "incident", Node: x.Port, Text: x.What})
	}
	slices.SortStableFunc(f.Events, func(a, b FilmEvent) int {
		switch {
		case a.Ms < b.Ms:
			return -1
		case a.Ms > b.Ms:
			return 1
		}
		return 0
	})
	return f
}

// notice adds what a chain of steps tells of a notice to a host, if there was one.
func (f *Film) notice(c *control.Chain) {
	n := FilmNotice{Host: c.Host, Fault: micros(c.Fault.At), Reason: "none", Status: "sent"}
	for i := range c.Links {
		l := &c.Links[i]
		at := micros(l.At)
		switch l.Step.Step {
		case control.StepDetected:
			n.Origin, n.Detected = l.Node, &at
		case control.StepDecided:
			n.Origin, n.Decided = l.Node, &at
		case control.StepSent:
			n.Sent = &at
		case control.StepReflected:
			n.Reflected = &at
		case control.StepReceived:
			n.Received = &at
		case control.StepFrameSent:
			n.Frame = &at
			n.says(l.What)
		case control.StepFrameTaken:
			n.Taken, n.Status = &at, "acked"
		case control.StepActs:
			n.Acts = &at
		}
	}
	if n.Frame != nil {
		f.Notices = append(f.Notices, n)
	}
}

// says reads "192.0.2.1 inactive (link-down) and 2 more".
func (n *FilmNotice) says(what string) {
	words := strings.Fields(what)
	if len(words) < 2 {
		return
	}
	n.Subject, n.State = words[0], words[1]
	if len(words) > 2 && strings.HasPrefix(words[2], "(") {
		n.Reason = strings.Trim(words[2], "()")
	}
}

func micros(t model.Time) float64 { return t.Seconds() * 1e6 }
