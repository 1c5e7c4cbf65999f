package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// This file has the listeners of the configuration: what an error of one says, and when all are
// open.

// listenFor gives Env.Listen with errors that name the setting and what to do.
func (d *Daemon) listenFor(setting string) func(context.Context, netip.AddrPort) (net.Listener, error) {
	return func(ctx context.Context, addr netip.AddrPort) (net.Listener, error) {
		l, err := d.env.Listen(ctx, addr)
		if err != nil {
			return nil, fmt.Errorf("%s %s cannot be opened: %w; give an address of this device, and a port that no other process listens on", setting, addr, err)
		}
		return l, nil
	}
}

// listening waits until every listener is open, so that whoever was told that the daemon is ready
// can connect; it reports whether all are. A member of a cluster that has no zones yet opens those
// for clients when the cluster is formed, for which nobody can wait here.
func (d *Daemon) listening(ctx context.Context) bool {
	var all []<-chan struct{}
	formed := true
	if d.cluster != nil {
		all = append(all, d.cluster.node.Ready())
		select {
		case <-d.cluster.formed:
		default:
			formed = false
		}
	}
	if formed {
		for _, s := range d.servers {
			all = append(all, s.Ready())
		}
	}
	for _, open := range all {
		select {
		case <-open:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
