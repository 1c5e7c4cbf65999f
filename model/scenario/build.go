package scenario

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/control"
	"github.com/openinof/inof/model/workload"
)

// Limits of what a file may ask for.
const (
	maxHosts = 1 << 18
	maxFlows = 4_000_000
	maxSteps = 10_000_000 // samples of a recording
)

// Parse reads a scenario; name is what errors call it. The error joins all problems
// found, each a Problem with its line.
func Parse(name string, data []byte) (*File, error) {
	return parse(name, func(d *decoder, f *File) { d.document(data, f) })
}

func parse(name string, read func(*decoder, *File)) (*File, error) {
	d := &decoder{file: name}
	f := &File{Seed: 1, path: name}
	read(d, f)
	if err := d.err(); err != nil {
		return nil, err
	}
	if f.Duration <= 0 {
		d.problem(f.Line, "duration", "is missing: how long the run lasts in virtual time")
	}
	if f.Name == "" {
		d.problem(f.Line, "name", "is missing")
	}
	if f.Record.Every < 0 || f.Record.Every > 0 && f.Duration/f.Record.Every > maxSteps {
		d.problem(f.Record.Line, "record.every", "%v gives more than %d samples", f.Record.Every, maxSteps)
	}
	return f, d.err()
}

// Load reads a scenario file.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// builder turns a File into a simulation, collecting problems.
type builder struct {
	decoder
	f        *File
	fabric   *workload.Fabric
	sim      *model.Sim
	nodes    map[string]model.NodeID
	hosts    []model.NodeID
	groups   []group
	faults   []fault
	probes   []probe
	apps     []app // loads and jobs, by number
	loads    []load
	jobs     []job
	switches []model.NodeID
	// initiators of all loads, who are told of faults
	initiators []model.NodeID
	plane      *control.Plane // nil: none
	breaker    breaker        // nil: the fabric itself
	mu         sync.Mutex     // of broken
	broken     error          // of an app, while running
	oneCore    string         // why not on the cores that were asked for
	cc         model.Control  // of all hosts; nil = none
	need       int64          // bytes of memory that the run may take
}

// group is the flows of one traffic entry.
type group struct {
	name  string
	flows []model.FlowID
}

func (f *File) build() (*builder, error) {
	b := &builder{decoder: decoder{file: f.path}, f: f, nodes: map[string]model.NodeID{}}
	b.cc = f.Congestion.control()
	p := workload.Profiles{Switch: b.switchProfile("switch", &f.Switch), NIC: b.nicProfile("nic", &f.NIC)}
	b.topology(p)
	if err := b.err(); err != nil {
		return nil, err
	}
	sim, err := b.fabric.Net.Build(model.Options{Seed: f.Seed, NSClock: f.NSClock, NSPaths: f.NSPaths, Trace: f.Trace})
	if err != nil {
		line, key := f.Topology.Line, "topology"
		switch {
		case errors.Is(err, model.ErrCongestion):
			line, key = f.Congestion.Line, "congestion"
		case errors.Is(err, model.ErrNICProfile) && f.NIC.Line > 0:
			line, key = f.NIC.Line, "nic"
		case errors.Is(err, model.ErrProfile) && f.Switch.Line > 0:
			line, key = f.Switch.Line, "switch"
		}
		return nil, Problem{b.file, line, key, err.Error()}
	}
	b.sim = sim
	for i := range sim.Nodes() {
		b.nodes[sim.NodeName(model.NodeID(i))] = model.NodeID(i)
		if sim.IsSwitch(model.NodeID(i)) {
			b.switches = append(b.switches, model.NodeID(i))
		}
	}
	b.hosts = b.fabric.Hosts
	b.uplinks()
	for i := range f.Traffic {
		b.traffic(i, &f.Traffic[i])
	}
	b.control()
	for i := range f.Faults {
		b.fault(i, &f.Faults[i])
	}
	for i, q := range f.Record.Queues {
		b.probe(fmt.Sprintf("record.queues[%d]", i), q)
	}
	return b, b.err()
}

func (b *builder) link(key string, l *Link) model.LinkSpec {
	if l == nil {
		b.problem(b.f.Topology.Line, key, "is missing")
		return model.LinkSpec{}
	}
	delay := l.Delay
	if l.KM > 0 {
		if delay > 0 {
			b.problem(l.Line, key, "has both km and delay")
		}
		delay = model.KM(l.KM)
	}
	if delay <= 0 || l.Rate < model.Mbps {
		b.problem(l.Line, key, "rate %v, delay %v: want a rate of 1M or more and a delay above 0", l.Rate, delay)
	}
	if l.Loss < 0 || l.Loss > 1 || l.Overhead < 0 || l.Overhead > 1000 {
		b.problem(l.Line, key, "loss %g, overhead %d: want 0..1 and 0..1000", l.Loss, l.Overhead)
	}
	return model.LinkSpec{Rate: l.Rate, Delay: delay, Overhead: l.Overhead, Loss: l.Loss}
}

func (b *builder) topology(p workload.Profiles) {
	t := &b.f.Topology
	if t.Kind == "explicit" {
		b.explicit(p)
		return
	}
	edge := b.link("topology.link", t.Link)
	up := edge
	if t.Uplink != nil {
		up = b.link("topology.uplink", t.Uplink)
	}
	hosts := t.Hosts
	if len(hosts) == 0 {
		hosts = []int{1}
	}
	for _, n := range append([]int{t.Leaves, t.Spines, t.Pods, t.Tors, t.Aggs, t.Cores, t.Switches}, hosts...) {
		if n < 0 || n > maxHosts {
			b.problem(t.Line, "topology", "%d is not a number of parts, want 0..%d", n, maxHosts)
			return
		}
	}
	if !b.fits(t.parts(hosts)) {
		return
	}
	var err error
	switch t.Kind {
	case "star":
		b.fabric, err = workload.Star(hosts[0], edge, p)
	case "leaf-spine":
		b.fabric, err = workload.LeafSpine(t.Leaves, hosts[0], t.Spines, edge, up, p)
	case "clos":
		if t.Aggs == 0 {
			err = fmt.Errorf("aggs is missing")
			break
		}
		b.fabric, err = workload.Clos(t.Pods, t.Tors, hosts[0], t.Aggs, t.Cores, edge, up, p)
	case "ring":
		b.fabric, err = workload.Ring(t.Switches, hosts[0], edge, up, p)
	case "two-sites":
		b.fabric, err = workload.TwoSites(hosts[0], edge, up, p)
	case "testbed":
		if len(hosts) != 4 {
			err = fmt.Errorf("hosts: want four numbers, one a ToR")
			break
		}
		b.fabric, err = workload.Testbed([4]int(hosts), p)
	default:
		err = fmt.Errorf("kind %q is not star, leaf-spine, clos, ring, two-sites, testbed or explicit", t.Kind)
	}
	if err != nil {
		b.problem(t.Line, "topology", "%v", err)
	}
}

// explicit builds the nodes and links that the file lists.
func (b *builder) explicit(p workload.Profiles) {
	t := &b.f.Topology
	if !b.fits(t.parts([]int{0})) {
		return
	}
	b.fabric = &workload.Fabric{Net: &model.Network{}}
	ids := map[string]model.NodeID{}
	for i, n := range t.Nodes {
		key := fmt.Sprintf("topology.nodes[%d]", i)
		if _, ok := ids[n.Name]; ok || n.Name == "" || strings.ContainsAny(n.Name, ":>/- ") {
			b.problem(n.Line, key+".name", "%q is used twice, empty, or has one of : > / - and blank", n.Name)
			continue
		}
		switch n.Kind {
		case "switch":
			sp := p.Switch
			if n.Switch != nil {
				sp = b.switchProfile(key+".switch", n.Switch)
			}
			ids[n.Name] = b.fabric.Net.AddSwitch(n.Name, sp)
			b.fabric.Edge = append(b.fabric.Edge, ids[n.Name])
		case "host":
			np := p.NIC
			if n.NIC != nil {
				np = b.nicProfile(key+".nic", n.NIC)
			}
			if n.Congestion.Given {
				np.CC = n.Congestion.control()
			}
			ids[n.Name] = b.fabric.Net.AddHost(n.Name, np)
			b.fabric.Hosts = append(b.fabric.Hosts, ids[n.Name])
		default:
			b.problem(n.Line, key+".kind", "%q is not switch or host", n.Kind)
		}
	}
	for i := range t.Links {
		l := &t.Links[i]
		key := fmt.Sprintf("topology.links[%d]", i)
		spec := b.link(key, l)
		na, pa, _ := strings.Cut(l.A, ":")
		nb, pb, _ := strings.Cut(l.B, ":")
		x, okA := ids[na]
		y, okB := ids[nb]
		if !okA || !okB {
			b.problem(l.Line, key, "%q or %q is not a node", na, nb)
			continue
		}
		spec.PortA, spec.PortB = pa, pb
		id, err := b.fabric.Net.Connect(x, y, spec)
		if err != nil {
			b.problem(l.Line, key, "%v", err)
			continue
		}
		b.fabric.Links = append(b.fabric.Links, id)
	}
}

func (b *builder) uplinks() {
	u := b.f.Uplinks
	if u == nil {
		return
	}
	var rules []model.HookRule
	for _, r := range u.Rules {
		rules = append(rules, model.HookRule{From: b.dscp(r.Line, "uplink-group.rules", r.From) >> 2, To: b.dscp(r.Line, "uplink-group.rules", r.To) >> 2})
	}
	for _, name := range u.Switches {
		id, ok := b.nodes[name]
		if !ok {
			b.problem(u.Line, "uplink-group.switches", "%q is not a node", name)
			continue
		}
		if err := b.sim.SetUplinkGroup(id, rules, u.OldPrio); err != nil {
			b.problem(u.Line, "uplink-group", "%v", err)
		}
	}
}

// endpoints resolves a list of host patterns.
func (b *builder) endpoints(line int, key string, patterns []string) []model.EndpointID {
	var out []model.EndpointID
	for _, p := range patterns {
		if p == "*" {
			for _, h := range b.hosts {
				if b.sim.Ports(h) == 0 { // it has no address
					continue
				}
				out = append(out, b.sim.EndpointOf(h, 0))
			}
			continue
		}
		from, to, isRange := strings.Cut(p, "..")
		if !isRange {
			to = from
		}
		names, err := expand(from, to)
		if err != nil {
			b.problem(line, key, "%q: %v", p, err)
			continue
		}
		for _, name := range names {
			ep, err := b.endpoint(name)
			if err != nil {
				b.problem(line, key, "%v", err)
				break
			}
			out = append(out, ep)
		}
	}
	return out
}

// endpoint finds "host" or "host/port number".
func (b *builder) endpoint(name string) (model.EndpointID, error) {
	host, num, hasPort := strings.Cut(name, "/")
	id, ok := b.nodes[host]
	if !ok || b.sim.IsSwitch(id) {
		return 0, fmt.Errorf("%q is not a host", host)
	}
	k := 0
	if hasPort {
		var err error
		if k, err = strconv.Atoi(num); err != nil || k < 0 || k >= b.sim.Ports(id) {
			return 0, fmt.Errorf("host %s has no port number %q, it has %d ports", host, num, b.sim.Ports(id))
		}
	}
	if b.sim.Ports(id) == 0 {
		return 0, fmt.Errorf("host %s has no link", host)
	}
	return b.sim.EndpointOf(id, k), nil
}

// expand gives the names from "h3" to "h12".
func expand(from, to string) ([]string, error) {
	if from == to {
		return []string{from}, nil
	}
	pa, a, errA := splitNumber(from)
	pb, z, errB := splitNumber(to)
	if errors.Join(errA, errB) != nil || pa != pb || z < a || z-a > maxHosts {
		return nil, fmt.Errorf("want names that differ in a rising number at the end")
	}
	var out []string
	for i := a; i <= z; i++ {
		out = append(out, pa+strconv.Itoa(i))
	}
	return out, nil
}

func splitNumber(s string) (string, int, error) {
	i := len(s)
	for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
		i--
	}
	n, err := strconv.Atoi(s[i:])
	return s[:i], n, err
}

// portTowards finds the port "a>b": of node a, leading to node b.
func (b *builder) portTowards(name string) (model.PortID, error) {
	x, y, ok := strings.Cut(name, ">")
	na, okA := b.nodes[x]
	nb, okB := b.nodes[y]
	if !ok || !okA || !okB {
		return 0, fmt.Errorf("%q: want \"node>neighbour\"", name)
	}
	for k := range b.sim.Ports(na) {
		p := b.sim.PortOf(na, k)
		if b.sim.PortNode(b.sim.Peer(p)) == nb {
			return p, nil
		}
	}
	return 0, fmt.Errorf("%s has no link to %s", x, y)
}
