package main

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
)

func TestDrainReturnsWhenThePortIsShut(t *testing.T) {
	src := apitest.Sample()
	src.DrainedValue = api.Drained{Ports: []string{"Ethernet2"}, Hosts: 2}
	src.PortValues[1].State = api.PortDrained
	socket, _ := apitest.Serve(t, src)
	for _, c := range []struct {
		args, out, change string
	}{
		{"drain Ethernet2", "Ethernet2, 2 host address(es): drained and shut\n", "{Port:Ethernet2 Undo:false Wait:default}"},
		{"drain device --wait 30s --no-wait", "Ethernet2, 2 host address(es): being drained\n", "{Port: Undo:false Wait:30s}"},
		{"drain Ethernet2 --wait 0s", "Ethernet2, 2 host address(es): drained and shut\n", "{Port:Ethernet2 Undo:false Wait:0s}"},
		{"drain device --undo", "Ethernet2, 2 host address(es): in service again\n", "{Port: Undo:true Wait:default}"},
	} {
		code, out, errs := call(t, strings.Fields(c.args+" --socket "+socket)...)
		if code != 0 || out != c.out {
			t.Errorf("%s: exit code %d, %q, %q", c.args, code, out, errs)
		}
		if list := src.Changes(); list[len(list)-1] != "drain "+c.change {
			t.Errorf("%s asked for %q", c.args, list[len(list)-1])
		}
	}
	src.PortValues[1].State = api.PortUp
	if code, _, errs := call(t, "drain", "Ethernet2", "--socket", socket); code == 0 || !strings.Contains(errs, "port Ethernet2 is up: somebody ended its draining") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

func TestATestNoticeThatIsNotAckedFails(t *testing.T) {
	src := apitest.Sample()
	us := int64(412)
	row := api.TestNotice{Host: netip.MustParseAddr("192.0.2.101"), Port: "Ethernet2", Sent: 1, Acked: true, RoundTrip: &us}
	src.TestNoticeValues = []api.TestNotice{row}
	socket, _ := apitest.Serve(t, src)
	if code, out, _ := call(t, "test-notice", "192.0.2.101", "--socket", socket); code != 0 || !strings.Contains(out, "over Ethernet2: acked in 412us, frame 1") {
		t.Errorf("exit code %d, %q", code, out)
	}
	row.Acked, row.RoundTrip, row.Sent = false, nil, 3
	src.TestNoticeValues = append(src.TestNoticeValues, row)
	code, out, errs := call(t, "test-notice", "192.0.2.101", "--socket", socket)
	if code != exitFailed || !strings.Contains(out, "no ack of 3 frames") || !strings.Contains(errs, "acked nothing over port Ethernet2") {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
}

func TestReloadSaysWhatBecameOfIt(t *testing.T) {
	src := apitest.Sample()
	src.ReloadedValue = api.Reloaded{File: "/etc/inof/inofd.yaml", Changed: []string{"ports.access", "log.level"}, Restart: []string{"device.id"}}
	socket, _ := apitest.Serve(t, src)
	code, out, errs := call(t, "reload", "--force", "--socket", socket)
	if want := "/etc/inof/inofd.yaml: in force now: ports.access, log.level\n/etc/inof/inofd.yaml: only a restart changes device.id\n"; code != 0 || out != want {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	if got := fmt.Sprint(src.Changes()); got != "[reload force=true]" {
		t.Errorf("asked for %s", got)
	}
	src.ReloadedValue.Problems = []string{"lldp stays as it was: no"}
	if code, _, errs := call(t, "reload", "--socket", socket); code != exitFailed || !strings.Contains(errs, "not wholly in force: lldp stays as it was: no") {
		t.Errorf("exit code %d, %q", code, errs)
	}
	src.SetErr(fmt.Errorf("%w: ports.access would leave out port Ethernet2 with host 192.0.2.101", api.ErrRefused))
	if code, _, errs := call(t, "reload", "--socket", socket); code != exitFailed || !strings.Contains(errs, "port Ethernet2 with host 192.0.2.101") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}
