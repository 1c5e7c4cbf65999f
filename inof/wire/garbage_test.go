package wire_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// What is decoded costs about what is kept of it: of a host its NQN, of a port its name once, of
// a fault its addresses.
func TestDecodingLeavesLittleGarbage(t *testing.T) {
	const hosts, atOne = 300, 8
	u := &wire.Update{Origin: inoftest.DevID(0), Epoch: 1, Seq: 1}
	for i := range hosts {
		h := inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(0), fmt.Sprintf("Ethernet%d", i/atOne))
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
	}
	d := wire.DownRecord{Device: inoftest.DevID(0), Port: "Ethernet1", Down: zone.Down{Why: 1, Since: inoftest.T0}}
	for i := range wire.MaxDownAddrs {
		d.Addrs = append(d.Addrs, inoftest.ScaleHost(i))
	}
	const ports = (hosts + atOne - 1) / atOne
	for _, c := range []struct {
		name string
		u    *wire.Update
		most float64 // kept, and the message, its list, the reader
	}{
		{"hosts", u, hosts + ports + 3},
		{"fault", &wire.Update{Origin: inoftest.DevID(0), Epoch: 1, Seq: 1, Downs: []wire.DownRecord{d}}, 1 + 1 + 3},
	} {
		frame := inoftest.FrameOf(t, c.u)
		got, err := wire.Decode(frame)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wire.Message(c.u), got, inoftest.CmpOpts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		n := testing.AllocsPerRun(10, func() {
			if _, err := wire.Decode(frame); err != nil {
				t.Fatal(err)
			}
		})
		if n > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.name, n, c.most)
		}
	}
}
