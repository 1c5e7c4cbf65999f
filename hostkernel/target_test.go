package hostkernel

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Connections of a server are found by its port, and the one that is ended is ended at its peer.
func TestConnectionsOfAServerAreListedAndEnded(t *testing.T) {
	for _, c := range []struct{ network, from, to string }{{"tcp4", "127.0.0.21", "127.0.0.22:0"}, {"tcp6", "::1", "[::1]:0"}} {
		conn, path := connected(t, c.network, c.from, c.to)
		list, err := Connections([]uint16{path.Target.Port()})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != 1 || list[0].Host != path.Source || list[0].Array != path.Target.Addr() || list[0].Port != path.Target.Port() {
			t.Fatalf("%s: %+v", c.network, list)
		}
		if err := list[0].Abort(); err != nil {
			t.Fatal(err)
		}
		if ended(conn) == nil {
			t.Errorf("%s: the peer's connection goes on", c.network)
		}
		if err := list[0].Abort(); err != nil {
			t.Errorf("one that is gone: %v", err)
		}
		if list, err = Connections([]uint16{path.Target.Port()}); err != nil || len(list) != 0 {
			t.Errorf("%s: %+v, %v", c.network, list, err)
		}
	}
}

// The format of a tracepoint of Linux 6.12.
const setStateFormat = `name: inet_sock_set_state
ID: 1438
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

	field:const void * skaddr;	offset:8;	size:8;	signed:0;
	field:int newstate;	offset:20;	size:4;	signed:1;
	field:__u16 sport;	offset:24;	size:2;	signed:0;
	field:__u8 saddr_v6[16];	offset:40;	size:16;	signed:0;

print fmt: "family=%s", REC->family
`

func TestFormatsOfTracepointsAreRead(t *testing.T) {
	f := parseFormat([]byte(setStateFormat))
	for name, want := range map[string][2]int{"skaddr": {8, 8}, "newstate": {20, 4}, "sport": {24, 2}, "saddr_v6": {40, 16}} {
		if at, err := f.offset(name, want[1]); err != nil || int(at) != want[0] {
			t.Errorf("%s: %d, %v", name, at, err)
		}
	}
	if _, err := f.offset("daddr_v6", 16); err == nil || !strings.Contains(err.Error(), "daddr_v6") {
		t.Errorf("a field that is missing: %v", err)
	}
	if _, err := f.offset("sport", 4); err == nil {
		t.Error("a field of another size is taken")
	}
}

// Controllers of the target are read from debugfs, and given up by their state.
func TestControllersOfTheTarget(t *testing.T) {
	const debug = "sys/kernel/debug/nvmet/nqn.a/"
	tree := plant(t, map[string]string{
		debug + "ctrl1/host_traddr": "10.1.1.1:49152\n", debug + "ctrl1/port": "3\n", debug + "ctrl1/state": "",
		debug + "ctrl2/host_traddr": "[2001:db8::1]:4711\n", debug + "ctrl2/port": "3\n",
		debug + "ctrl3/host_traddr": "\n", debug + "ctrl3/port": "3\n",
		debug + "ctrl4/host_traddr": "10.1.1.4\n", debug + "ctrl4/port": "../3\n",
		"sys/kernel/config/nvmet/ports/3/addr_trtype": "rdma\n", "sys/kernel/config/nvmet/ports/3/addr_traddr": "10.1.1.2\n", "sys/kernel/config/nvmet/ports/3/addr_trsvcid": "4420\n",
	})
	if err := os.MkdirAll(tree.path("sys/kernel/config/nvmet/ports/3/subsystems"), 0o755); err != nil {
		t.Fatal(err)
	}
	list, err := tree.TargetControllers()
	if err == nil || !strings.Contains(err.Error(), "ctrl3") || !strings.Contains(err.Error(), "ctrl4") {
		t.Errorf("of those that cannot be read: %v", err)
	}
	hosts := []netip.Addr{}
	for i := range list {
		c := &list[i]
		hosts = append(hosts, c.Host)
		if c.Transport != "rdma" || c.Array != netip.MustParseAddr("10.1.1.2") {
			t.Errorf("%+v", c)
		}
	}
	if want := []netip.Addr{netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("2001:db8::1")}; !slices.Equal(hosts, want) {
		t.Fatalf("%v, want %v", hosts, want)
	}
	if err := list[0].Fatal(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(tree.path(debug, "ctrl1", "state")); string(b) != "fatal" {
		t.Errorf("%q, %v", b, err)
	}
	if err := os.RemoveAll(filepath.Dir(tree.path(debug, "ctrl1", "state"))); err != nil {
		t.Fatal(err)
	}
	if err := list[0].Fatal(); err != nil {
		t.Errorf("one that is gone: %v", err)
	}
	if _, err := plant(t, nil).TargetControllers(); !errors.Is(err, ErrNoTargetDebug) {
		t.Error(err)
	}
}
