package control

import (
	"fmt"
	"slices"

	"github.com/openinof/inof/fabric/model"
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
)

var chainOrder = []string{StepFault, StepDetected, StepDecided, StepSent, StepReflected, StepReceived, StepFrameSent, StepFrameTaken, StepActs, StepResumes}

// Step is something that happened.
type Step struct {
	At   model.Time `json:"at_ps"`
	Step string     `json:"step"`
	Node string     `json:"node"`
	What string     `json:"what"`
}

// maxSteps bounds the log; what is beyond is counted.
const maxSteps = 100_000

func (p *Plane) note(step, node, format string, args ...any) {
	p.Note(Step{At: p.sim.Now(), Step: step, Node: node, What: fmt.Sprintf(format, args...)})
}

// Note adds a step that somebody else knows of: a fault, or I/O that resumes.
func (p *Plane) Note(s Step) {
	for _, text := range []string{s.Step, s.Node, s.What} {
		for i := range len(text) {
			p.hash = (p.hash ^ uint64(text[i])) * 0x100000001b3
		}
	}
	p.hash = (p.hash ^ uint64(s.At)) * 0x100000001b3
	if len(p.log) >= maxSteps {
		p.skipped++
		return
	}
	p.log = append(p.log, s)
}

// Link is one step of a chain: the first of its kind after the fault, and how many
// there were before the next fault, the last of them when.
type Link struct {
	Step
	After float64    `json:"after_ms"` // the fault
	Count int        `json:"count"`
	Last  model.Time `json:"last_ps"`
}

// Chain is what followed from a fault.
type Chain struct {
	Fault Step   `json:"fault"`
	Links []Link `json:"steps"`
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
	for i := range r.Log {
		if r.Log[i].Step == StepFault {
			r.Chains = append(r.Chains, chain(r.Log[i:]))
		}
	}
	for _, d := range p.devices {
		if d == nil || len(d.access) == 0 && !d.reflects {
			continue
		}
		st := State{Name: d.name, Running: d.running}
		for _, e := range d.taken {
			if e.up {
				st.Sessions++
			}
		}
		for _, e := range d.dialed {
			if e.up {
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

// chain collects what followed from the fault that log begins with.
func chain(log []Step) Chain {
	c := Chain{Fault: log[0]}
	at := map[string]int{}
	for i, s := range log[1:] {
		if s.Step == StepFault && s.At > log[0].At {
			log = log[:i+1]
			break
		}
		if s.Step == StepSession || s.Step == StepFault {
			continue
		}
		k, seen := at[s.Step]
		if !seen {
			k = len(c.Links)
			at[s.Step] = k
			c.Links = append(c.Links, Link{Step: s, After: (s.At - log[0].At).Seconds() * 1e3})
		}
		c.Links[k].Count++
		c.Links[k].Last = s.At
	}
	slices.SortStableFunc(c.Links, func(a, b Link) int {
		return slices.Index(chainOrder, a.Step.Step) - slices.Index(chainOrder, b.Step.Step)
	})
	return c
}
