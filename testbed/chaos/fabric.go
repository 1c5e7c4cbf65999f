package chaos

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed"
	"github.com/openinof/inof/testbed/truth"
)

// labName is the lab that a run builds, unless it is told another.
const labName = "inofctl-chaos"

// fabric is what a run knows of labs/pair.clab.yml.
type fabric struct {
	topo       *testbed.Topology
	places     []truth.Place
	agents     []process // in the order of places
	reflectors []string
	switches   []string // access switches
	inner      []link
}

// baseZones are those of labs/pair/zones.yaml, written out: they stay as they are, so
// that no address is ever in no zone at all. A test compares the two.
func baseZones() map[string][]netip.Addr {
	addrs := func(last ...byte) []netip.Addr {
		var out []netip.Addr
		for _, b := range last {
			out = append(out, netip.AddrFrom4([4]byte{192, 0, 2, b}))
		}
		return out
	}
	return map[string][]netip.Addr{
		"blue":  addrs(11, 12, 21, 22, 91, 92),
		"green": addrs(13, 23),
		"mixed": addrs(13, 21),
	}
}

// extraZones are changed by the faults of kind Zone. They begin empty.
var extraZones = []string{"chaos-1", "chaos-2", "chaos-3", "chaos-4"}

// loadFabric reads the topology with two reflectors and three access switches. Agents
// withdraw their registration when they are stopped in good order, but for those that are
// like the existing one.
func loadFabric(name string) (*fabric, error) {
	topo, err := testbed.LoadFS(labs.FS, labs.Pair)
	if err != nil {
		return nil, err
	}
	topo.Name = name
	f := &fabric{topo: topo}
	ends := make(map[string]testbed.Endpoint)
	for _, k := range topo.Links {
		ends[k.A.String()], ends[k.B.String()] = k.B, k.A
	}
	for i := range topo.Nodes {
		n := &topo.Nodes[i]
		switch {
		case n.Kind == testbed.KindHost:
			for j := range n.Agents {
				if err := f.place(n, &n.Agents[j], ends); err != nil {
					return nil, err
				}
			}
		case n.Zones != "":
			f.reflectors = append(f.reflectors, n.Name)
		default:
			f.switches = append(f.switches, n.Name)
		}
	}
	for _, k := range topo.Links {
		for _, e := range [][2]testbed.Endpoint{{k.A, k.B}, {k.B, k.A}} {
			if slices.Contains(f.reflectors, e[0].Node) && slices.Contains(f.switches, e[1].Node) {
				f.inner = append(f.inner, link{e[0].Node, e[0].Port})
			}
		}
	}
	return f, nil
}

// place finds out where an agent's addresses are.
func (f *fabric) place(n *testbed.Node, a *testbed.Agent, ends map[string]testbed.Endpoint) error {
	like := slices.Contains(a.Args, "--like-agent")
	if a.Args = slices.Clone(a.Args); !like {
		a.Args = append(a.Args, "--shutdown-pdu")
	}
	role := snsd.RoleInitiator
	if i := slices.Index(a.Args, "--role"); i >= 0 {
		if err := role.UnmarshalText([]byte(a.Args[i+1])); err != nil {
			return err
		}
	}
	end, ok := ends[n.Name+":"+a.Port]
	sw := f.topo.Node(end.Node)
	if !ok || sw == nil {
		return fmt.Errorf("%s: %s:%s has no cable", f.topo.Name, n.Name, a.Port)
	}
	device, err := deviceOf(sw)
	if err != nil {
		return err
	}
	for i, arg := range a.Args {
		if arg != "--address" {
			continue
		}
		addr, err := netip.ParseAddr(a.Args[i+1])
		if err != nil {
			return err
		}
		f.places = append(f.places, truth.Place{Addr: addr, Node: n.Name, NIC: a.Port, Agent: "snsd-" + a.Port, Switch: sw.Name, Port: end.Port, Device: device, Role: role, Like: like})
		f.agents = append(f.agents, process{n.Name, "snsd-" + a.Port})
	}
	return nil
}

// deviceOf is a switch's device id: the address that its exec lines give to lo.
func deviceOf(n *testbed.Node) (netip.Addr, error) {
	for _, line := range n.Exec {
		if s, ok := strings.CutSuffix(line, " dev lo"); ok {
			if s, ok = strings.CutPrefix(s, "ip addr add "); ok {
				p, err := netip.ParsePrefix(s)
				return p.Addr(), err
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("switch %s has no address on lo", n.Name)
}

// targets are what Plan may strike.
func (f *fabric) targets() targets {
	t := targets{paths: f.paths(), inner: f.inner, zones: extraZones, members: len(f.places)}
	for _, n := range slices.Concat(f.reflectors, f.switches) {
		t.daemons = append(t.daemons, process{n, "inofd"})
	}
	for _, n := range f.switches {
		t.disks = append(t.disks, process{n, "inofd"})
	}
	for i, p := range f.places {
		t.access = append(t.access, link{p.Switch, p.Port})
		if !slices.Contains(t.agents, f.agents[i]) {
			t.agents = append(t.agents, f.agents[i])
		}
	}
	return t
}

// paths are all pairs of access switches.
func (f *fabric) paths() [][2]string {
	var out [][2]string
	for i, a := range f.switches {
		for _, b := range f.switches[i+1:] {
			out = append(out, [2]string{a, b})
		}
	}
	return out
}

// device is the id of a switch.
func (f *fabric) device(node string) netip.Addr {
	d, _ := deviceOf(f.topo.Node(node)) // it was read once, in place
	return d
}

// across finds the other end of a port's cable.
func (f *fabric) across(l link) link {
	for _, k := range f.topo.Links {
		switch l {
		case link{k.A.Node, k.A.Port}:
			return link{k.B.Node, k.B.Port}
		case link{k.B.Node, k.B.Port}:
			return link{k.A.Node, k.A.Port}
		}
	}
	return link{}
}

// bfdTime is after what time without a packet BFD calls a path bad in the lab: long
// enough for a machine that is busy with other things. It is what tune writes.
const bfdTime = 8 * 500 * time.Millisecond

// Numbers of the configuration of access switches, see tuneAccess.
const (
	crcErrors   = 10 // frames
	crcWindow   = 3 * time.Second
	crcRecovery = 30 * time.Second // the least that is allowed
)

// tuneAccess is what is added to the configuration of access switches: damaged frames
// shut a port. Their files say what stands for damaged frames.
var tuneAccess = fmt.Sprintf(`
error-down:
  crc: {errors: %d, window: %s, action: error-down, recovery: %s}
`, crcErrors, crcWindow, crcRecovery)

// tune is what is added to the configuration of reflectors. A reflector that was
// restarted does not wait the usual two minutes for a device that is slow to come back.
const tune = `
bfd: {interval: 500ms, detect-multiplier: 8}
reflector: {grace: 30s}
`

// owns lists the addresses of an agent.
func (f *fabric) owns(agent string) []netip.Addr {
	var out []netip.Addr
	for i, p := range f.places {
		if f.agents[i].String() == agent {
			out = append(out, p.Addr)
		}
	}
	return out
}

// behind lists the addresses behind an access port.
func (f *fabric) behind(l link) []netip.Addr {
	var out []netip.Addr
	for _, p := range f.places {
		if p.Switch == l.node && p.Port == l.port {
			out = append(out, p.Addr)
		}
	}
	return out
}
