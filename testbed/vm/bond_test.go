package vm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/labtest"
)

// bondLab has a machine with two cables to a switch.
const bondLab = `
name: bond
topology:
  nodes:
    sw: {kind: inof-switch, startup-config: sw.yaml}
    t1: {kind: inof-host, labels: {inof.address: 192.0.2.21, inof.role: target, inof.interval: 1s, inof.ttl: 4}}
    i1: {kind: vm}
  links:
    - endpoints: ["sw:eth1", "t1:eth1"]
    - endpoints: ["sw:eth2", "i1:eth1"]
    - endpoints: ["sw:eth3", "i1:eth2"]
`

const bondConfig = `
ports: [{interface: bond0.7, protocol: tcp}]
register: {interval: 1s, ttl: 4s}
socket: /run/snsd/snsd.sock
`

// agent gives the status of the agent in the machine.
func (f *fixture) agent() (s hostagent.Status) {
	f.t.Helper()
	if err := json.Unmarshal([]byte(f.in("/lab/bin/snsd status -o json")), &s); err != nil {
		f.t.Fatal(err)
	}
	return s
}

// lastWord waits until the last word of the switch about the target, over any of the cables, is
// state.
func (f *fixture) lastWord(state snsd.State) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("the machine to be told that the target is %v", state), func() error {
		var last *snsd.Notice
		for _, p := range f.agent().Ports {
			for _, n := range p.Peers {
				if last == nil || int32(n.Seq-last.Seq) > 0 {
					last = &n
				}
			}
		}
		if last == nil || last.State != state {
			return fmt.Errorf("%+v", last)
		}
		return nil
	})
}

// An address of a VLAN on a bond is registered over each cable of the bond, whenever the bond, the
// VLAN, its members and its address come; the host is told of its targets over either.
func TestAVLANOnABondIsRegisteredOverEachOfItsCables(t *testing.T) {
	f := up(t, bondLab)
	if err := os.WriteFile(filepath.Join(f.NodeDir("i1"), "share", "snsd.yaml"), []byte(bondConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	f.in("modprobe bonding max_bonds=0; modprobe -a 8021q nvme-tcp; mkdir -p /etc/nvme; /lab/bin/snsd run -c /lab/node/snsd.yaml --existing '' >/lab/node/snsd.out 2>&1 </dev/null & echo $! >/run/pid")
	labtest.Eventually(t, "an agent that has no cable yet", func() error {
		if f.in("/lab/bin/snsd status >/dev/null 2>&1 && echo yes || echo no") != "yes" {
			return errors.New("no answer")
		}
		return nil
	})
	if p := f.agent().Ports; len(p) != 0 {
		t.Errorf("ports before there is a bond: %+v", p)
	}
	f.in(`set -e
ip() { /usr/sbin/ip "$@"; } # the shell has an ip of its own, which can do less
ip link add bond0 type bond mode active-backup miimon 20
ip link set eth1 down; ip link set eth1 master bond0
ip link set bond0 up
ip link add link bond0 name bond0.7 type vlan id 7
ip link set bond0.7 up
ip addr add 192.0.2.11/24 dev bond0.7`)
	f.knownAt(snsd.Active, "eth2")
	f.lastWord(snsd.Active)

	// More addresses, of both families.
	second, third := netip.MustParseAddr("192.0.2.12"), netip.MustParseAddr("2001:db8::11")
	f.in("/usr/sbin/ip addr add 192.0.2.12/24 dev bond0.7; /usr/sbin/ip addr add 2001:db8::11/64 dev bond0.7 nodad")
	f.addressAt(second, snsd.Active, "eth2")
	f.addressAt(third, snsd.Active, "eth2")
	f.in("/usr/sbin/ip addr del 192.0.2.12/24 dev bond0.7")
	f.addressAt(second, snsd.Active)
	f.addressAt(third, snsd.Active, "eth2")

	// A second cable.
	f.in("/usr/sbin/ip link set eth2 down; /usr/sbin/ip link set eth2 master bond0; grep -q active-backup /proc/net/bonding/bond0")
	f.knownAt(snsd.Active, "eth2", "eth3")
	if _, err := f.Fault("t1", "eth1", false); err != nil {
		t.Fatal(err)
	}
	f.lastWord(snsd.Inactive)
	if _, err := f.Fault("t1", "eth1", true); err != nil {
		t.Fatal(err)
	}
	f.lastWord(snsd.Active)

	// One of its cables is cut: the address is still there, and the machine is told over the other
	// one.
	if _, err := f.Fault("sw", "eth2", false); err != nil {
		t.Fatal(err)
	}
	f.knownAt(snsd.Active, "eth3")
	if _, err := f.Fault("t1", "eth1", false); err != nil {
		t.Fatal(err)
	}
	f.lastWord(snsd.Inactive)
	for _, act := range f.agent().Actions {
		if act.Reason == snsd.ReasonNone && act.Kind != "connect" {
			t.Errorf("the loss of one cable is taken for that of the address: %+v", act)
		}
	}
	if _, err := f.Fault("sw", "eth2", true); err != nil {
		t.Fatal(err)
	}
	f.knownAt(snsd.Active, "eth2", "eth3")

	// A member that leaves the bond, and the VLAN that goes, say good-bye.
	f.in("/usr/sbin/ip link set eth1 nomaster")
	f.knownAt(snsd.Active, "eth3")
	f.in("/usr/sbin/ip link del bond0.7")
	f.knownAt(snsd.Active)
	if p := f.agent().Ports; len(p) != 0 {
		t.Errorf("ports without a VLAN: %+v", p)
	}
}
