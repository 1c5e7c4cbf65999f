package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netconf"
)

// netconfDoor speaks NETCONF with who comes over a network.
type netconfDoor struct {
	d   *Daemon
	at  netip.AddrPort
	srv *netconf.Server
}

// newNetconf makes the NETCONF server of the configuration.
func (d *Daemon) newNetconf() (*netconfDoor, error) {
	cfg := d.cfg.Load()
	m := cfg.Management
	key, err := netconf.HostKey(cfg.State)
	if err != nil {
		return nil, fmt.Errorf("management.netconf: %w", err)
	}
	return &netconfDoor{d, m.Netconf, netconf.New(d, netconf.Config{HostKey: key, Gate: d.gateway(), Refused: d.refusedBy("management.netconf")})}, nil
}

func (n *netconfDoor) String() string { return "NETCONF" }

// Run listens until ctx ends; a listener that fails is made again.
func (n *netconfDoor) Run(ctx context.Context) error {
	for said := ""; ; {
		l, err := n.d.listenFor("management.netconf")(ctx, n.at)
		if err == nil {
			err = n.srv.Serve(ctx, l)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if text := err.Error(); text != said { // once, not each time
			said = text
			n.d.log.Append(api.Event{Time: n.d.env.Now(), Kind: "error", Text: text, Fields: map[string]string{"room": "management"}})
		}
		select {
		case <-time.After(listenRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
