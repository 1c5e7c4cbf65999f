package hostnotify

import (
	"fmt"
	"testing"

	"github.com/openinof/inof/fabric"
)

// A port of an overlay may take less than 1,500 bytes, and the kernel refuses what is longer: nobody
// behind it would ever be told.
func TestFramesKeepWithinTheMTUOfTheirPort(t *testing.T) {
	const peers = 30
	for _, c := range []struct{ mtu, most int }{{0, 1499}, {9000, 1499}, {1450, 1450}, {300, 300}} {
		t.Run(fmt.Sprint(c.mtu), func(t *testing.T) {
			r := newRig(t, Config{})
			for i := range peers {
				a := ip(fmt.Sprintf("198.51.100.%d", i+1))
				r.w.put(a)
				r.w.join("z", ip(hostA), a)
			}
			r.local("p1", hostA)
			r.n.SetMTU("p1", c.mtu)
			if told := r.settle(); len(told) < peers {
				t.Errorf("%d notices", len(told))
			}
			longest := 0
			for _, o := range r.raw {
				longest = max(longest, len(o.Frame)-fabric.EthernetHeaderLen)
			}
			if longest > c.most || longest < c.most-100 {
				t.Errorf("payloads of up to %d bytes, want at most %d and no less than what a notice leaves", longest, c.most)
			}
		})
	}
}

func TestANoticeThatIsLongerThanTheMTUIsAFrameOfItsOwn(t *testing.T) {
	r := newRig(t, Config{})
	r.w.put(ip(farT))
	r.w.put(ip(farU))
	r.w.join("z", ip(hostA), ip(farT), ip(farU))
	r.local("p1", hostA)
	r.n.SetMTU("p1", 40)
	if told := r.settle(); len(told) < 2 || len(r.raw) != len(told) {
		t.Errorf("%d notices in %d frames", len(told), len(r.raw))
	}
}
