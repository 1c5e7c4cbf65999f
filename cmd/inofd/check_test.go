package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/config"
)

func TestCheckSaysWhichEntriesMatchNoPortOfTheMachine(t *testing.T) {
	cfg, err := config.Parse("f", []byte(`
device: {id: 192.0.2.1}
ports: {access: ["Ethrnet*", "Ethernet0-8", "!Ethernet8"]}
error-down: {ports: [{names: [Ethernet99], crc: {action: notify}}]}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := portsOf("f", cfg, []string{"eth0", "Ethernet8", "Ethernet4", "Ethernet0", "Ethernet112"})
	want := `f: warning: ports.access: "Ethrnet*" matches no port of this machine
f: warning: error-down.ports[0].names: "Ethernet99" matches no port of this machine
f: ports.access names 2 of this machine's ports: Ethernet0, Ethernet4
f: ports left alone: Ethernet112, Ethernet8, eth0`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// A bridge or a VLAN that is named as a port would stay without hosts, and nothing would say why.
func TestCheckWarnsOfPortsThatHearNoHost(t *testing.T) {
	cfg, err := config.Parse("f", []byte("device: {id: 192.0.2.1}\nports: {access: [br0, eth1, eth1.5]}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{"br0": "bridge", "br1": "bridge", "eth1.5": "vlan"}
	got := strings.Join(deafOf("f", cfg, []string{"br0", "br1", "eth1", "eth1.5"}, func(p string) string { return kinds[p] }), "\n")
	want := `f: warning: ports.access: br0 is a bridge and hears no host: name its ports
f: warning: ports.access: eth1.5 is a VLAN and hears no host: name the port that it is on`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// The shipped examples name the ports of hosts on a switch of 32 ports, and no uplink.
func TestTheExamplesNameNoUplink(t *testing.T) {
	var ports []string
	for i := 0; i < 128; i += 4 {
		ports = append(ports, fmt.Sprintf("Ethernet%d", i))
	}
	for _, name := range []string{"client", "standalone"} {
		data, err := os.ReadFile("../../docs/examples/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Parse(name, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := portsOf("f", cfg, ports)
		for _, uplink := range []string{"Ethernet112", "Ethernet116", "Ethernet120", "Ethernet124"} {
			if _, left, _ := strings.Cut(got, "left alone: "); !strings.Contains(left, uplink) {
				t.Errorf("%s: the uplink %s is named:\n%s", name, uplink, got)
			}
		}
		if strings.Contains(got, "warning") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
