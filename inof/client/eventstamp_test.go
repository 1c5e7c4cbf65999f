package client

import (
	"net/netip"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func TestClientStampsItsEvents(t *testing.T) {
	c := New(inoftest.DevID(0), 7)
	c.Up(inoftest.ReflID, inoftest.T0)
	c.PutHost(inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p"))
	first := c.Flush(inoftest.Us(5))
	if got, want := inoftest.TimesOf(first[0].Msg.(*wire.Update)), (inoftest.Stamped{Sent: inoftest.Us(5)}); got != want {
		t.Errorf("without an event: %+v, want %+v", got, want)
	}
	c.SetDown("p", []netip.Addr{inoftest.HostIP(0)}, zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.Us(10)})
	c.MarkFault(inoftest.Us(10))
	out := c.Flush(inoftest.Us(30))
	wire.StampSent(out, inoftest.Us(40))
	if got, want := inoftest.TimesOf(out[0].Msg.(*wire.Update)), (inoftest.Stamped{Fault: inoftest.Us(10), Decided: inoftest.Us(30), Sent: inoftest.Us(40)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
