package control

import "github.com/openinof/inof/model"

// Chain is how a fault came to be felt by one host, or by nobody.
type Chain struct {
	Fault Step   `json:"fault"`
	Host  string `json:"host"`
	Links []Link `json:"steps"`
}

// Link is one step of a chain.
type Link struct {
	Step
	After float64 `json:"after_ms"` // the fault
}

// maxChains bounds how many hosts' chains are told of one fault.
const maxChains = 64

// chains finds for each fault of a log, which is in order of time, how the hosts came
// to act and their I/O to go on.
func chains(log []Step) []Chain {
	var out []Chain
	for i := range log {
		if log[i].Step != StepFault {
			continue
		}
		end := i + 1
		for end < len(log) && (log[end].Step != StepFault || log[end].At == log[i].At) {
			end++
		}
		out = append(out, ofFault(log[i], log[i+1:end])...)
	}
	return out
}

// ofFault gives the chains of one fault: of each host that acts, and of each whose I/O
// resumes.
func ofFault(fault Step, log []Step) []Chain {
	var out []Chain
	seen := map[string]int{}
	of := func(host string) *Chain {
		k, ok := seen[host]
		if !ok && len(out) == maxChains {
			return nil
		}
		if !ok {
			k = len(out)
			seen[host] = k
			out = append(out, Chain{Fault: fault, Host: host, Links: []Link{}})
		}
		return &out[k]
	}
	for i, s := range log {
		var host string
		var steps []Step
		switch s.Step {
		case StepActs:
			host, steps = s.Node, before(log[:i+1])
		case StepResumes:
			host, steps = s.To, []Step{s}
		default:
			continue
		}
		c := of(host)
		if c == nil || s.Step == StepActs && len(c.Links) > 0 { // the first act counts
			continue
		}
		for _, st := range steps {
			c.Links = append(c.Links, Link{st, (st.At - fault.At).Seconds() * 1e3})
		}
	}
	if len(out) == 0 {
		out = append(out, Chain{Fault: fault, Links: []Link{}})
	}
	return out
}

// before goes back from an act of a host, the last step of log, to what it came from.
func before(log []Step) []Step {
	act := log[len(log)-1]
	chain := []Step{act}
	at := act.At
	back := func(step, node, to string) *Step {
		for i := len(log) - 1; i >= 0; i-- {
			s := &log[i]
			if s.Step == step && s.At <= at && (node == "" || s.Node == node) && (to == "" || s.To == to) {
				at = s.At
				chain = append(chain, *s)
				return s
			}
		}
		return nil
	}
	back(StepFrameTaken, act.Node, "")
	frame := back(StepFrameSent, "", act.Node)
	if frame == nil {
		return reversed(chain)
	}
	where := frame.Node
	// A message that came to the host's switch just before, and its way there; or the
	// switch found out itself.
	if lastAt(log, StepReceived, where, at) != nil {
		came := back(StepReceived, where, "")
		if passed := back(StepReflected, came.From, where); passed != nil {
			where = passed.Node
			if sent := back(StepSent, "", where); sent != nil {
				where = sent.Node
			}
		} else if sent := back(StepSent, came.From, where); sent != nil { // it is the reflector itself
			where = sent.Node
		}
	}
	back(StepDecided, where, "")
	back(StepDetected, where, "")
	return reversed(chain)
}

// lastAt finds the last step of a kind at a node, if nothing was decided there since.
func lastAt(log []Step, step, node string, at model.Time) *Step {
	for i := len(log) - 1; i >= 0; i-- {
		s := &log[i]
		if s.At > at || s.Node != node {
			continue
		}
		switch s.Step {
		case step:
			return s
		case StepDecided:
			return nil
		}
	}
	return nil
}

func reversed(list []Step) []Step {
	out := make([]Step, len(list))
	for i := range list {
		out[len(list)-1-i] = list[i]
	}
	return out
}
