package main

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
)

func TestAHostThatWasClearedIsNamedWithItsPort(t *testing.T) {
	src := apitest.Sample()
	host := netip.MustParseAddr("192.0.2.101")
	src.ClearedValues = []api.HostCleared{{Host: host, Port: "Ethernet2", MACs: []fabric.MAC{{2, 0, 0, 0, 0, 1}}}}
	socket, _ := apitest.Serve(t, src)
	code, out, errs := call(t, "host", "clear", "192.0.2.101", "--socket", socket)
	if want := "192.0.2.101 (02:00:00:00:00:01) of port Ethernet2: cleared\n"; code != 0 || out != want {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	code, out, _ = call(t, "host", "clear", "192.0.2.101", "-o", "json", "--socket", socket)
	if code != 0 || !strings.Contains(out, `"port": "Ethernet2"`) || !strings.Contains(out, `"02:00:00:00:00:01"`) {
		t.Errorf("exit code %d, %q", code, out)
	}
	if list := src.Changes(); list[0] != "clear host 192.0.2.101" {
		t.Errorf("asked for %q", list)
	}
	src.SetErr(fmt.Errorf("host %s: %w: it is on device 10.0.0.2 port eth1: clear it there", host, api.ErrRefused))
	if code, _, errs := call(t, "host", "clear", "192.0.2.101", "--socket", socket); code != exitFailed || !strings.Contains(errs, "device 10.0.0.2 port eth1: clear it there") {
		t.Errorf("exit code %d, %q", code, errs)
	}
	if code, _, _ := call(t, "host", "clear", "192.0.2", "--socket", socket); code == 0 || code == exitFailed {
		t.Errorf("no address: exit code %d", code)
	}
}
