package hostagent

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

// script writes a program and gives its name.
func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: " + what)
		}
	}
}

// A hook reads what happened; of calls that wait for one path only the newest is made, in order.
func TestAHookIsToldTheNewestWordOfAPath(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	h := NewHooks([]string{script(t, "cat >>"+out+"; sleep 0.3\n")}, []string{script(t, "cat >>"+out+"; exit 3\n")})
	n := word(array1, snsd.Active, snsd.ReasonNone, 1)
	h.call(&n, time.Unix(7, 0), "eth1")
	eventually(t, "the first call", func() bool { b, _ := os.ReadFile(out); return len(b) > 0 })
	for seq := range uint32(5) {
		n := word(array1, snsd.Inactive, snsd.ReasonBFDDown, seq+2)
		h.call(&n, time.Unix(8, 0), "eth1")
	}
	eventually(t, "two calls", func() bool { return h.counters().Done == 2 })
	if c := h.counters(); c.Failed != 1 || c.Skipped != 4 {
		t.Errorf("%+v", c)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	var first, second HookCall
	if err := d.Decode(&first); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(&second); err != nil {
		t.Fatal(err)
	}
	if first.Event != "active" || first.Subject != array1 || first.Self != self1 || first.Interface != "eth1" || first.Role != snsd.RoleTarget || !first.ReceivedAt.Equal(time.Unix(7, 0)) {
		t.Errorf("%+v", first)
	}
	if second.Event != "inactive" || second.Sequence != 6 || second.Reason != snsd.ReasonBFDDown {
		t.Errorf("%+v", second)
	}
}

// A hook that hangs is killed, and no more than four run at once.
func TestHooksAreBounded(t *testing.T) {
	const calls = 3 * hooksAtOnce
	dir := t.TempDir()
	h := NewHooks(nil, []string{script(t, "touch "+dir+"/$$; exec sleep 60\n")})
	h.Limit = 500 * time.Millisecond
	began := time.Now()
	for i := range calls {
		n := word(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), snsd.Inactive, snsd.ReasonLinkDown, 1)
		h.call(&n, time.Now(), "eth1")
	}
	eventually(t, "all to be killed", func() bool { return h.counters() == HookCounters{Done: calls, Failed: calls} })
	if took := time.Since(began); took < calls/hooksAtOnce*h.Limit {
		t.Errorf("%d calls took %v: more than %d ran at once", calls, took, hooksAtOnce)
	}
}

// The hook that is shipped fails and reinstates the disks of a portal, and no other's.
func TestTheHookForDMMultipath(t *testing.T) {
	root, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	for _, s := range []struct{ number, address, disk string }{{"1:0", "192.0.2.7", "sdb"}, {"2:0", "198.51.100.7", "sdc"}} {
		for name, text := range map[string]string{
			"class/iscsi_connection/connection" + s.number + "/persistent_address":                                                       s.address + "\n",
			"class/iscsi_session/session" + strings.TrimSuffix(s.number, ":0") + "/device/target0:0:0/0:0:0:0/block/" + s.disk + "/size": "1\n",
		} {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	call := func(state snsd.State, reason snsd.Reason) {
		t.Helper()
		b, err := json.Marshal(HookCall{Event: state.String(), Subject: array1, Reason: reason})
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command("../dist/hooks/dm-multipath")
		c.Env = append(os.Environ(), "SYSFS="+root, "MULTIPATHD="+script(t, "echo \"$@\" >>"+out+"\n"))
		c.Stdin = strings.NewReader(string(b))
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	call(snsd.Inactive, snsd.ReasonLinkDown)
	call(snsd.Inactive, snsd.ReasonPacketError)
	call(snsd.Active, snsd.ReasonNone)
	if b, _ := os.ReadFile(out); string(b) != "fail path sdb\nreinstate path sdb\n" {
		t.Errorf("%q", b)
	}
}
