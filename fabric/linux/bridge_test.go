package linux

import (
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/netnstest"
)

// A bridge takes what its ports receive before a socket for one EtherType sees it, but for the
// groups that no bridge forwards. Acks go to the address of the port.
func TestAPortHearsWhatIsForItsAddressInABridgeToo(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		sw, host := newSpace(t), newSpace(t)
		sw.veth("p0", host, "h0")
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
		netnstest.Require(t, "making a bridge", sw.NL.LinkAdd(br))
		sw.SetUp("br0", true)
		join := func() {
			t.Helper()
			if err := sw.NL.LinkSetMaster(sw.Link("p0"), br); err != nil {
				t.Fatal(err)
			}
		}
		if when == "before" {
			join()
		}
		r, _ := start(t, sw, nil, "p0")
		own := r.ready("p0").MAC
		if when == "after" {
			join()
		}
		from := host.socket("h0")
		hears := func(what string) {
			t.Helper()
			for end := time.Now().Add(patience); time.Now().Before(end); {
				if err := from.Send(control(fabric.EtherTypeNTS, own, payload(46, 1))); err != nil {
					t.Fatal(err)
				}
				select {
				case f := <-r.Frames():
					if f.Dst == own && f.EtherType == fabric.EtherTypeNTS {
						return
					}
				case <-time.After(20 * time.Millisecond):
				}
			}
			t.Errorf("%s: a frame for the port's address is not heard", what)
		}
		hears("in a bridge since " + when + " the start")
		if err := sw.NL.LinkSetNoMaster(sw.Link("p0")); err != nil {
			t.Fatal(err)
		}
		hears("out of the bridge")
	}
}
