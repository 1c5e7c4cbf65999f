package scenario

import (
	"bufio"
	"cmp"
	"fmt"
	"os"

	"github.com/openinof/inof/model"
)

// Sizes for the estimate of memory, in bytes.
const (
	perPort  = 2600 // with its eight queues
	perFrame = 48   // in the pool, with what a growing pool leaves behind
	perFlow  = 600
)

// parts is how much a topology holds.
type parts struct {
	switches, hosts, links int64
	ports                  int64 // of one switch, at most
}

// parts counts what a topology would be made of, before it is made.
func (t *Topology) parts(hosts []int) parts {
	h := int64(hosts[0])
	leaves, spines, pods, tors, aggs, cores, n := int64(t.Leaves), int64(t.Spines), int64(t.Pods), int64(t.Tors), int64(t.Aggs), int64(t.Cores), int64(t.Switches)
	switch t.Kind {
	case "star":
		return parts{1, h, h, h}
	case "leaf-spine":
		return parts{leaves + spines, leaves * h, leaves * (h + spines), max(h+spines, leaves)}
	case "clos":
		return parts{pods*(tors+aggs) + cores, pods * tors * h, pods * (tors*(h+aggs) + cores), max(h+aggs, tors+cores/max(aggs, 1), pods)}
	case "ring":
		return parts{n, n * h, n * (h + 1), h + 2}
	case "two-sites":
		return parts{2, 2 * h, 2*h + 1, h + 1}
	case "testbed":
		p := parts{switches: 10, links: 16}
		for _, k := range hosts {
			p.hosts, p.links, p.ports = p.hosts+int64(k), p.links+int64(k), max(p.ports, int64(k)+2)
		}
		return p
	}
	return parts{int64(len(t.Nodes)), int64(len(t.Nodes)), int64(len(t.Links)), 0} // explicit; Connect counts its ports
}

// fits refuses a topology that no machine, or not this one, can hold. It says so before
// anything is made.
func (b *builder) fits(p parts) bool {
	t := &b.f.Topology
	switch {
	case p.hosts > maxHosts:
		b.problem(t.Line, "topology", "%d hosts, at most %d", p.hosts, maxHosts)
		return false
	case p.ports > model.MaxPorts:
		b.problem(t.Line, "topology", "%d ports on one switch, at most %d", p.ports, model.MaxPorts)
		return false
	}
	frame := int64(b.f.NIC.MTU) + 48
	if b.f.NIC.MTU <= 0 {
		frame = 1048
	}
	buffer := int64(b.f.Switch.Buffer)
	if buffer == 0 {
		buffer = 32 << 20
	}
	ok := b.takes(t.Line, "topology", p.links*2*perPort+p.switches*min(p.hosts, p.switches)*4)
	return ok && b.takes(cmp.Or(b.f.Switch.Line, t.Line), "switch.buffer", p.switches*(buffer/frame)*perFrame) // frames that fill all buffers
}

// takes adds to what the run may need at most; false if the machine has not so much.
func (b *builder) takes(line int, key string, bytes int64) bool {
	have := b.f.memory
	if have == 0 {
		have = available()
	}
	if b.need += bytes; have > 0 && b.need > have {
		b.problem(line, key, "needs up to %d MB of memory, %d are available", b.need>>20, have>>20)
		return false
	}
	return true
}

// available gives the memory that the machine can spare, 0 if it does not say.
func available() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var kb int64
		if _, err := fmt.Sscanf(sc.Text(), "MemAvailable: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	return 0
}
