package inof

import (
	"net/netip"
	"testing"

	"github.com/openinof/inof/snsd"
)

func TestClientStampsItsEvents(t *testing.T) {
	c := NewClient(devID(0), 7)
	c.Up(reflID, t0)
	c.PutHost(hostAt(hostIP(0), devID(0), "p"))
	first := c.Flush(us(5))
	if got, want := timesOf(first[0].Msg.(*Update)), (stamped{Sent: us(5)}); got != want {
		t.Errorf("without an event: %+v, want %+v", got, want)
	}
	c.PutFault(FaultRecord{Port: "p", Why: snsd.ReasonLinkDown, Since: us(10), Addrs: []netip.Addr{hostIP(0)}})
	c.MarkFault(us(10))
	out := c.Flush(us(30))
	StampSent(out, us(40))
	if got, want := timesOf(out[0].Msg.(*Update)), (stamped{Fault: us(10), Decided: us(30), Sent: us(40)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
