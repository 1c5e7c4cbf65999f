package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

// plug makes a link between a port of tor1 and eth1 of a node, as somebody does who
// plugs a module into a switch that runs. The index keeps the two ends different:
// the kernel holds carrier events back where they are the same.
func (f *fab) plug(port, node string, index int) {
	f.t.Helper()
	ns, err := os.Open(filepath.Join(f.lab.Dir, "ns", node+".net"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer ns.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Index = port, index
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth1", PeerNamespace: netlink.NsFd(ns.Fd())}
	if err := f.lab.Do("tor1", func() error { return netlink.LinkAdd(veth) }); err != nil {
		f.t.Fatal(err)
	}
	f.run("tor1", "ip", "link", "set", port, "up")
	f.run(node, "ip", "link", "set", "eth1", "up")
}

// A port that vanishes with all that is behind it is a fault like any other; when it
// is back its hosts are active again.
func TestAPortThatVanishesAndComesBack(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "vanish"})
	for round := range 3 {
		since, after := f.marks("i1", "i2"), f.lastEvent("tor1")
		f.run("tor1", "ip", "link", "del", "eth1")
		f.awaitNotice("i1", since["i1"], notice{init1, target, "inactive", "link-down"})
		f.awaitNotice("i2", since["i2"], notice{init2, target, "inactive", "link-down"})
		f.awaitEvent("tor1", after, "port", "port eth1", "removed")
		if p := f.port("tor1", "eth1"); p.Name != "" {
			t.Errorf("the port is shown still: %+v", p)
		}
		if h := f.awaitHost("tor1", target); h.State.String() != "inactive" || h.Reason.String() != "link-down" {
			t.Errorf("the host behind the vanished port is %s, %s", h.State, h.Reason)
		}
		if o := f.ctl("tor1", "show", "port", "eth1"); o.code != 1 || !strings.Contains(o.stderr, `no access port "eth1"`) {
			t.Errorf("show port of a port that is gone: %+v", o)
		}
		f.plug("eth1", "t1", 20000+round)
		f.awaitNotice("i1", since["i1"], notice{init1, target, "active", "none"})
		f.awaitNotice("i2", since["i2"], notice{init2, target, "active", "none"})
	}
	if n := f.counter("tor1", "dataplane.ports.eth1.sent"); n == 0 {
		t.Error("nothing was sent through the port that is back")
	}
	// Another one than the first: the lab knows nothing of it, so it is shut by hand.
	since := f.marks("i1", "i2")
	f.run("t1", "ip", "link", "set", "eth1", "down")
	f.awaitNotice("i1", since["i1"], notice{init1, target, "inactive", "link-down"})
	f.awaitNotice("i2", since["i2"], notice{init2, target, "inactive", "link-down"})
}

// A port that appears while the daemon runs joins by itself when it is named.
func TestAHotPluggedPortJoins(t *testing.T) {
	t.Parallel()
	const addr = "192.0.2.31"
	f := newFabric(t, spec{
		name:  "hotplug",
		zones: "zones:\n  - {name: oltp, members: [192.0.2.11, 192.0.2.12, 192.0.2.21, " + addr + "]}\n",
		nodes: "    late: {kind: linux}\n    other: {kind: linux}\n",
	})
	since, after := f.marks("i1", "i2"), f.lastEvent("tor1")
	f.plug("eth7", "late", 20007)
	f.awaitEvent("tor1", after, "port", "port eth7", "added")
	f.plug("other0", "other", 20008) // is not named
	late := f.agent("late", addr, "--role", "target")
	for _, n := range []struct{ node, addr string }{{"i1", init1}, {"i2", init2}} {
		f.awaitNotice(n.node, since[n.node], notice{n.addr, addr, "active", "none"})
	}
	labtest.Eventually(t, "the late host to be told of its peers", func() error {
		told := late.told(f)
		for _, peer := range []string{init1, init2, target} {
			if !slices.Contains(told, notice{addr, peer, "active", "none"}) {
				return fmt.Errorf("it was told %v", told)
			}
		}
		return nil
	})
	f.run("late", "ip", "link", "set", "eth1", "down")
	for _, n := range []struct{ node, addr string }{{"i1", init1}, {"i2", init2}} {
		f.awaitNotice(n.node, since[n.node], notice{n.addr, addr, "inactive", "link-down"})
	}
	if p := f.port("tor1", "other0"); p.Name != "" {
		t.Errorf("a port that is not named joined: %+v", p)
	}
	f.stillTells()
}

// Ports that the configuration does not name are left alone: nothing is learned
// there, nothing is sent, no group address is joined and nobody can shut them.
func TestAPortThatIsNotNamedIsNotTouched(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{
		name:  "unnamed",
		nodes: "    evil: {kind: linux}\n",
		links: "    - endpoints: [\"tor1:other0\", \"evil:eth1\"]\n    - endpoints: [\"tor1:eth3\", \"evil:eth2\"]\n",
	})
	other, named := f.wire("evil", "eth1"), f.wire("evil", "eth2")
	other.lldp(other.registration("198.51.100.1", 1, 60))
	named.lldp(named.registration("198.51.100.2", 1, 60))
	f.awaitHost("tor1", "198.51.100.2") // which came later
	if hs := f.host("tor1", "198.51.100.1"); len(hs) != 0 {
		t.Errorf("a host was learned: %+v", hs)
	}
	for range 3 { // the daemon speaks on the named port, and as often would on the other
		named.next(fabric.EtherTypeLLDP)
	}
	if n := other.waiting(); n != 0 {
		t.Errorf("%d control frames came out of a port that is not named", n)
	}
	groups := f.run("tor1", "cat", "/proc/net/dev_mcast")
	for line := range strings.Lines(groups) {
		w := strings.Fields(line)
		if len(w) == 5 && strings.HasPrefix(w[4], "0180c2") && !strings.HasPrefix(w[1], "eth") || slices.Contains(w, "eth49") && strings.HasPrefix(w[4], "0180c2") {
			t.Errorf("a group address was joined: %s", line)
		}
	}
	ps, err := ask(f, "tor1", portsOf)
	if err != nil || slices.ContainsFunc(ps, func(p api.Port) bool { return p.Name == "other0" || p.Name == "eth49" }) {
		t.Errorf("ports %+v, %v", ps, err)
	}
	f.ctl("tor1", "port", "recover", "other0").failed(t, "recover", "other0", "not an access port of this device")
	f.ctl("tor1", "show", "port", "other0").failed(t, "show port", `no access port "other0"`)
	f.stillTells()
}
