package failover

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openinof/inof/testbed"
)

// The names of the nodes. Plane p has tors[p] at the host, mids[p], and arrayTORs[p].
const (
	machine   = "m" // the host, and over TCP the array too, in a namespace of its own
	arrayNode = "a" // the array over RDMA: soft RoCE is to be had in a machine's first namespace only
	reflector = "refl"
)

var (
	tors      = []string{"tor1", "tor2"}
	mids      = []string{"mid1", "mid2"}
	arrayTORs = []string{"tor3", "tor4"}
)

// Subsystem is the array's only one.
const Subsystem = "nqn.2026-01.net.example:array1"

const servicePort = 4420

func hostAddr(plane int) netip.Addr  { return netip.AddrFrom4([4]byte{10, byte(plane + 1), 1, 11}) }
func arrayAddr(plane int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(plane + 1), 2, 21}) }
func deviceID(n int) string          { return fmt.Sprintf("10.0.0.%d", n) }

// Transport is over what the host has its disk.
type Transport string

// The transports.
const (
	TCP  Transport = "tcp"
	RDMA Transport = "rdma"
)

// at is where the array's side of a plane is: the node, its card, and what goes before a command
// there.
func (t Transport) at(plane int) (node, card, inside string) {
	if t == RDMA {
		return arrayNode, fmt.Sprintf("eth%d", plane+1), ""
	}
	return machine, fmt.Sprintf("eth%d", plane+3), "nsenter --net=/run/netns/tgt "
}

// topology is the lab: cards eth1 and eth2 of the machine are the host's.
func topology(t Transport) string {
	var b strings.Builder
	b.WriteString("name: failover\ntopology:\n  nodes:\n")
	switches := append(append([]string{}, tors...), arrayTORs...)
	b.WriteString("    " + reflector + ":\n      kind: inof-switch\n      startup-config: refl.yaml\n      labels: {inof.zones: zones.yaml}\n      exec:\n        - ip addr add 10.0.0.1/32 dev lo\n")
	for i := range switches {
		fmt.Fprintf(&b, "        - ip addr add 10.9.%d.0/31 dev eth%d\n", i+1, i+1)
		fmt.Fprintf(&b, "        - ip route add %s/32 via 10.9.%d.1 src 10.0.0.1\n", deviceID(11+i), i+1)
	}
	for i, name := range switches {
		plane, side := i%2+1, 1+i/2 // 1: of the host, 2: of the array
		peer := deviceID(11 + (i+2)%4)
		fmt.Fprintf(&b, "    %s:\n      kind: inof-switch\n      startup-config: %s.yaml\n      sysctls: {net.ipv4.ip_forward: \"1\"}\n      exec:\n", name, name)
		for _, line := range []string{
			fmt.Sprintf("ip addr add %s/32 dev lo", deviceID(11+i)),
			fmt.Sprintf("ip addr add 10.%d.%d.1/24 dev eth1", plane, side),
			fmt.Sprintf("ip addr add 10.%d.%d.1/31 dev eth49", plane, 7+side),
			fmt.Sprintf("ip addr add 10.9.%d.1/31 dev eth50", i+1),
			fmt.Sprintf("ip route add 10.0.0.1/32 via 10.9.%d.0 src %s", i+1, deviceID(11+i)),
			fmt.Sprintf("ip route add %s/32 via 10.%d.%d.0 src %s", peer, plane, 7+side, deviceID(11+i)),
			fmt.Sprintf("ip route add 10.%d.%d.0/24 via 10.%d.%d.0", plane, 3-side, plane, 7+side),
		} {
			b.WriteString("        - " + line + "\n")
		}
	}
	for p, name := range mids {
		plane := p + 1
		fmt.Fprintf(&b, "    %s:\n      kind: linux\n      sysctls: {net.ipv4.ip_forward: \"1\"}\n      exec:\n", name)
		for side := 1; side <= 2; side++ {
			fmt.Fprintf(&b, "        - ip addr add 10.%d.%d.0/31 dev eth%d\n", plane, 7+side, side)
			fmt.Fprintf(&b, "        - ip route add 10.%d.%d.0/24 via 10.%d.%d.1\n", plane, side, plane, 7+side)
			fmt.Fprintf(&b, "        - ip route add %s/32 via 10.%d.%d.1\n", deviceID(11+p+2*(side-1)), plane, 7+side)
		}
	}
	fmt.Fprintf(&b, "    %s: {kind: vm, labels: {inof.memory: 512}}\n", machine)
	if t == RDMA {
		fmt.Fprintf(&b, "    %s: {kind: vm, labels: {inof.memory: 512}}\n", arrayNode)
	}
	b.WriteString("  links:\n")
	link := func(a, z string) { fmt.Fprintf(&b, "    - endpoints: [%q, %q]\n", a, z) }
	for i, name := range switches {
		node, card := machine, fmt.Sprintf("eth%d", i+1)
		if i >= len(tors) {
			node, card, _ = t.at(i - len(tors))
		}
		link(name+":eth1", node+":"+card)
		link(fmt.Sprintf("%s:eth49", name), fmt.Sprintf("%s:eth%d", mids[i%2], 1+i/2))
		link(fmt.Sprintf("%s:eth50", name), fmt.Sprintf("%s:eth%d", reflector, i+1))
	}
	return b.String()
}

// Detection is how long a path must be silent before BFD calls it failed: so many intervals.
type Detection struct {
	Interval time.Duration
	Times    int
}

func zones() string {
	var b strings.Builder
	b.WriteString("zones:\n")
	for p := range tors {
		fmt.Fprintf(&b, "  - {name: %s, members: [%s, %s]}\n", zoneName(p), hostAddr(p), arrayAddr(p))
	}
	return b.String()
}

func zoneName(plane int) string { return fmt.Sprintf("plane%d", plane+1) }

// write puts the files of the lab into dir and reads its topology.
func write(dir string, t Transport, bfd Detection) (*testbed.Topology, error) {
	const rest = "session: {auth: none, keepalive: 1s, hold: 3s}\nstate-directory: ${INOF_NODE_STATE}\nmanagement: {socket: \"${INOF_NODE_RUN}/inofd.sock\"}\n"
	files := map[string]string{
		"failover.clab.yml": topology(t), "zones.yaml": zones(),
		"refl.yaml": fmt.Sprintf("device: {id: 10.0.0.1, name: refl, roles: [reflector]}\nbfd: {interval: %v, detect-multiplier: %d}\n%s", bfd.Interval, bfd.Times, rest),
	}
	for i, name := range append(append([]string{}, tors...), arrayTORs...) {
		files[name+".yaml"] = fmt.Sprintf("device: {id: %s, name: %s, roles: [client]}\nports: {access: [eth1]}\nclient: {reflectors: [{address: 10.0.0.1}], source: %s}\n%s",
			deviceID(11+i), name, deviceID(11+i), rest)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return testbed.Load(filepath.Join(dir, "failover.clab.yml"))
}
