package hostagent

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// Avoided: a path that answers is connected anew, which makes it the last one that the policy numa
// takes; where that would do nothing, or harm, it is probed.
func TestADegradedPathIsAvoided(t *testing.T) {
	avoid := func(p *Policy) { p.Connect, p.By[snsd.ReasonPacketError] = true, Avoid }
	sick := word(array1, snsd.Inactive, snsd.ReasonPacketError, 1)
	bubble(t, "it is connected anew", func(t *testing.T) {
		b := newBench(t, DefaultOwner, avoid)
		defer b.stop()
		b.tell(sick, time.Second)
		b.want("live live")
		if calls := strings.Join(b.kernel.Calls()[2:], ", "); calls != "keep-alive nvme0, delete nvme0, connect "+nqn+" 192.0.2.7:4420" {
			t.Error(calls)
		}
		if c, err := b.kernel.Controller(0); err != nil || c.Owner != DefaultOwner || c.Source != self1 {
			t.Errorf("%+v, %v", c, err)
		}
	})
	for name, c := range map[string]struct {
		owner  string
		change func(p *Policy)
		kernel func(f *hostkernel.Fake)
		want   string
	}{
		"another policy":     {DefaultOwner, nil, func(f *hostkernel.Fake) { f.Policy = "round-robin" }, "round-robin goes on using each path"},
		"not ours":           {"stacd", nil, nil, "not ours"},
		"nobody connects":    {DefaultOwner, func(p *Policy) { p.Connect = false }, nil, "nothing would connect it"},
		"it gives no answer": {DefaultOwner, nil, func(f *hostkernel.Fake) { f.Break(array1) }, "gives no answer"},
		"the last path":      {DefaultOwner, nil, func(f *hostkernel.Fake) { _ = f.Delete(&hostkernel.Controller{Instance: 1}) }, "the last path"},
	} {
		bubble(t, name, func(t *testing.T) {
			b := newBench(t, c.owner, func(p *Policy) {
				if avoid(p); c.change != nil {
					c.change(p)
				}
			})
			defer b.stop()
			if c.kernel != nil {
				c.kernel(b.kernel)
			}
			b.tell(sick, 30*time.Second)
			if b.calls("delete nvme0") != 0 || b.calls("keep-alive") == 0 || !strings.Contains(b.said(), c.want) || !strings.Contains(b.said(), "probe 192.0.2.7") {
				t.Errorf("%s; %v", b.said(), b.kernel.Calls())
			}
		})
	}
	bubble(t, "it does not come back at once", func(t *testing.T) {
		b := newBench(t, DefaultOwner, avoid)
		defer b.stop()
		b.kernel.Serve(netip.AddrPortFrom(array1, 4420))
		b.tell(sick, 5*time.Second)
		b.want("- live")
		b.kernel.Serve(netip.AddrPortFrom(array1, 4420), nqn)
		time.Sleep(10 * time.Second)
		b.want("live live")
	})
}
