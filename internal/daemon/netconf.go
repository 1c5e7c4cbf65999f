package daemon

import (
	"context"
	"fmt"

	"github.com/openinof/inof/internal/netconf"
)

// netconfTask speaks NETCONF on a network.
type netconfTask struct {
	d      *Daemon
	server *netconf.Server
}

func (d *Daemon) newNetconf() (*netconfTask, error) {
	key, err := netconf.HostKey(d.cfg.Load().State)
	if err != nil {
		return nil, fmt.Errorf("management.netconf: %w", err)
	}
	return &netconfTask{d, netconf.New(d, netconf.Config{HostKey: key, Door: d.door("management.netconf")})}, nil
}

func (n *netconfTask) String() string { return "NETCONF" }

func (n *netconfTask) Run(ctx context.Context) error {
	return n.d.again(ctx, "management.netconf", func(ctx context.Context) error {
		l, err := n.d.env.Listen(ctx, n.d.cfg.Load().Management.Netconf)
		if err != nil {
			return err
		}
		return n.server.Serve(ctx, l)
	})
}
