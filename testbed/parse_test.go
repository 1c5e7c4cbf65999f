package testbed

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite golden files")

// shape is what a parse gives, in a form a golden file can hold.
type shape struct {
	Name    string
	Nodes   []Node
	Links   []string
	MTU     []int
	Ignored []string
}

func TestParseReadsWhatContainerlabUsersWrite(t *testing.T) {
	files, _ := filepath.Glob("testdata/parse/*.clab.yml")
	if len(files) == 0 {
		t.Fatal("no topologies in testdata/parse")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			topo, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			got := shape{Name: topo.Name, Nodes: topo.Nodes}
			for _, k := range topo.Links {
				got.Links = append(got.Links, k.String())
				got.MTU = append(got.MTU, k.MTU)
			}
			for _, i := range topo.Ignored {
				got.Ignored = append(got.Ignored, i.String())
			}
			b, err := json.MarshalIndent(got, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".clab.yml") + ".golden.json"
			if *update {
				if err := os.WriteFile(golden, append(b, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(string(want)), string(b)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// head makes short texts of errors a topology file; its first line is line 1.
const head = "name: x\ntopology:\n  nodes:\n    a: {kind: linux}\n    b: {kind: linux}\n"

func TestParseNamesEveryMistakeWithItsLine(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{"f.yml: empty file"}},
		{"not a mapping", "- a\n", []string{`f.yml:1: is a list, want a mapping`}},
		{"yaml", "name: [\n", []string{"f.yml: yaml: line"}},
		{"no topology", "name: x\n", []string{"f.yml:1: topology: is missing"}},
		{"no nodes", "name: x\ntopology: {}\n", []string{"topology.nodes: is missing"}},
		{"lab name", "name: ../x\ntopology: {nodes: {a: {kind: linux}}}\n", []string{`f.yml:1: name: "../x" cannot name a lab`}},
		{"unknown top key", head + "nmae: y\n", []string{"f.yml:6: nmae: unknown key, want one of name, topology"}},
		{"unknown topology key", head + "  edges: []\n", []string{"f.yml:6: topology.edges: unknown key"}},
		{"unknown node key", "name: x\ntopology:\n  nodes:\n    a:\n      kind: linux\n      exce: []\n", []string{"f.yml:6: topology.nodes.a.exce: unknown key, want one of kind,"}},
		{"unknown kind", "name: x\ntopology:\n  nodes:\n    a:\n      kind: nokia_srlinux\n", []string{`f.yml:5: topology.nodes.a.kind: unknown kind "nokia_srlinux", want one of linux, inof-switch, inof-host, vm`}},
		{"memory of a vm", "name: x\ntopology:\n  nodes:\n    a: {kind: vm, labels: {inof.memory: 1, inof.cpus: 0, inof.role: target}}\n", []string{`inof.memory: "1", want a number from 256 to 65536`, `inof.cpus: "0", want a number from 1 to 16`, "inof.role: no such label for this kind"}},
		{"memory of a host", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, labels: {inof.memory: 512}}\n", []string{"inof.memory: no such label for this kind"}},
		{"kind of defaults", "name: x\ntopology:\n  kinds:\n    ceos: {}\n  nodes:\n    a: {kind: linux}\n", []string{`f.yml:4: topology.kinds: unknown kind "ceos"`}},
		{"no kind", "name: x\ntopology:\n  nodes:\n    a:\n", []string{"f.yml:4: topology.nodes.a: has no kind"}},
		{"node name", "name: x\ntopology:\n  nodes:\n    a/b: {kind: linux}\n", []string{`f.yml:4: topology.nodes.a/b: "a/b" cannot name a node`}},
		{"twice", head + "    a: {kind: linux}\n", []string{"f.yml:6: topology.nodes.a: is given twice, first at line 4"}},
		{"no group", "name: x\ntopology:\n  nodes:\n    a: {kind: linux,\n      group: g}\n", []string{`f.yml:5: topology.nodes.a.group: there is no group "g"`}},
		{"switch without config", "name: x\ntopology:\n  nodes:\n    a: {kind: inof-switch}\n", []string{"f.yml:4: topology.nodes.a.startup-config: is missing"}},
		{"config outside", "name: x\ntopology:\n  nodes:\n    a: {kind: inof-switch, startup-config: ../../etc/passwd}\n", []string{"want a file beside or below"}},
		{"exec", "name: x\ntopology:\n  nodes:\n    a:\n      kind: linux\n      exec:\n        - ip link\n        - sh -c 'x\n", []string{`f.yml:8: topology.nodes.a.exec: "sh -c 'x" ends inside a quote`}},
		{"exec shape", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, exec: ip link}\n", []string{`f.yml:4: topology.nodes.a.exec: is "ip link", want a list`}},
		{"sysctl", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, sysctls: {kernel.panic: 1}}\n", []string{`f.yml:4: topology.nodes.a.sysctls: "kernel.panic": only net.*`}},
		{"host without address", "name: x\ntopology:\n  nodes:\n    a: {kind: inof-host}\n", []string{"f.yml:4: topology.nodes.a.labels: an inof-host has no address"}},
		{"host labels", "name: x\ntopology:\n  nodes:\n    a:\n      kind: inof-host\n      labels:\n        inof.address: 300.1.1.1\n        inof.rolle: target\n        inof.role: server\n        inof.ttl: 1s\n",
			[]string{`f.yml:7: topology.nodes.a.labels.inof.address: "300.1.1.1" is not an IP address`, "f.yml:8:", "unknown label", `f.yml:9: topology.nodes.a.labels.inof.role: "server", want initiator`, "f.yml:10:"}},
		{"labels of a switch", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, labels: {inof.role: target, owner: me}}\n", []string{"no such label for this kind"}},
		{"one end", head + "  links:\n    - endpoints: [\"a:eth1\"]\n", []string{"f.yml:7: topology.links[0].endpoints: 1 endpoints, want exactly 2"}},
		{"no such node", head + "  links:\n    - endpoints: [\"a:eth1\",\n        \"c:eth1\"]\n", []string{`f.yml:8: topology.links[0].endpoints[1]: there is no node "c"`}},
		{"leaves the lab", head + "  links:\n    - endpoints: [\"a:eth1\", \"host:eth1\"]\n", []string{"links that leave the lab need containerlab"}},
		{"no interface", head + "  links:\n    - endpoints: [\"a\", \"b:eth1\"]\n", []string{`"a" is not NODE:INTERFACE`}},
		{"interface names", head + "  links:\n    - endpoints: [\"a:lo\", \"b:e\"]\n    - endpoints: [\"a:0123456789abcdef\", \"b:f\"]\n    - endpoints: [\"a:e%d\", \"b:g\"]\n", []string{"f.yml:7:", "f.yml:8:", "f.yml:9:"}},
		{"used twice", head + "  links:\n    - endpoints: [\"a:eth1\", \"b:eth1\"]\n    - endpoints: [\"a:eth2\", \"b:eth1\"]\n", []string{"f.yml:8: topology.links[1]: b:eth1 is already the end of the link at line 7"}},
		{"mtu", head + "  links:\n    - endpoints: [\"a:eth1\", \"b:eth1\"]\n      mtu: 67\n", []string{`f.yml:8: topology.links[0].mtu: "67" is not a number from 68 to 65535`}},
		{"link type", head + "  links:\n    - type: macvlan\n      endpoints: [\"a:eth1\", \"b:eth1\"]\n", []string{`f.yml:7: topology.links[0].type: link type "macvlan", want veth`}},
		{"mac", head + "  links:\n    - type: veth\n      endpoints:\n        - {node: a, interface: eth1, mac: \"01:00:00:00:00:01\"}\n        - {node: b, interface: eth1}\n", []string{`f.yml:9: topology.links[0].endpoints[0].mac:`}},
		{"template", "name: x\ntopology:\n  nodes:\n  {{- range $i := seq 3 }}\n    n{{ $i }}: {kind: linux}\n  {{- end }}\n", []string{"f.yml:4: this is a Go template and no YAML yet"}},
		{"text of a config", "name: x\ntopology:\n  nodes:\n    a:\n      kind: inof-switch\n      startup-config: |\n        secret: x\n        b: y\n", []string{"startup-config: is a text of 2 lines: put it into a file"}},
		{"merge of itself", "name: x\ntopology: &t\n  <<: *t\n  nodes: {a: {kind: linux}}\n", []string{"yml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f.yml", []byte(c.text))
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error\n%s\nlacks %q", err, w)
				}
			}
		})
	}
}

// A mistake of a node is said once, not for each of its links too; nor is a text dumped.
func TestOneMistakeIsOneError(t *testing.T) {
	for name, text := range map[string]string{
		"unknown kind": "name: x\ntopology:\n  nodes:\n    a: {kind: ceos}\n    b: {kind: linux}\n  links:\n" +
			"    - endpoints: [\"a:eth1\", \"b:eth1\"]\n    - endpoints: [\"b:eth2\", \"a:eth2\"]\n",
		"template": "name: x\ntopology:\n  nodes:\n  {{ range .n }}\n    a: {kind: ceos}\n",
		"link of another type": "name: x\ntopology:\n  nodes:\n    a: {kind: linux}\n  links:\n" +
			"    - {endpoint: {node: a, interface: eth1}, host-interface: e1, remote: 192.0.2.1, vni: 7, dst-port: 4789, src-port: 1, mode: bridge, type: vxlan}\n",
		"a text": "name: x\ntopology:\n  nodes:\n    a: {kind: linux, startup-config: \"dump\\nme\\n\"}\n",
	} {
		_, err := Parse("f.yml", []byte(text))
		if pes, ok := err.(ParseErrors); !ok || len(pes) != 1 || strings.Contains(err.Error(), "dump") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What containerlab takes and means nothing here is noted, not refused: these came with its last
// versions, and variables may stand at an endpoint.
func TestKeysOfContainerlabAreNoted(t *testing.T) {
	topo, err := Parse("f.yml", []byte("name: x\ntopology:\n  nodes:\n    a: {kind: linux, privileged: true, pid-mode: host, cgroupns-mode: host, security-opts: [x], tmpfs: [/x], ulimits: {nofile: 1}, link-apply-mode: x}\n    b: {kind: linux}\n"+
		"  links:\n    - endpoints:\n        - {node: a, interface: eth1, vars: {as: 65001}}\n        - {node: b, interface: eth1}\n      type: veth\n"))
	if err != nil || len(topo.Ignored) != 8 || len(topo.Links) != 1 {
		t.Errorf("%+v, %v", topo, err)
	}
}

// The keys of a node, a link and an end of it in containerlab's published schema and its development
// version of autumn 2026, and some that were there before.
func TestPublishedKeysOfContainerlabAreTaken(t *testing.T) {
	for _, k := range strings.Fields(`image image-pull-policy restart-policy kind license type group startup-config startup-delay
		enforce-startup-config suppress-startup-config auto-remove exec binds volumes ports env credentials env-files user hostname
		entrypoint cmd labels runtime mgmt-ipv4 mgmt-ipv6 mgmt-net network-mode link-apply-mode cpu memory cpu-set extras config stages
		dns certificate healthcheck components aliases shm-size cap-add privileged cgroupns-mode cgroup-parent pid-mode tmpfs
		security-opts sysctls devices position publish sandbox kernel wait-for`) {
		if ignoredNode[k] == "" && !slices.Contains(nodeKeys, k) {
			t.Errorf("key %s of a node is refused", k)
		}
	}
	for _, text := range []string{
		"{type: veth, mtu: 1500, ipv4: [a], ipv6: [b], vars: {x: 1}, labels: {x: y}, endpoints: [\"a:eth1\", \"b:eth1\"]}",
		"{type: veth-stitch, endpoints: [{node: a, interface: eth1, mac: \"02:00:00:00:00:01\", ipv4: x, ipv6: y, vars: {x: 1}}, {node: b, interface: eth1}]}",
	} {
		if topo, err := Parse("f.yml", []byte(head+"  links:\n    - "+text+"\n")); err != nil || len(topo.Links) != 1 {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParseTakesNoMoreThanItsLimits(t *testing.T) {
	bomb := "name: x\ntopology: &t\n  <<: [" + strings.Repeat("*t, ", 50) + "*t]\n  nodes: {a: {kind: linux}}\n"
	if _, err := Parse("f.yml", []byte(bomb)); err == nil {
		t.Error("a mapping that merges itself is accepted")
	}
	big := head + "#" + strings.Repeat("x", MaxTopologySize)
	if _, err := Parse("f.yml", []byte(big)); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a file of %d bytes: %v", len(big), err)
	}
}

func TestSplitCommandAndQuotingAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.String(), 1, 6).Draw(t, "words")
		var line []string
		for _, w := range words {
			line = append(line, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		got, err := splitCommand(strings.Join(line, " \t"))
		if diff := cmp.Diff(words, got); err != nil || diff != "" {
			t.Fatalf("%v: %v\n%s", line, err, diff)
		}
	})
}

func TestSubstitute(t *testing.T) {
	vars := map[string]string{"A": "1", "B": "${A}"}
	for _, c := range []struct{ in, want, err string }{
		{"x ${A}/${B} $ $A", "x 1/${A} $ $A", ""},
		{"x\n${C}", "", "line 2: ${C} is not known here, want one of A, B"},
		{"${A", "", "not known"},
	} {
		got, err := substitute(c.in, vars)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || got != c.want {
			t.Errorf("substitute(%q) = %q, %v; want %q, %q", c.in, got, err, c.want, c.err)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/parse/*.clab.yml")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(head))
	f.Add([]byte("a: &a {<<: *a}\nname: x\ntopology: {nodes: *a}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		topo, err := Parse("f.clab.yml", b)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without text")
			}
			return
		}
		if !ValidName(topo.Name) || len(topo.Nodes) == 0 || len(topo.Nodes) > MaxNodes {
			t.Fatalf("accepted: %+v", topo)
		}
		for _, n := range topo.Nodes {
			if !ValidName(n.Name) {
				t.Errorf("node name %q", n.Name)
			}
			for _, e := range n.Exec {
				if w, err := splitCommand(e); err != nil || len(w) == 0 {
					t.Errorf("exec %q: %v", e, err)
				}
			}
		}
		for _, k := range topo.Links {
			for _, e := range []Endpoint{k.A, k.B} {
				if topo.Node(e.Node) == nil || validIfName(e.Port) != nil {
					t.Errorf("link %v", k)
				}
			}
		}
	})
}
