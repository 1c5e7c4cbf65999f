package chaos

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/testbed"
)

// packetFilter keeps the rules by which packets are lost in the namespaces of
// reflectors. Every change replaces a node's whole table at once.
type packetFilter struct {
	lab    *testbed.Lab
	device func(node string) netip.Addr

	mu    sync.Mutex
	rules map[string][]Fault // by node
}

// add begins the loss at a node, remove ends it.
func (p *packetFilter) add(ctx context.Context, node string, f Fault) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules[node] = append(p.rules[node], f)
	return p.write(ctx, node)
}

func (p *packetFilter) remove(ctx context.Context, node string, f Fault) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules[node] = slices.DeleteFunc(p.rules[node], func(g Fault) bool { return g == f })
	return p.write(ctx, node)
}

func (p *packetFilter) write(ctx context.Context, node string) error {
	c := p.lab.CommandContext(ctx, node, "nft", "-f", "-")
	c.Stdin = strings.NewReader(ruleset(p.rules[node], p.device))
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: nft: %w: %s", node, err, out)
	}
	return nil
}

// ruleset is what nft(8) reads. Loss is made before and behind everything else, so
// that what is forwarded is lost too.
func ruleset(faults []Fault, device func(node string) netip.Addr) string {
	var in, out, cut strings.Builder
	for _, f := range faults {
		if f.Kind == Cut {
			fmt.Fprintf(&cut, "    iifname %q tcp dport %d reject with tcp reset\n", f.Port, wire.DefaultPort)
			continue
		}
		if f.Kind == Path {
			a, b := device(f.Node), device(f.Peer)
			if f.Way != "out" {
				fmt.Fprintf(&in, "    ip saddr %s ip daddr %s drop\n", b, a)
			}
			if f.Way != "in" {
				fmt.Fprintf(&in, "    ip saddr %s ip daddr %s drop\n", a, b)
			}
			continue
		}
		which := ""
		switch {
		case f.Kind == Hole:
			which = fmt.Sprintf("meta length > %d ", f.Size)
		case f.Loss < 100:
			which = fmt.Sprintf("numgen random mod 100 < %d ", f.Loss)
		}
		if f.Way != "out" {
			fmt.Fprintf(&in, "    iifname %q %sdrop\n", f.Port, which)
		}
		if f.Way != "in" {
			fmt.Fprintf(&out, "    oifname %q %sdrop\n", f.Port, which)
		}
	}
	return fmt.Sprintf(`table inet inof_chaos
delete table inet inof_chaos
table inet inof_chaos {
  chain in {
    type filter hook prerouting priority -300
%s  }
  chain out {
    type filter hook postrouting priority 300
%s  }
  chain cut {
    type filter hook input priority 0
%s  }
}
`, in.String(), out.String(), cut.String())
}
