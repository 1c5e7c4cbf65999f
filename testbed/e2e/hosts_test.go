package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/labtest"
)

// agent starts a host agent that withdraws what it registered when it is stopped.
func (f *fab) agent(node, addr string, args ...string) *proc {
	f.t.Helper()
	return f.launchIn(node, nil, append([]string{suite.Program(f.t, "snsd"), "--interface", "eth1", "--address", addr,
		"--interval", "1s", "--ttl", "20", "--output", "json", "--shutdown-pdu"}, args...)...)
}

// told lists what an agent that a test started itself was told.
func (p *proc) told(f *fab) []notice {
	ls, _ := f.fileLines(p.out, 0)
	return noticesOf(ls)
}

// Of two hosts that claim one address the earlier one stands until it leaves; the
// operators of every device concerned are told of both.
func TestTwoHostsClaimOneAddress(t *testing.T) {
	t.Parallel()
	const addr = "192.0.2.77"
	f := newFabric(t, spec{
		name:  "conflict",
		zones: "zones:\n  - {name: oltp, members: [192.0.2.11, 192.0.2.12, 192.0.2.21, " + addr + "]}\n",
		nodes: "    a: {kind: linux}\n    b: {kind: linux}\n",
		links: "    - endpoints: [\"tor1:eth3\", \"a:eth1\"]\n    - endpoints: [\"tor2:eth3\", \"b:eth1\"]\n",
	})
	first := f.agent("a", addr, "--role", "target")
	f.awaitState("i1", init1, addr, "active", "none")
	f.awaitState("i2", init2, addr, "active", "none")
	since := f.marks("i1", "i2", "t1")

	after := map[string]uint64{"tor1": f.lastEvent("tor1"), "tor2": f.lastEvent("tor2")}
	second := f.agent("b", addr, "--role", "target")
	macs := map[string]string{}
	for _, n := range []string{"a", "b"} {
		macs[n] = strings.TrimSpace(f.run(n, "cat", "/sys/class/net/eth1/address"))
	}
	e := f.awaitEvent("tor2", after["tor2"], "conflict", addr, macs["a"], macs["b"], "device "+tor1ID+" port eth3", "device "+tor2ID+" port eth3", "the holder keeps it while it answers")
	if e.Addr != addr || e.Port != "eth3" {
		t.Errorf("the event is of %s on port %s: %+v", e.Addr, e.Port, e)
	}
	for _, n := range []string{"spine", "tor2"} {
		labtest.Eventually(t, n+" to count the conflict", func() error {
			s := f.status(n)
			if s.Counts.Conflicts != 1 || !hasAll(s.Warnings.String(), []string{"claimed by two hosts"}) {
				return fmt.Errorf("%d conflicts, warnings %q", s.Counts.Conflicts, s.Warnings)
			}
			return nil
		})
		hs := f.host(n, addr)
		if len(hs) != 2 || hs[0].Device.String() != tor1ID || hs[0].Conflict || !hs[1].Conflict {
			t.Errorf("%s shows %+v, want that of tor1 in force and that of tor2 in conflict", n, hs)
		}
	}
	if n := f.counter("tor2", "core.conflicts"); n != 1 {
		t.Errorf("%d conflicts are counted, want 1", n)
	}
	f.stillTells()
	if told := second.told(f); len(told) != 0 {
		t.Errorf("the second host was told %v, but the address is not its own", told)
	}
	for _, n := range []string{"i1", "i2"} {
		f.quiet(n, since[n], notice{"192.0.2.11", target, "inactive", ""}, notice{"192.0.2.11", target, "active", ""},
			notice{"192.0.2.12", target, "inactive", ""}, notice{"192.0.2.12", target, "active", ""})
	}

	// The first one leaves: the address is the second one's now.
	first.signal(unix.SIGTERM)
	if code := first.exit(); code != 0 {
		t.Errorf("the first agent ended with %d", code)
	}
	labtest.Eventually(t, "the second host to be told of its peers", func() error {
		told := second.told(f)
		for _, peer := range []string{init1, init2, target} {
			if !slices.Contains(told, notice{addr, peer, "active", "none"}) {
				return fmt.Errorf("it was told %v", told)
			}
		}
		return nil
	})
	labtest.Eventually(t, "the conflict to be over", func() error {
		hs := f.host("spine", addr)
		if len(hs) != 1 || hs[0].Conflict || hs[0].Device.String() != tor2ID || f.status("tor2").Counts.Conflicts != 0 {
			return fmt.Errorf("hosts %+v", hs)
		}
		return nil
	})
	for _, n := range []string{"i1", "i2"} {
		f.awaitState(n, map[string]string{"i1": init1, "i2": init2}[n], addr, "active", "none")
	}
	f.stillTells()
}

// A host that registers 10,000 addresses gets as many as its port may have; it is
// told of, and no other host or port suffers. None of its addresses ever acks.
func TestAHostThatRegistersTenThousandAddresses(t *testing.T) {
	t.Parallel()
	const many, limit = 10_000, 128
	f, wires := evilFabric(t, "greedy")
	since, before := f.marks("t1", "i1", "i2"), f.framesOn("eth3")
	w, after := wires["eth3"], f.lastEvent("tor1")
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range many {
			addr := fmt.Sprintf("203.%d.%d.%d", i>>16, i>>8&255, i&255)
			w.lldp(w.registration(addr, i, 4, func(r *snsd.Registration) { r.Subscribes = true }))
		}
	}()
	f.awaitEvent("tor1", after, "error", "neighbour limit reached", "128 registrations on the port", "port eth3", w.mac().String())
	f.stillTells() // while it goes on
	<-sent
	f.handled("eth3", before, many)
	p := f.port("tor1", "eth3")
	if p.Hosts > limit || p.Hosts == 0 {
		t.Errorf("port eth3 has %d hosts, want 1..%d", p.Hosts, limit)
	}
	dropped := f.counter("tor1", "dataplane.ports.eth3.dropped")
	if n := f.counter("tor1", "lldp.drops"); n+dropped < many-limit-1000 {
		t.Errorf("%d registrations are counted as refused and %d as dropped by the kernel, of %d", n, dropped, many)
	}
	// Other ports have room.
	wires["eth4"].lldp(wires["eth4"].registration("198.51.100.4", 1, 60))
	f.awaitHost("tor1", "198.51.100.4")
	f.stillTells()
	labtest.Eventually(t, "the addresses to age out", func() error {
		if p := f.port("tor1", "eth3"); p.Hosts != 0 {
			return fmt.Errorf("%d hosts", p.Hosts)
		}
		return nil
	})
	labtest.Eventually(t, "the notices to them to be given up", func() error {
		if n := f.counter("tor1", "hostnotify.in_flight"); n != 0 {
			return fmt.Errorf("%d notices are in flight", n)
		}
		return nil
	})
	f.stillTells()
	f.quietButTarget(since)
}

func (f *fab) port(node, name string) api.Port {
	f.t.Helper()
	ps, err := ask(f, node, portsOf)
	if err != nil {
		f.t.Fatal(err)
	}
	i := slices.IndexFunc(ps, func(p api.Port) bool { return p.Name == name })
	if i < 0 {
		return api.Port{}
	}
	return ps[i]
}
