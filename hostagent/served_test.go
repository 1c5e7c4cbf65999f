package hostagent

import (
	"net/netip"
	"testing"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// An address of the target is registered with what it serves, one that has several ports leaves it
// to discovery, and a host that is an initiator too is both.
func TestWhatIsServedIsRegistered(t *testing.T) {
	c := Default()
	c.Ports = []PortConfig{{Addresses: []netip.Addr{self2}, Role: snsd.RoleInitiator, Protocol: snsd.ProtocolTCP}}
	got := c.WithServed([]hostkernel.Served{
		{Transport: "tcp", Addr: array1, Port: 4420, Subsystems: []string{nqn}},
		{Transport: "rdma", Addr: array2, Port: 4420, Subsystems: []string{nqn, "nqn.b"}},
		{Transport: "rdma", Addr: array2, Port: 4421, Subsystems: []string{nqn}},
		{Transport: "tcp", Addr: self2, Port: 4420, Subsystems: []string{nqn}},
	}, nil)
	want := []PortConfig{
		{Role: snsd.RoleBoth, Protocol: snsd.ProtocolTCP, ServicePort: 4420, NQN: nqn},
		{Role: snsd.RoleTarget, Protocol: snsd.ProtocolTCP, ServicePort: 4420, NQN: nqn},
		{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE},
	}
	if len(got.Ports) != len(want) || len(c.Ports) != 1 || c.Ports[0].Role != snsd.RoleInitiator {
		t.Fatalf("%+v", got.Ports)
	}
	for i, w := range want {
		g := got.Ports[i]
		if g.Role != w.Role || g.Protocol != w.Protocol || g.ServicePort != w.ServicePort || g.NQN != w.NQN {
			t.Errorf("%d: %+v", i, g)
		}
	}
	c.Target.Interfaces = []string{"eth1"}
	got = c.WithServed([]hostkernel.Served{{Transport: "tcp", Addr: array1, Port: 4420, Subsystems: []string{nqn}}, {Transport: "tcp", Addr: array2, Port: 4420, Subsystems: []string{nqn}}},
		[]hostkernel.Interface{{Name: "eth1", Addrs: []netip.Addr{array1}}, {Name: "eth2", Addrs: []netip.Addr{array2}}})
	if len(got.Ports) != 2 || got.Ports[1].Addresses[0] != array1 {
		t.Errorf("at one interface: %+v", got.Ports)
	}
}
