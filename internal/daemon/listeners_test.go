package daemon

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/testbed/wires"
)

// A reflector with two listening addresses is one: who comes with the id of a device that is
// connected at the one takes nothing from it at the other.
func TestACloneAtAnotherListenerTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fabric := new(wires.Net)
		d, stop := aReflector(t, "reflector: {listen: [10.0.0.100:19516, 10.0.1.100:19516]}\n", Env{Listen: fabric.Listen})
		settle(time.Second)
		dial := func(to string, epoch uint64) (*link.Dialer, func()) {
			c, err := link.NewDialer(link.DialerConfig{
				TransportConfig: link.TransportConfig{Self: netip.MustParseAddr("10.0.0.1"), Roles: wire.RoleClient, Epoch: epoch,
					Auth: func() link.Auth { return link.Auth{Mode: wire.AuthNone} }, Sink: func(link.PeerEvent) {}},
				Name: to, Dial: func(ctx context.Context) (net.Conn, error) { return fabric.Dial(ctx, netip.MustParseAddrPort(to)) },
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = c.Run(ctx) }()
			return c, func() { stop(); <-done }
		}
		first, leave := dial("10.0.0.100:19516", 1)
		settle(time.Second)
		clone, leaves := dial("10.0.1.100:19516", 2)
		settle(10 * time.Second)
		if a, b := first.Info(), clone.Info(); a.State != link.StateEstablished || a.Reconnects != 0 || b.LastCode != wire.CodeDuplicate {
			t.Errorf("the first: %+v\nthe clone: %+v", a, b)
		}
		if n := d.server.Counters(); n.Established != 1 || n.DuplicateRefused == 0 {
			t.Errorf("%+v", n)
		}
		leave() // its place is free, at every address
		settle(6 * time.Second)
		if info := clone.Info(); info.State != link.StateEstablished {
			t.Errorf("the clone, alone: %+v", info)
		}
		leaves()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
