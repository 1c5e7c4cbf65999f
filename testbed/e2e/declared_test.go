package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/testbed/labtest"
)

// Arrays that register nothing. "silent" sends no LLDP at all and has two ports at tor1, which
// declares it; "wordy" at tor2 announces the address of its management in another subnet, and the
// reflector declares it for all devices. Both only answer ARP, as the kernel does.
func TestArraysThatRegisterNothing(t *testing.T) {
	t.Parallel()
	const silent, wordy, mgmt = "192.0.2.61", "192.0.2.62", "198.51.100.9"
	declare := func(addr, ports string) string {
		return fmt.Sprintf("[{address: %s, ports: [%s], register: {role: target, protocol: tcp, service-port: 4420, nqn: \"nqn.2026-11.org.example:%s\"}}]\n", addr, ports, addr)
	}
	f := newFabric(t, spec{
		name:  "declared",
		zones: "zones:\n  - {name: oltp, members: [192.0.2.11, 192.0.2.12, 192.0.2.21, " + silent + ", " + wordy + "]}\n",
		nodes: "    silent: {kind: linux, exec: [ip addr add " + silent + "/24 dev eth1]}\n    wordy: {kind: linux, exec: [ip addr add " + wordy + "/24 dev eth1]}\n",
		links: "    - endpoints: [\"tor1:eth3\", \"silent:eth1\"]\n    - endpoints: [\"tor1:eth4\", \"silent:eth2\"]\n    - endpoints: [\"tor2:eth3\", \"wordy:eth1\"]\n",
		edit: map[string]func(string) string{
			"spine": func(s string) string { return s + "reflector:\n  hosts: " + declare(wordy, "eth3, eth4") },
			"tor1":  func(s string) string { return s + "hosts:\n  bindings: " + declare(silent, `"eth[34]"`) },
		},
	})
	name := "array"
	pdu := lldp.PDU{Chassis: lldp.ID{Subtype: lldp.ChassisLocal, Value: name}, Port: lldp.ID{Subtype: lldp.PortLocal, Value: "ct0.eth4"}, TTL: 120, SysName: &name,
		Mgmt: []lldp.MgmtAddr{{Addr: netip.MustParseAddr(mgmt), IfSubtype: 2, IfNumber: 4}}}
	raw, err := pdu.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.wire("wordy", "eth1").lldp(raw)

	f.allTold(silent, "active", "none")
	f.allTold(wordy, "active", "none")
	for addr, tor := range map[string]string{silent: "tor1", wordy: "tor2"} {
		h := f.awaitHost(tor, addr)
		if h.Source != api.SourceConfigured || h.Role.String() != "target" || h.ServicePort != 4420 || h.NQN != "nqn.2026-11.org.example:"+addr || h.Subscribes || h.Expires == nil {
			t.Errorf("%s shows %+v", tor, h)
		}
		if o := f.ctl(tor, "show", "host", addr); o.code != 0 || !strings.Contains(o.stdout, "local (configured)") {
			t.Errorf("inofctl show host: %+v", o)
		}
		if h := f.awaitHost("spine", addr); h.NQN != "nqn.2026-11.org.example:"+addr {
			t.Errorf("the reflector shows %+v", h)
		}
	}
	f.awaitHost("tor2", mgmt) // LLDP counts for what it says, and for no more

	// The kernel answers on every port for each of its addresses: that is told, and the first stays.
	first := f.awaitHost("tor1", silent).Port
	labtest.Eventually(t, "the warning of two ports", func() error {
		if w := f.status("tor1").Warnings.String(); !hasAll(w, []string{"declared host " + silent + " answers on ports", "it is on " + first}) {
			return fmt.Errorf("warnings %q", w)
		}
		return nil
	})

	// A port of an array is unplugged: its peers are notified, and it moves where it still answers.
	f.run("wordy", "ip", "link", "set", "eth1", "down")
	f.allTold(wordy, "inactive", "link-down")
	f.run("wordy", "ip", "link", "set", "eth1", "up")
	f.allTold(wordy, "active", "none")
	other, ifname := "eth4", "eth1"
	if first == "eth4" {
		other, ifname = "eth3", "eth2"
	}
	after := f.lastEvent("tor1")
	f.run("silent", "ip", "link", "set", ifname, "down")
	f.awaitEvent("tor1", after, "host", "declared host "+silent+" moved from port "+first, "to port "+other)
	f.allTold(silent, "active", "none")
	if h := f.awaitHost("tor1", silent); h.Port != other || h.State.String() != "active" {
		t.Errorf("after the move it is %+v", h)
	}

	// The declaration names the other port only: on this one the host is refused, after force.
	f.overwrite("tor1", "inofd.yaml", strings.ReplaceAll(f.nodeConfig("tor1"), `"eth[34]"`, first))
	if o := f.ctl("tor1", "reload"); o.code == 0 || !strings.Contains(o.stderr, silent) {
		t.Errorf("inofctl reload took a host away: %+v", o)
	}
	if o := f.ctl("tor1", "reload", "--force"); o.code != 0 {
		t.Errorf("inofctl reload --force: %+v", o)
	}
	f.allTold(silent, "inactive", "aged-out")
	labtest.Eventually(t, "the warning of the wrong port", func() error {
		if w := f.status("tor1").Warnings.String(); !hasAll(w, []string{"declared host " + silent + " answers on port " + other, "may be on " + first + " only"}) {
			return fmt.Errorf("warnings %q", w)
		}
		return nil
	})
	if n := f.counter("tor1", "declared.misplaced"); n == 0 {
		t.Error("nothing is counted")
	}

	// The reflector declares wordy no longer.
	rest, _, _ := strings.Cut(f.nodeConfig("spine"), "reflector:\n")
	f.overwrite("spine", "inofd.yaml", rest)
	if o := f.ctl("spine", "reload"); o.code == 0 || !strings.Contains(o.stderr, "host "+wordy+" of device "+tor2ID) {
		t.Errorf("inofctl reload took a host away: %+v", o)
	}
	if o := f.ctl("spine", "reload", "--force"); o.code != 0 {
		t.Errorf("inofctl reload --force: %+v", o)
	}
	f.allTold(wordy, "inactive", "aged-out")
	f.stillTells()
}

// allTold waits until both initiators were notified of a state of a target last.
func (f *fab) allTold(subject, state, reason string) {
	f.t.Helper()
	f.awaitState("i1", init1, subject, state, reason)
	f.awaitState("i2", init2, subject, state, reason)
}
