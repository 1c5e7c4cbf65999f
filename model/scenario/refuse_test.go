package scenario

import (
	"strings"
	"testing"

	"github.com/openinof/inof/model"
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
		{"no duration", "duration: 1ms\n", "", "x.yaml:1: duration: is missing"},
		{"port used twice", `a: b, b: s,`, `a: b, b: "s:left",`, "x.yaml:12: topology.links[1]: topology: port left of s is used twice"},
		{"zero delay", "b: s, rate: 100G, delay: 1us", "b: s, rate: 100G, delay: 0", "x.yaml:12: topology.links[1]: rate 100G, delay 0ps"},
		{"zero rate", "b: s, rate: 100G", "b: s, rate: 0", "x.yaml:12: topology.links[1].rate: rate \"0\""},
		{"unreachable", "from: a, to: b", "from: a, to: c", "x.yaml:14: traffic[0].to: host c has no link"},
		{"unknown host", "to: b}", "to: d}", `x.yaml:14: traffic[0].to: "d" is not a host`},
		{"to itself", "from: a, to: b", "from: a, to: a", "x.yaml:14: traffic[0]: gives 0 flows"},
		{"link to itself", "{a: b, b: s,", "{a: s, b: s,", "x.yaml:12: topology.links[1]: topology: link s - s joins a node with itself"},
		{"no unit", "duration: 1ms", "duration: 1", `x.yaml:2: duration: time "1"`},
		{"threshold above the buffer", "traffic:", "switch: {model: cells, buffer: 1MiB, cells: {xoff: 2MiB}}\ntraffic:", "x.yaml:13: switch.cells: a threshold of 2097152 bytes lies above the buffer of 1048576"},
		{"headroom above the buffer", "traffic:", "switch: {buffer: 50KB}\ntraffic:", "x.yaml:13: switch: profile: switch s: headroom and reserves of 2 ports need"},
		{"buffer too large", "traffic:", "switch: {buffer: 3GB}\ntraffic:", "x.yaml:13: switch: profile \"switch\": buffer of 3000000000 bytes"},
		{"too much memory", "traffic:", "switch: {buffer: 900000GB}\ntraffic:", "x.yaml:13: switch.buffer: needs up to"},
		{"not yaml", "name: x", "name: [", "x.yaml:2: did not find expected"},
		{"two documents", "duration: 1ms", "duration: 1ms\n---\na: b", "x.yaml:3: a second document"},
		{"alias", "name: x", "name: &a x\nabout: *a", "x.yaml:2: about: aliases are not allowed"},
		{"bad weight", "traffic:", "switch: {wdrr: [{queue: 9, weight: 1}, {queue: 1, weight: 1000}]}\ntraffic:", "x.yaml:13: switch.wdrr: queue 9, want 0..7"},
		{"fault out of time", "traffic:", "faults:\n  - {at: 2ms, kind: link-down, link: a-s}\ntraffic:", "x.yaml:14: faults[0].at: 2ms is not within the run of 1ms"},
		{"fault of nothing", "traffic:", "faults:\n  - {at: 0, kind: link-down, link: a-b}\ntraffic:", "x.yaml:14: faults[0].link: \"a-b\": want \"node-neighbour\": a has no link to b"},
		{"start after the end", "kind: flows,", "kind: flows, start: 2ms,", "x.yaml:14: traffic[0].start: 2ms is after the end of the run"},
		{"control plane without reflectors", "traffic:", "control: {agents: a}\ntraffic:", "x.yaml:13: control: control plane: no reflectors"},
		{"reflector that is a host", "traffic:", "control: {reflectors: a}\ntraffic:", `x.yaml:13: control.reflectors: "a" is not a switch`},
		{"agent that is a switch", "traffic:", "control: {reflectors: s, agents: s}\ntraffic:", `x.yaml:13: control.agents: "s" is not a host`},
		{"unknown key of the control plane", "traffic:", "control: {reflectors: s, bfd: {timer: 1ms}}\ntraffic:", "x.yaml:13: control.bfd.timer: unknown key; known: off, interval, multiplier"},
		{"hold time", "traffic:", "control: {reflectors: s, hold: 1ms}\ntraffic:", "x.yaml:13: control: control plane: sessions:"},
		{"action", "traffic:", "control: {reflectors: s, crc: {action: pray}}\ntraffic:", `x.yaml:13: control.crc.action: "pray" is not notify, error-down or none`},
		{"802.1p map without trust", "traffic:", "switch: {dot1p: [{priority: 3, queue: 4}]}\ntraffic:", "x.yaml:13: switch.trust: dot1p and port-priority are of no use"},
		{"802.1p map", "traffic:", "switch: {trust: 802.1p, dot1p: [{priority: 8, queue: 4}]}\ntraffic:", "x.yaml:13: switch.dot1p: priority 8 -> queue 4"},
		{"trust", "traffic:", "switch: {trust: nobody}\ntraffic:", `x.yaml:13: switch.trust: "nobody" is not dscp or 802.1p`},
		{"priority", "kind: flows,", "kind: flows, priority: 9,", "x.yaml:14: traffic[0].priority: 9, want 0..7"},
		{"alpha", "traffic:", "switch: {model: cells, cells: {xoff-alpha: 13}}\ntraffic:", "x.yaml:13: switch: profile \"switch\": alpha index 13"},
		{"ECN thresholds", "traffic:", "switch: {ecn: {low: 2MB, high: 1MB, percent: 1}}\ntraffic:", "x.yaml:13: switch: profile \"switch\": ECN thresholds 2000000..1000000"},
		{"threshold that is no number", "traffic:", "switch: {ecn: {low: 1KB, high: 2KB, percent: .nan}}\ntraffic:", "x.yaml:13: switch.ecn.percent: .nan is no number"},
		{"loss that is no number", "b: s, rate: 100G,", "b: s, rate: 100G, loss: .nan,", "x.yaml:12: topology.links[1].loss: .nan is no number"},
		{"length without end", "b: s, rate: 100G, delay: 1us", "b: s, rate: 100G, km: .inf", "x.yaml:12: topology.links[1].km: .inf is no number"},
		{"expectation that is no number", "traffic:", "expect: [{metric: drops, max: .nan}]\ntraffic:", "x.yaml:13: expect[0].max: .nan is no number"},
		{"braking without cells", "traffic:", "switch: {pfc: {braking: 3}}\ntraffic:", `x.yaml:13: switch: profile "switch": point braking on queues 0x8 needs the cell-based buffer model`},
		{"braking by a host", "traffic:", "nic: {pfc: {braking: 3}}\ntraffic:", `x.yaml:13: nic: NIC profile "nic": point braking is for switches`},
		{"one quantum", "traffic:", "switch: {pfc: {quanta: 1}}\ntraffic:", `x.yaml:13: switch: profile "switch": pause quanta 1: an XOFF cannot be repeated before it runs out`},
		{"refresh too late", "traffic:", "nic: {pfc: {quanta: 100, refresh: 100}}\ntraffic:", `x.yaml:13: nic: NIC profile "nic": refresh after 100 quanta comes when an XOFF of 100 has run out`},
		{"refresh of nothing", "traffic:", "switch: {pfc: {refresh: 100}}\ntraffic:", `x.yaml:13: switch: profile "switch": refresh after 100 quanta is of no use without quanta`},
		{"headroom beyond 31 bits", "b: s, rate: 100G, delay: 1us", "b: s, rate: 100G, delay: 60ms", "2250000000 bytes of headroom for a link of 100G with a delay of 60ms, above the buffer"},
		{"several lossless classes", "traffic:", "switch: {buffer: 300KB, lossless: [0, 1, 2, 3, 4, 5, 6, 7]}\ntraffic:", "x.yaml:13: switch: profile: switch s: headroom and reserves of 2 ports need"},
		{"poisson to itself", "kind: flows, from: a, to: b", "kind: poisson, load: 0.5, from: a, to: a", "x.yaml:14: traffic[0].load: 0.5 of 1 hosts to 1: want a load"},
		{"poisson that ends before it begins", "kind: flows,", "kind: poisson, load: 0.5, start: 500us, until: 400us,", "x.yaml:14: traffic[0].start: 500us is not before the last start at 400us"},
		{"rate control of no set", "traffic:", "congestion: {alpha-timer: 1us}\ntraffic:", "x.yaml:13: congestion.kind: is missing"},
		{"rate control without a timer", "traffic:", "congestion: {set: paper, increase-timer: 0}\ntraffic:", `x.yaml:13: congestion: "paper": timers must be positive`},
		{"unknown rate control", "traffic:", "congestion: bbr\ntraffic:", `x.yaml:13: congestion: "bbr" is no congestion; there are none, dcqcn, cx4, paper`},
		{"endless samples", "traffic:", "record: {every: 1ps}\ntraffic:", "x.yaml:13: record.every: 1ps gives more than"},
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

// Hosts that no path joins are refused; so are fabrics that no machine holds, before they are made.
func TestFabricsThatCannotBe(t *testing.T) {
	apart := strings.Replace(good, "- {name: s, kind: switch}", "- {name: s, kind: switch}\n    - {name: r, kind: switch}", 1)
	apart = strings.Replace(apart, "{a: b, b: s,", "{a: b, b: r,", 1)
	topology := func(text string) string {
		return "name: x\nduration: 1ms\ntopology: {" + text + ", link: {rate: 100G, delay: 1us}}\ntraffic: [{kind: all-to-all, from: '*', bytes: 1KB}]\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"no path", apart, "x.yaml:15: traffic[0]: flow 0: no path between a and b"},
		{"hosts", topology("kind: star, hosts: 300000"), "x.yaml:3: topology: 300000 is not a number of parts"},
		{"ports", topology("kind: leaf-spine, leaves: 60000, spines: 60000, hosts: 1"), "x.yaml:3: topology: 60001 ports on one switch, at most 1024"},
		{"hosts in all", topology("kind: clos, pods: 1000, tors: 1000, aggs: 2, cores: 2, hosts: 10"), "x.yaml:3: topology: 10000000 hosts, at most 262144"},
		{"memory of the fabric", topology("kind: ring, switches: 65000, hosts: 1"), "x.yaml:3: topology: needs up to"},
		{"memory of the buffers", topology("kind: leaf-spine, leaves: 300, spines: 300, hosts: 1"), "x.yaml:3: switch.buffer: needs up to"},
		{"memory of the flows", topology("kind: star, hosts: 1000") + "switch: {buffer: 500MB}\n", "x.yaml:4: traffic[0]: needs up to"},
	} {
		f, err := Parse("x.yaml", []byte(c.text))
		if err != nil {
			t.Fatal(c.name, err)
		}
		f.memory = 512 << 20
		if err := f.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v\nwant %s", c.name, err, c.want)
		}
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
	f.Add([]byte("name: y\nduration: 20us\nreroute: 1us\nreroute-spread: 3us\ntopology: {kind: leaf-spine, leaves: 3, spines: 2, hosts: 2, link: {rate: 100G, delay: 10ns}}\n" +
		"switch: {trust: 802.1p, dot1p: [{priority: 3, queue: 4}], port-priority: 2, remark-dscp: true, lossless: [3, 4], deadlock: {detect: 1us, recover: 1us, turn-off: 2, error-down: true}}\n" +
		"uplink-group: {switches: [leaf0, leaf1], rules: [{from: 24, to: 32}], old-priority: true}\ntraffic: [{kind: permutation, from: '*', shift: 3, priority: 3}]\n" +
		"faults: [{at: 1us, kind: link-down, link: leaf0-spine0}, {at: 2us, kind: storm, host: h3, queues: [3, 4], every: 1ps, for: 1s}]\n"))
	f.Add([]byte("name: y\nduration: 1s\ntopology: {kind: leaf-spine, leaves: 60000, spines: 1000, hosts: 20, link: {rate: 100G, delay: 1us}}\ntraffic: [{kind: all-to-all, from: '*'}]\n"))
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
		file.memory = 48 << 20 // larger ones are slow, not wrong
		b, err := file.build()
		if err != nil {
			return
		}
		if err := b.begin(); err != nil {
			t.Fatal(err)
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
