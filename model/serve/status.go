package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/scenario"
	"github.com/openinof/inof/snsd"
)

// Status is how a fabric stands.
type Status struct {
	Name     string       `json:"name"`
	Now      model.Time   `json:"now_ps"` // of virtual time
	Behind   float64      `json:"behind_ms"`
	Switches []SwitchInfo `json:"switches"`
	Hosts    []HostInfo   `json:"hosts"`
	Loads    []LoadInfo   `json:"storage,omitempty"`
	// Queues are those that have something to tell.
	Queues []scenario.QueueReading `json:"queues"`
	Events []Event                 `json:"events"` // the last
}

// SwitchInfo is a switch.
type SwitchInfo struct {
	Name     string     `json:"name"`
	Attached bool       `json:"attached"` // a daemon is its control plane
	Off      bool       `json:"off"`
	Ports    []PortInfo `json:"ports"`
}

// PortInfo is a port.
type PortInfo struct {
	Name    string     `json:"name"`
	Peer    string     `json:"peer"`
	Carrier bool       `json:"carrier"`
	Addr    netip.Addr `json:"address,omitzero"` // of a host's port
	// Heard are the last notices about each subject.
	Heard []Heard `json:"heard,omitempty"`
}

// Heard is a notice as a host remembers it.
type Heard struct {
	Subject netip.Addr  `json:"subject"`
	State   snsd.State  `json:"state"`
	Reason  snsd.Reason `json:"reason"`
}

// HostInfo is a host.
type HostInfo struct {
	Name      string     `json:"name"`
	Initiator bool       `json:"initiator"`
	Agent     bool       `json:"agent"`
	Ports     []PortInfo `json:"ports"`
}

// LoadInfo is a storage load.
type LoadInfo struct {
	scenario.LabLoad
	IOPS float64 `json:"iops"` // over the last second
}

// shownEvents is how many events a Status has.
const shownEvents = 50

// rates measures I/O over time.
type rates struct {
	at   time.Time
	done []uint64
	iops []float64
}

// measure takes the I/O of each second.
func (s *Server) measure(ctx context.Context) error {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		var loads []scenario.LabLoad
		if err := s.fabric.Do(func(*model.Sim) error { loads = s.lab.Loads(); return nil }); err != nil {
			return err
		}
		s.mu.Lock()
		now := time.Now()
		r := &s.rates
		span := now.Sub(r.at).Seconds()
		if r.done == nil {
			r.done = make([]uint64, len(loads))
			span = 0
		}
		r.iops = make([]float64, len(loads))
		for i, l := range loads {
			if span > 0 {
				r.iops[i] = float64(l.Done-r.done[i]) / span
			}
			r.done[i] = l.Done
		}
		r.at = now
		s.mu.Unlock()
	}
}

// Status tells how the fabric stands now.
func (s *Server) Status() Status {
	st := Status{Name: s.name}
	_ = s.fabric.Do(func(sim *model.Sim) error {
		st.Now = sim.Now()
		st.Behind = s.fabric.Behind().Seconds() * 1e3
		st.Queues = scenario.Readings(sim)
		for n := range model.NodeID(sim.Nodes()) {
			if sim.IsSwitch(n) {
				st.Switches = append(st.Switches, SwitchInfo{Name: sim.NodeName(n), Attached: s.has(n), Off: s.fabric.Dead(n), Ports: ports(sim, n)})
			}
		}
		for _, l := range s.lab.Loads() {
			st.Loads = append(st.Loads, LoadInfo{LabLoad: l})
		}
		return nil
	})
	for _, h := range s.hosts {
		st.Hosts = append(st.Hosts, h.info())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range st.Loads {
		if i < len(s.rates.iops) {
			st.Loads[i].IOPS = s.rates.iops[i]
		}
	}
	st.Events = slices.Clone(s.log[max(0, len(s.log)-shownEvents):])
	return st
}

func ports(sim *model.Sim, n model.NodeID) []PortInfo {
	var out []PortInfo
	for k := range sim.Ports(n) {
		p := sim.PortOf(n, k)
		out = append(out, PortInfo{Name: sim.PortShortName(p), Peer: sim.PortName(sim.Peer(p)), Carrier: sim.LinkUp(p)})
	}
	return out
}

// info asks the host's goroutine.
func (h *host) info() HostInfo {
	out := HostInfo{Name: h.spec.Name, Initiator: h.spec.Initiator, Agent: h.spec.Agent}
	_ = h.s.fabric.Do(func(sim *model.Sim) error { out.Ports = ports(sim, h.spec.Node); return nil })
	done := make(chan struct{})
	ask := func() {
		defer close(done)
		for i := range out.Ports {
			c := h.nics[out.Ports[i].Name]
			out.Ports[i].Addr = c.addr
			for _, n := range c.said {
				out.Ports[i].Heard = append(out.Ports[i].Heard, Heard{n.Subject, n.State, n.Reason})
			}
			slices.SortFunc(out.Ports[i].Heard, func(a, b Heard) int { return cmp.Compare(a.Subject.String(), b.Subject.String()) })
		}
	}
	select {
	case h.told <- ask:
		<-done
	case <-time.After(time.Second): // it is not running
	}
	return out
}

// strict decodes one JSON value without unknown keys.
func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
