package testbed

import (
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
)

// Status is a lab at a glance.
type Status struct {
	Name    string       `json:"name"`
	File    string       `json:"file"`
	Dir     string       `json:"dir"`
	Phase   string       `json:"phase"` // up, or what the lab was left at
	Step    string       `json:"step,omitempty"`
	Created time.Time    `json:"created"`
	Nested  bool         `json:"nested"` // lives in a user namespace of its own
	Alive   bool         `json:"alive"`  // up, and every node and process is there
	Nodes   []NodeStatus `json:"nodes"`
	Links   []LinkStatus `json:"links"`
	Ignored []Ignored    `json:"ignored"`
}

// NodeStatus is one node.
type NodeStatus struct {
	Name      string          `json:"name"`
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"` // file to enter it by
	Alive     bool            `json:"alive"`     // the namespace is there
	Dir       string          `json:"dir"`
	Processes []ProcessStatus `json:"processes"`
}

// ProcessStatus is one process of a node.
type ProcessStatus struct {
	Process
	Alive bool `json:"alive"`
}

// LinkStatus is one link.
type LinkStatus struct {
	A   EndStatus `json:"a"`
	B   EndStatus `json:"b"`
	MTU int       `json:"mtu"` // bytes; 0: unknown
	Up  bool      `json:"up"`  // both ends have carrier
}

// EndStatus is one end of a link.
type EndStatus struct {
	Node    string `json:"node"`
	Port    string `json:"port"`
	Index   int    `json:"index"`
	MAC     string `json:"mac,omitempty"`
	AdminUp bool   `json:"admin_up"`
	Carrier bool   `json:"carrier"`
}

// Status reads what is there now.
func (l *Lab) Status() Status {
	l.mu.Lock()
	st := *l.st
	l.mu.Unlock()
	out := Status{Name: l.Name, File: st.File, Dir: l.Dir, Phase: st.Phase, Step: st.Step, Created: st.Created,
		Nested: st.Nested, Ignored: st.Ignored, Alive: st.Phase == PhaseUp && st.Boot == bootID()}
	for _, n := range st.Nodes {
		ns := NodeStatus{Name: n.Name, Kind: n.Kind, Namespace: l.ns(n.Name).net, Dir: l.NodeDir(n.Name),
			Alive: isNS(l.ns(n.Name).net), Processes: []ProcessStatus{}}
		out.Alive = out.Alive && ns.Alive
		for _, p := range n.Processes {
			ps := ProcessStatus{Process: p, Alive: p.Alive()}
			out.Alive = out.Alive && ps.Alive
			ns.Processes = append(ns.Processes, ps)
		}
		if n.Kind == KindSwitch { // the daemon's own, where it has paths to watch
			if p, err := l.findBFD(n.Name); err == nil {
				ns.Processes = append(ns.Processes, ProcessStatus{Process: p, Alive: true})
			}
		}
		out.Nodes = append(out.Nodes, ns)
	}
	for _, k := range st.Links {
		ls := LinkStatus{A: EndStatus{Node: k.A.Node, Port: k.A.Port, Index: k.AIndex}, B: EndStatus{Node: k.B.Node, Port: k.B.Port, Index: k.BIndex}}
		if a := l.end(&ls.A); a != nil {
			ls.MTU = a.MTU
		}
		l.end(&ls.B)
		ls.Up = ls.A.Carrier && ls.B.Carrier
		out.Links = append(out.Links, ls)
	}
	return out
}

// end fills in what the kernel says about one end of a link.
func (l *Lab) end(e *EndStatus) *netlink.LinkAttrs {
	h, err := l.handle(e.Node)
	if err != nil {
		return nil
	}
	lk, err := h.LinkByName(e.Port)
	if err != nil {
		return nil
	}
	a := lk.Attrs()
	e.Index, e.MAC = a.Index, a.HardwareAddr.String()
	e.AdminUp, e.Carrier = a.RawFlags&1 != 0, hasCarrier(a) // IFF_UP
	return a
}

// StatusOf reads a lab by name, also one that was left half built.
func StatusOf(name string, opt Options) (Status, error) {
	opt = opt.withDefaults()
	st, err := readState(filepath.Join(opt.Root, name))
	if err != nil {
		return Status{}, err
	}
	l := newLab(opt, name, st)
	defer l.Close()
	return l.Status(), nil
}
