package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/control"
	"github.com/openinof/inof/model/storage"
)

// Lab is a scenario that somebody else lets run, in real time: the fabric, its storage
// loads and its faults. The control plane is not simulated; real daemons attach.
type Lab struct {
	b     *builder
	react control.Reaction
}

// LabHost is a host of a Lab.
type LabHost struct {
	Name      string
	Node      model.NodeID
	Initiator bool
	Agent     bool // it registers and is told of faults
}

// Breaker is who cuts cables and kills switches.
type Breaker = breaker

// Lab builds the scenario. Traffic other than storage is refused: it would end.
func (f *File) Lab() (*Lab, error) {
	for i := range f.Traffic {
		if t := &f.Traffic[i]; t.Kind != "storage" {
			return nil, Problem{f.path, t.Line, fmt.Sprintf("traffic[%d].kind", i), fmt.Sprintf("%q is not for a fabric in real time, only storage is", t.Kind)}
		}
	}
	own := *f
	own.Control = nil
	b, err := own.build()
	if err != nil {
		return nil, err
	}
	l := &Lab{b: b, react: control.Default().React}
	if f.Control != nil {
		b.f.Control = f.Control // agents and how hosts react count
		if r := f.Control.React; r != nil {
			l.react.Probe = r.Probe
			setIf(&l.react.FailOver, r.FailOver)
			setIf(&l.react.Restraint, r.Restraint)
		}
		b.agentNodes(f.Control)
	}
	return l, b.err()
}

// Sim is the fabric.
func (l *Lab) Sim() *model.Sim { return l.b.sim }

// Handler takes the timers and messages of loads and faults; by breaks things.
func (l *Lab) Handler(by Breaker) model.Handler {
	l.b.breaker = by
	return runner{l.b}
}

// Start plans the faults of the file and begins the loads.
func (l *Lab) Start() error {
	for i := range l.b.faults {
		l.b.sim.At(l.b.faults[i].spec.At, uint64(i))
	}
	for _, load := range l.b.loads {
		if err := load.Start(); err != nil {
			return err
		}
	}
	return nil
}

// React is how hosts react to notices.
func (l *Lab) React() control.Reaction { return l.react }

// Act does to all loads what a host does about a path.
func (l *Lab) Act(a control.Act) error { return l.b.told(a) }

// Err is the first error of a load.
func (l *Lab) Err() error { return l.b.broken }

// Hosts lists the hosts.
func (l *Lab) Hosts() []LabHost {
	agents := map[model.NodeID]bool{}
	for _, n := range l.b.hosts {
		agents[n] = true
	}
	if c := l.b.f.Control; c != nil {
		agents = map[model.NodeID]bool{}
		for _, n := range l.b.agentNodes(c) {
			agents[n] = true
		}
	}
	var out []LabHost
	for _, n := range l.b.hosts {
		out = append(out, LabHost{Name: l.b.sim.NodeName(n), Node: n, Initiator: slices.Contains(l.b.initiators, n), Agent: agents[n]})
	}
	return out
}

// Node finds a node by its name.
func (l *Lab) Node(name string) (model.NodeID, bool) {
	n, ok := l.b.nodes[name]
	return n, ok
}

// LabLoad is how a storage load stands.
type LabLoad struct {
	Name string `json:"name"`
	storage.Stats
	PathsUp int `json:"paths_up"`
	Paths   int `json:"paths"`
}

// Loads tells how the storage loads stand.
func (l *Lab) Loads() []LabLoad {
	var out []LabLoad
	for _, load := range l.b.loads {
		up, all := load.Paths()
		out = append(out, LabLoad{load.name, load.Stats(), up, all})
	}
	return out
}

// Strike lets a fault happen now.
func (l *Lab) Strike(f Fault) error {
	b := l.b
	known := len(b.faults)
	b.problems, b.file = nil, ""
	f.At = 0
	b.fault(0, &f)
	err := b.err()
	made := slices.Clone(b.faults[known:])
	b.faults, b.problems = b.faults[:known], nil
	if err != nil {
		return errors.New(strings.ReplaceAll(strings.ReplaceAll(err.Error(), ":0: ", ""), "faults[0].", "fault "))
	}
	runner{b}.happen(b.sim, &made[0])
	return b.broken
}

func setIf(to *model.Time, from *model.Time) {
	if from != nil {
		*to = *from
	}
}
