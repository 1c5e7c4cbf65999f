package control

import (
	"fmt"
	"slices"

	"github.com/openinof/inof/model"
)

// Steps of the causal chain of a fault, in order.
const (
	StepFault      = "fault"           // something breaks, or is mended
	StepDetected   = "detected"        // the platform tells the daemon: carrier, BFD
	StepDecided    = "decided"         // the daemon holds a port or path to be faulty
	StepSent       = "sent"            // it tells a reflector
	StepReflected  = "reflected"       // the reflector tells a client
	StepReceived   = "received"        // a daemon has the message
	StepFrameSent  = "frame sent"      // a notice is on its way to a host
	StepFrameTaken = "notice received" // the agent has it
	StepActs       = "host acts"       // the host's system has done something about the path
	StepResumes    = "I/O resumes"     // the first I/O after the longest pause
	StepSession    = "session"         // comes or goes; no part of the chain
	StepLossless   = "lossless"        // a switch protects its classes from now on; no part of the chain
)

// Step is something that happened.
type Step struct {
	At   model.Time `json:"at_ps"`
	Step string     `json:"step"`
	Node string     `json:"node"`
	To   string     `json:"to,omitempty"`   // who it was for
	From string     `json:"from,omitempty"` // who sent a message
	What string     `json:"what"`
}

// The log holds so many steps before the first fault and after each one, and so many in
// all; what is beyond is counted.
const (
	stepsAtStart = 20_000
	stepsOfFault = 50_000
	maxSteps     = 1_000_000
)

func (p *Plane) note(step, node, to, format string, args ...any) {
	p.Note(Step{At: p.sim.Now(), Step: step, Node: node, To: to, What: fmt.Sprintf(format, args...)})
}

// Note adds a step that somebody else knows of: a fault, or I/O that resumes.
func (p *Plane) Note(s Step) {
	for _, text := range []string{s.Step, s.Node, s.To, s.What} {
		for i := range len(text) {
			p.hash = (p.hash ^ uint64(text[i])) * 0x100000001b3
		}
	}
	p.hash = (p.hash ^ uint64(s.At)) * 0x100000001b3
	if s.Step == StepFault {
		p.room = min(len(p.log)+stepsOfFault, maxSteps)
	}
	if len(p.log) >= max(p.room, stepsAtStart) && s.Step != StepResumes {
		p.skipped++
		return
	}
	p.log = append(p.log, s)
}

// Report is what the control plane did.
type Report struct {
	Chains  []Chain `json:"chains"`
	Log     []Step  `json:"log"`
	Skipped uint64  `json:"skipped"` // steps beyond what the log holds
	Hash    string  `json:"hash"`    // of all steps
	Devices []State `json:"devices"`
}

// State is how a device stands at the end.
type State struct {
	Name     string         `json:"name"`
	Running  bool           `json:"running"`
	Sessions int            `json:"sessions"`
	Paths    int            `json:"paths_failed"`
	Counters map[string]any `json:"counters,omitempty"`
}

// Report tells what has happened so far.
func (p *Plane) Report() *Report {
	r := &Report{Log: slices.Clone(p.log), Skipped: p.skipped, Hash: fmt.Sprintf("%016x", p.hash)}
	slices.SortStableFunc(r.Log, func(a, b Step) int { return int(min(1, max(-1, a.At-b.At))) })
	r.Chains = chains(r.Log)
	for _, d := range p.devices {
		if d == nil || len(d.access) == 0 && !d.reflects {
			continue
		}
		st := State{Name: d.name, Running: d.running}
		for _, e := range d.taken {
			if e.Up {
				st.Sessions++
			}
		}
		for _, e := range d.dialed {
			if e.Up {
				st.Sessions++
			}
		}
		if d.running {
			st.Paths, st.Counters = len(d.core.FailedPaths()), d.core.Counters()
		}
		r.Devices = append(r.Devices, st)
	}
	return r
}
