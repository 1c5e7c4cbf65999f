package testbed

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/snsd"
)

// A topology of containers is a fabric without containers too.
func TestAFabricOfContainersComesUpAsContainerlabUsersWriteIt(t *testing.T) {
	requireNetns(t)
	topo, err := LoadFS(labs.FS, "leafspine.clab.yml")
	if err != nil {
		t.Fatal(err)
	}
	l := mustUp(t, topo, Options{Root: testRoot(t), BinDir: programs(t)})
	ag, err := followAgents(l)
	if err != nil {
		t.Fatal(err)
	}
	defer ag.close()
	initiator, target := netip.MustParseAddr("192.0.2.11"), netip.MustParseAddr("198.51.100.21")
	var all []heard
	told := func(state snsd.State) func() bool {
		return func() bool {
			more, err := ag.read()
			all = append(all, more...)
			return err == nil && slices.ContainsFunc(all, func(h heard) bool { return h.Host == initiator && h.Subject == target && h.State == state.String() })
		}
	}
	eventually(t, "the initiator to hear of the target", told(snsd.Active))
	if _, err := l.Fault("target", "eth1", false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the initiator to hear that the target is gone", told(snsd.Inactive))
}

func TestANodeOfAContainerIsWhatItsImageAndCommandSay(t *testing.T) {
	const head = "name: x\ntopology:\n  nodes:\n    a:\n      kind: linux\n"
	for name, c := range map[string]struct{ node, want string }{
		"a switch":         {"      image: registry.example:5000/site/inof:v1@sha256:00\n      binds: [a.yaml:/etc/inof/inofd.yaml:ro, z.yaml:/var/lib/inof/zones.yaml]\n", "inof-switch a.yaml z.yaml"},
		"with its command": {"      image: inof-lab\n      cmd: inofd run\n      binds: [__clabNodeName__.yaml:/etc/inof/inofd.yaml]\n", "inof-switch a.yaml "},
		"a host":           {"      image: inof\n      cmd: snsd --interface eth2 --address 192.0.2.1\n", "inof-host eth2 --interface eth2 --address 192.0.2.1 --output json"},
		"of others":        {"      image: alpine\n      cmd: snsd --interface eth2\n", "linux"},
		"no port":          {"      image: inof\n      cmd: snsd --address 192.0.2.1\n", "f.yml:7: topology.nodes.a.cmd: names no port"},
		"another program":  {"      image: inof\n      cmd: sleep 1\n", "f.yml:7: topology.nodes.a.cmd: want `inofd run` or"},
		"no configuration": {"      image: inof\n", "startup-config: is missing"},
		"outside":          {"      image: inof\n      binds: [/etc/x.yaml:/etc/inof/inofd.yaml]\n", "want a file beside or below"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if topo, err := Parse("f.yml", []byte(head+c.node)); err != nil {
				got = err.Error()
			} else {
				switch n := topo.Nodes[0]; n.Kind {
				case KindSwitch:
					got = n.Kind + " " + n.StartupConfig + " " + n.Zones
				case KindHost:
					got = n.Kind + " " + n.Agents[0].Port + " " + strings.Join(n.Agents[0].Args, " ")
				default:
					got = n.Kind
				}
			}
			if got != c.want && !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
