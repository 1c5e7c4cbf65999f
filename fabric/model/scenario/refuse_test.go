package scenario

import (
	"strings"
	"testing"

	"github.com/openinof/inof/fabric/model"
)

const good = `name: x
duration: 1ms
topology:
  kind: explicit
  nodes:
    - {name: a, kind: host}
    - {name: b, kind: host}
    - {name: c, kind: host}
    - {name: s, kind: switch}
  links:
    - {a: "a:p1", b: "s:left", rate: 100G, delay: 1us}
    - {a: b, b: s, rate: 100G, delay: 1us}
traffic:
  - {name: t, kind: flows, from: a, to: b}
`

// Every file is refused with its line and a reason.
func TestBadScenariosAreRefused(t *testing.T) {
	if f, err := Parse("x.yaml", []byte(good)); err != nil {
		t.Fatal(err)
	} else if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown key", "duration: 1ms", "duration: 1ms\nspeed: 3", "x.yaml:3: speed: unknown key; known: name,"},
		{"unknown key deep down", "kind: flows,", "kind: flows, form: a,", "x.yaml:14: traffic[0].form: unknown key"},
		{"key twice", "duration: 1ms", "duration: 1ms\nduration: 2ms", "x.yaml:3: duration: is set twice"},
		{"no duration", "duration: 1ms\n", "", "duration: is missing"},
		{"port used twice", `a: b, b: s,`, `a: b, b: "s:left",`, "x.yaml:12: topology.links[1]: topology: port left of s is used twice"},
		{"zero delay", "b: s, rate: 100G, delay: 1us", "b: s, rate: 100G, delay: 0", "x.yaml:12: topology.links[1]: rate 100G, delay 0ps"},
		{"zero rate", "b: s, rate: 100G", "b: s, rate: 0", "x.yaml:12: topology.links[1].rate: rate \"0\""},
		{"unreachable", "from: a, to: b", "from: a, to: c", "x.yaml:14: traffic[0].to: host c has no link"},
		{"unknown host", "to: b}", "to: d}", `x.yaml:14: traffic[0].to: "d" is not a host`},
		{"to itself", "from: a, to: b", "from: a, to: a", "x.yaml:14: traffic[0]: gives 0 flows"},
		{"link to itself", "{a: b, b: s,", "{a: s, b: s,", "joins a node with itself"},
		{"no unit", "duration: 1ms", "duration: 1", `x.yaml:2: duration: time "1"`},
		{"threshold above the buffer", "traffic:", "switch: {model: cells, buffer: 1MiB, cells: {xoff: 2MiB}}\ntraffic:", "x.yaml:13: switch.cells: a threshold of 2097152 bytes lies above the buffer of 1048576"},
		{"headroom above the buffer", "traffic:", "switch: {buffer: 50KB}\ntraffic:", "headroom and reserves of 2 ports need"},
		{"buffer too large", "traffic:", "switch: {buffer: 3GB}\ntraffic:", "buffer of 3000000000 bytes"},
		{"too much memory", "traffic:", "switch: {buffer: 900000GB}\ntraffic:", "MB of memory"},
		{"not yaml", "name: x", "name: [", "x.yaml:"},
		{"two documents", "duration: 1ms", "duration: 1ms\n---\na: b", "a second document"},
		{"alias", "name: x", "name: &a x\nabout: *a", "aliases are not allowed"},
		{"bad weight", "traffic:", "switch: {wdrr: [{queue: 9, weight: 1}, {queue: 1, weight: 1000}]}\ntraffic:", "queue 9, want 0..7"},
		{"fault out of time", "traffic:", "faults:\n  - {at: 2ms, kind: link-down, link: a-s}\ntraffic:", "x.yaml:14: faults[0].at: 2ms is not within the run of 1ms"},
		{"fault of nothing", "traffic:", "faults:\n  - {at: 0, kind: link-down, link: a-b}\ntraffic:", "a has no link to b"},
		{"start after the end", "kind: flows,", "kind: flows, start: 2ms,", "is after the end of the run"},
		{"control plane without reflectors", "traffic:", "control: {agents: a}\ntraffic:", "x.yaml:13: control: control plane: no reflectors"},
		{"reflector that is a host", "traffic:", "control: {reflectors: a}\ntraffic:", `x.yaml:13: control.reflectors: "a" is not a switch`},
		{"agent that is a switch", "traffic:", "control: {reflectors: s, agents: s}\ntraffic:", `x.yaml:13: control.agents: "s" is not a host`},
		{"unknown key of the control plane", "traffic:", "control: {reflectors: s, bfd: {timer: 1ms}}\ntraffic:", "x.yaml:13: control.bfd.timer: unknown key; known: off, interval, multiplier"},
		{"hold time", "traffic:", "control: {reflectors: s, hold: 1ms}\ntraffic:", "x.yaml:13: control: control plane: sessions:"},
		{"action", "traffic:", "control: {reflectors: s, crc: {action: pray}}\ntraffic:", `x.yaml:13: control.crc.action: "pray" is not notify, error-down or none`},
		{"endless samples", "traffic:", "record: {every: 1ps}\ntraffic:", "gives more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			if text == good {
				t.Fatal("nothing replaced")
			}
			f, err := Parse("x.yaml", []byte(text))
			if err == nil {
				err = f.Check()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// A star with a cycle in its topology is fine; so are cables between hosts.
func TestUnusualFabricsWork(t *testing.T) {
	text := `name: x
duration: 1ms
topology:
  kind: explicit
  nodes: [{name: a, kind: host}, {name: b, kind: host}]
  links: [{a: a, b: b, rate: 100G, delay: 1us}]
traffic: [{name: t, kind: flows, from: a, to: b, bytes: 1MB}]
expect: [{metric: t.done, min: 1}]
`
	f, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}

// No text makes the reader or a short run hang or panic.
func FuzzScenario(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("name: y\nduration: 20us\ncongestion: paper\ntopology: {kind: ring, switches: 3, hosts: [1], link: {rate: 10G, delay: 1ns}}\ntraffic: [{kind: all-to-all, from: '*', bytes: 3KB}]\n"))
	f.Add([]byte("name: y\nduration: 20us\ntopology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2, link: {rate: 1G, delay: 1us}}\nswitch: {model: cells, deadlock: {detect: 1us}}\ntraffic: [{kind: incast, from: h0..h2, to: h3}]\nfaults: [{at: 1us, kind: storm, host: h3, queues: [3], every: 1us, for: 1s}]\n"))
	f.Add([]byte("name: y\nduration: 400ms\ntopology: {kind: leaf-spine, leaves: 2, spines: 1, hosts: 1, link: {rate: 1G, delay: 1us}}\ntraffic: [{kind: storage, from: h0, to: h1, depth: 1, service: 1ms, keep-alive: 1s, blocks: [{bytes: 4KiB}]}]\n" +
		"control: {reflectors: spine0, zones: [{name: z, hosts: '*'}], agents: '*', carrier-delay: 1ms, processing: 1us, hold: 3s, bfd: {interval: 10ms, multiplier: 3}, pfc-storm: {detect: 10ms, deadlocks: 1}, crc: {errors: 1}, hosts: {fail-over: 1us, probe: 1ms, restraint: 1ms}}\nfaults: [{at: 300ms, kind: link-down, link: h1-leaf1}, {at: 310ms, kind: switch-down, switch: leaf1}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("fuzz.yaml", data)
		if err != nil {
			return
		}
		most := 20 * model.Microsecond
		if file.Control != nil {
			most = 400 * model.Millisecond
		}
		file.Duration = min(file.Duration, most)
		if n := len(file.Topology.Hosts); n > 0 && file.Topology.Hosts[0] > 64 || file.Topology.Leaves+file.Topology.Switches+file.Topology.Pods*file.Topology.Tors+file.Topology.Cores+file.Topology.Spines > 64 {
			return // large ones are slow, not wrong
		}
		b, err := file.build()
		if err != nil {
			return
		}
		if b.plane != nil {
			b.sim.SetHandler(runner{b})
			b.plane.Start()
			for i := range b.faults {
				b.sim.At(b.faults[i].spec.At, uint64(i))
			}
		}
		if err := b.sim.RunWhile(file.Duration, func() bool { return b.sim.Events() < 200_000 }); err != nil {
			t.Fatal(err)
		}
		if b.broken != nil {
			t.Fatal(b.broken)
		}
		if err := b.sim.CheckConservation(); err != nil {
			t.Fatal(err)
		}
	})
}
