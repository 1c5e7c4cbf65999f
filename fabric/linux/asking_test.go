package linux

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/openinof/inof/fabric"
)

// A host's kernel answers an ARP probe, and the answer comes back, on a port of a bridge too;
// the socket for it is gone when nothing is asked any more.
func TestAHostIsAskedForItsAddress(t *testing.T) {
	for _, bridged := range []bool{false, true} {
		sw, host := newSpace(t), newSpace(t)
		sw.veth("p0", host, "h0")
		host.Addr("h0", "198.51.100.7/24")
		if bridged {
			br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
			if err := sw.NL.LinkAdd(br); err != nil {
				t.Fatal(err)
			}
			if err := sw.NL.LinkSetMaster(sw.Link("p0"), br); err != nil {
				t.Fatal(err)
			}
			sw.SetUp("br0", true)
		}
		r, d := start(t, sw, nil, "p0")
		own := r.ready("p0").MAC
		ask := fabric.AppendEthernet(nil, fabric.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, own, fabric.EtherTypeARP)
		ask = append(ask, 0, 1, 8, 0, 6, 4, 0, 1)
		ask = append(append(ask, own[:]...), make([]byte, 10)...)
		ask = append(append(ask, 198, 51, 100, 7), make([]byte, 18)...)
		if err := r.Send("p0", ask); err != nil {
			t.Fatal(err)
		}
		for {
			f := receive(t, r.Frames(), "answer")
			if f.EtherType != fabric.EtherTypeARP {
				continue
			}
			if op := binary.BigEndian.Uint16(f.Payload[6:]); f.Dst != own || op != 2 || [4]byte(f.Payload[14:18]) != [4]byte{198, 51, 100, 7} {
				t.Errorf("bridged %v: answer %+v", bridged, f)
			}
			break
		}
		p := d.byName["p0"]
		_ = p.asking.Load().SetDeadline(time.Now()) // as if it had not asked for a while
		eventually(t, "end of the socket", func() bool { return p.asking.Load() == nil })
	}
}
