package hostagent

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The file that the existing agent ships is taken as it is.
const existingText = `; the existing agent's
[BASE]
restrain-time = 5 | --trsvcid=4421 ; both ways of writing a key
nr-io-queues = 4
[SW]
--host-traddr = 192.0.2.1 | --protocol = roce
host-traddr = 198.51.100.1 | protocol = tcp | keep-alive-tmo = 2
[DC]
host-traddr = 203.0.113.1 | traddr = 203.0.113.7 | protocol = tcp
`

func TestTheExistingAgentsFileIsTakenAsItIs(t *testing.T) {
	c, notes, err := Load("/nonexistent", file(t, "snsd.conf", existingText))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Ports) != 2 || c.Ports[0].Addresses[0] != self1 || c.Ports[1].Protocol != snsd.ProtocolTCP || len(c.Direct) != 1 {
		t.Errorf("%+v", c)
	}
	if c.Delete.Restraint != 5*time.Second || c.Connect.Restraint != 0 || c.Connect.Options.Port != 4421 {
		t.Errorf("%+v %+v", c.Delete, c.Connect)
	}
	p := c.Policy(hostkernel.Identity{NQN: "nqn.h", ID: "x"})
	first, second := p.Of[self1], p.Of[self2]
	if *first.CtrlLoss != 1800 || *first.IOQueues != 4 || first.KeepAlive != nil || *second.KeepAlive != 2 || *second.IOQueues != 4 {
		t.Errorf("%+v %+v", first, second)
	}
	if text := strings.Join(notes, "\n"); !strings.Contains(text, "tcp is registered too") || !strings.Contains(text, "[DC] 203.0.113.7") {
		t.Error(text)
	}
}

func TestWhatIsWrongInTheExistingAgentsFileIsSaid(t *testing.T) {
	for want, text := range map[string]string{
		"section [DC] is missing":      "[BASE]\n[SW]\nhost-traddr=192.0.2.1|protocol=tcp\n",
		":1: before the first section": "protocol = tcp\n[BASE]\n[SW]\n[DC]\n",
		":3: hdr_digest: the existing": "[BASE]\n[SW]\nhost-traddr=192.0.2.1|protocol=tcp|hdr_digest\n[DC]\n",
		":4: host-traddr 192.0.2.1":    "[BASE]\n[SW]\nhost-traddr=192.0.2.1|protocol=tcp\nhost-traddr=192.0.2.1|protocol=roce\n[DC]\n",
		":4: host-traddr any: it must": "[BASE]\n[SW]\nhost-traddr=192.0.2.1|protocol=tcp\nhost-traddr=any|protocol=tcp\n[DC]\n",
		`protocol "fc": want`:          "[BASE]\n[SW]\nhost-traddr=192.0.2.1|protocol=fc\n[DC]\n",
		"standard: is not known":       "[BASE]\n--standard=1\n[SW]\n[DC]\n",
		`queue-size: "8": want 16`:     "[BASE]\nqueue-size=8\n[SW]\n[DC]\n",
		"at most 1023":                 "[BASE]\nnqn=" + strings.Repeat("x", 1100) + "\n[SW]\n[DC]\n",
		"below 8192":                   strings.Repeat(";", 9000),
	} {
		if _, _, err := Load("/nonexistent", file(t, "snsd.conf", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestYAMLWinsOverTheExistingFile(t *testing.T) {
	c, _, err := Load(file(t, "snsd.yaml", "connect: {restraint: 7s}\n"), file(t, "snsd.conf", existingText))
	if err != nil || c.Connect.Restraint != 7*time.Second || len(c.Ports) != 2 || *c.Connect.Options.IOQueues != 4 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWhatIsWrongInYAMLIsSaid(t *testing.T) {
	const port = "ports: [{interface: eth1, protocol: tcp}]\n"
	for want, text := range map[string]string{
		"field prots not found":                        "prots: []\n",
		"at least one interface":                       "socket: /x\n",
		"ports[0].protocol":                            "ports: [{interface: eth1}]\n",
		"neither interface nor":                        "ports: [{protocol: tcp}]\n",
		"each address once":                            "ports: [{interface: a, protocol: tcp, addresses: [192.0.2.1, 192.0.2.1]}]\n",
		"register.ttl: 1s":                             port + "register: {interval: 2s, ttl: 1s}\n",
		"leave.own-link: probe":                        port + "leave: {own-link: probe}\n",
		"leave.link-down: forget":                      port + "leave: {link-down: forget}\n",
		"connect.options.queue-size: 8":                port + "connect: {options: {queue-size: 8}}\n",
		"connect.options.flags":                        port + "connect: {options: {flags: [tls]}}\n",
		"both or none":                                 port + "host: {nqn: x}\n",
		"mode: \"off\": want act":                      port + "mode: 'off'\n",
		"want one of [prefer":                          port + "fence: always\n",
		"fence-wait: 2m0s":                             port + "fence-wait: 2m\n",
		"one of nqn and address":                       port + "arrays: [{nqn: nqn.x, address: 192.0.2.1, settle: 1s}]\n",
		"arrays[0].settle: none":                       port + "arrays: [{nqn: nqn.x}]\n",
		"arrays[0].settle: 1h0m0s":                     port + "arrays: [{address: 192.0.2.1, settle: 1h}]\n",
		"ports[0].switch: 01:80:c2":                    "ports: [{interface: a, protocol: tcp, switch: '01:80:c2:00:00:0e'}]\n",
		"invalid MAC address":                          "ports: [{interface: a, protocol: tcp, switch: [tor1]}]\n",
		"want one of [nothing":                         port + "leave: {link-down: kill}\n",
		"leave.quiesce: 1m: want fence and fence-wait": port + "leave: {quiesce: 1m}\n",
	} {
		if _, _, err := Load(file(t, "snsd.yaml", text), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, _, err := Load("/nonexistent", "/nonexistent"); err == nil {
		t.Error("no file at all")
	}
}

// What the operator says of fences, and whose notices count: one switch, or those of an MLAG pair.
func TestFencesAndSwitchesAreRead(t *testing.T) {
	c, _, err := Load(file(t, "snsd.yaml", `
mode: observe
fence: require
fence-wait: 2s
arrays: [{nqn: nqn.x, settle: 0s}, {address: 192.0.2.9, settle: 5s}]
ports:
  - {interface: eth1, protocol: tcp, switch: '02:00:00:00:00:01'}
  - {interface: bond0, protocol: tcp, switch: ['02:00:00:00:00:02', '02:00:00:00:00:03']}
`), "")
	if err != nil {
		t.Fatal(err)
	}
	p := c.Policy(hostkernel.Identity{})
	if !p.Observe || p.Fence != FenceRequire || p.FenceWait != 2*time.Second {
		t.Errorf("%+v", p)
	}
	for _, x := range []struct {
		c     hostkernel.Controller
		want  time.Duration
		known bool
	}{
		{hostkernel.Controller{NQN: "nqn.x"}, 0, true},
		{hostkernel.Controller{NQN: "nqn.y"}, 0, false},
		{hostkernel.Controller{NQN: "nqn.x", Target: netip.MustParseAddrPort("192.0.2.9:4420")}, 5 * time.Second, true},
	} {
		if got, known := p.settle(&x.c); got != x.want || known != x.known {
			t.Errorf("%+v: %v, %v", x.c, got, known)
		}
	}
	ports, _ := c.Cables([]hostkernel.Interface{
		{Name: "eth1", Addrs: []netip.Addr{self1}, Ports: []string{"eth1"}}, {Name: "bond0", Addrs: []netip.Addr{self2}, Ports: []string{"eth2", "eth3"}},
	})
	if len(ports) != 3 || len(ports[0].Switch) != 1 || len(ports[1].Switch) != 2 || len(ports[2].Switch) != 2 || ports[0].Extensions != snsd.ExtFence {
		t.Errorf("%+v", ports)
	}
}

// What is registered goes out of the cables below an interface: of a VLAN the card's, of a bond
// each member's; two VLANs of one card share its numbers.
func TestInterfacesAreFollowedToTheirCables(t *testing.T) {
	v6 := netip.MustParseAddr("2001:db8::1")
	have := []hostkernel.Interface{
		{Name: "lo", Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Ports: []string{"lo"}},
		{Name: "eth1", Addrs: []netip.Addr{self1}, Ports: []string{"eth1"}},
		{Name: "eth1.7", Addrs: []netip.Addr{self2, v6}, Ports: []string{"eth1"}},
		{Name: "bond0", Addrs: []netip.Addr{array1}, Ports: []string{"eth2", "eth3"}},
	}
	c := Default()
	c.Ports = []PortConfig{
		{Interface: "eth1", Protocol: snsd.ProtocolRoCE, Role: snsd.RoleInitiator},
		{Interface: "eth1.7", Protocol: snsd.ProtocolTCP, Role: snsd.RoleInitiator},
		{Addresses: []netip.Addr{array1}, Protocol: snsd.ProtocolTCP, Role: snsd.RoleTarget},
		{Interface: "eth9", Protocol: snsd.ProtocolTCP},
	}
	ports, missing := c.Cables(have)
	if len(ports) != 3 || !slices.Equal(ports[0].Addrs, []netip.Addr{self1, self2, v6}) || ports[1].Interface != "eth2" || ports[2].Interface != "eth3" {
		t.Fatalf("%+v", ports)
	}
	if ports[0].Services[v6].Protocol != snsd.ProtocolTCP || ports[0].Services[self1].Protocol != snsd.ProtocolRoCE || ports[2].Service.Role != snsd.RoleTarget {
		t.Errorf("%+v", ports)
	}
	if len(missing) != 1 || !strings.Contains(missing[0], "eth9") {
		t.Error(missing)
	}
	for i := range ports {
		if _, err := ports[i].Machine(); err != nil {
			t.Error(err)
		}
	}
	c.Ports = []PortConfig{{Interface: AnyInterface, Protocol: snsd.ProtocolTCP}}
	if ports, _ := c.Cables(have); len(ports) != 3 || slices.ContainsFunc(ports, func(p Port) bool { return p.Interface == "lo" }) {
		t.Errorf("%+v", ports)
	}
}

// The example that is shipped is read, and its words are those of the document.
func TestTheExampleIsRead(t *testing.T) {
	c, _, err := Load("../docs/examples/snsd.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Ports) != 2 || *c.Connect.Options.CtrlLoss != 1800 || *c.Connect.Options.FastIOFail != 60 || !c.Connect.Enabled || c.Leave.LinkDown != Destroy || c.Mode != ModeObserve || c.Fence != FencePrefer {
		t.Errorf("%+v", c)
	}
}
