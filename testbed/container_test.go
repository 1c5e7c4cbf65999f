package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

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

// containerNode is what schemas/clab.schema.json of containerlab (draft 7, its node-config with
// additionalProperties false) lets a node have, as far as our examples need it. It has no sysctls.
type containerNode struct {
	Kind          string
	Image         string
	Group         string
	Cmd           string
	Entrypoint    string
	User          string
	StartupConfig string `yaml:"startup-config"`
	Exec          []string
	Binds         []string
	Ports         []string
	Env           map[string]string
	Labels        map[string]string
	NetworkMode   string `yaml:"network-mode"`
}

// checkAsContainerlab says what that schema would not have of a topology of containers.
func checkAsContainerlab(b []byte) error {
	var topo struct {
		Name, Prefix string
		Topology     struct {
			Defaults containerNode
			Kinds    map[string]containerNode
			Nodes    map[string]*containerNode
			Links    []struct{ Endpoints []string }
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&topo); err != nil {
		return err
	}
	if topo.Name == "" || topo.Topology.Nodes == nil {
		return errors.New("name or topology.nodes is missing")
	}
	check := func(at string, n *containerNode) error {
		switch {
		case n.Kind != "" && n.Kind != "linux":
			return fmt.Errorf("%s: kind %q", at, n.Kind)
		case n.Exec != nil && len(n.Exec) == 0, n.Binds != nil && len(n.Binds) == 0:
			return fmt.Errorf("%s: an empty list", at)
		case len(slices.Compact(slices.Sorted(slices.Values(n.Binds)))) != len(n.Binds):
			return fmt.Errorf("%s: binds has one twice", at)
		}
		return nil
	}
	errs := []error{check("defaults", &topo.Topology.Defaults)}
	for name, n := range topo.Topology.Kinds {
		if name != "linux" {
			errs = append(errs, fmt.Errorf("kind %q", name))
		}
		errs = append(errs, check("kinds."+name, &n))
	}
	for name, n := range topo.Topology.Nodes {
		if n != nil {
			errs = append(errs, check("nodes."+name, n))
		}
	}
	endpoint := regexp.MustCompile(`^\S+:\S+$`)
	if topo.Topology.Links != nil && len(topo.Topology.Links) == 0 {
		errs = append(errs, errors.New("links is empty"))
	}
	for _, l := range topo.Topology.Links {
		if len(l.Endpoints) < 2 || l.Endpoints[0] == l.Endpoints[1] || slices.ContainsFunc(l.Endpoints, func(e string) bool { return !endpoint.MatchString(e) }) {
			errs = append(errs, fmt.Errorf("endpoints %q", l.Endpoints))
		}
	}
	return errors.Join(errs...)
}

// The example for containerlab has nothing that containerlab's schema does not know; a lab of our
// own kinds would be refused there.
func TestTheExampleForContainerlabKeepsToItsSchema(t *testing.T) {
	good, err := labs.FS.ReadFile("leafspine.clab.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkAsContainerlab(good); err != nil {
		t.Error(err)
	}
	for old, new := range map[string]string{
		"      kind: linux\n":           "      kind: inof-switch\n",
		"      image: inof-lab:latest":  "      sysctls: {a: b}",
		`["spine:eth1", "leaf1:eth49"]`: `["spine"]`,
		"name: inof-leafspine":          "",
		"topology:\n":                   "other: 1\ntopology:\n",
	} {
		if bad := strings.Replace(string(good), old, new, 1); bad == string(good) || checkAsContainerlab([]byte(bad)) == nil {
			t.Errorf("with %q in place of %q it is taken", new, old)
		}
	}
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
