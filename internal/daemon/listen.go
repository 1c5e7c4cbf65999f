package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
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

// listenAll opens all listeners of a setting, as one: a device is the same whichever it comes to.
func (d *Daemon) listenAll(ctx context.Context, setting string, addrs []netip.AddrPort) (net.Listener, error) {
	l := &listeners{came: make(chan cameIn), closed: make(chan struct{})}
	for _, addr := range addrs {
		one, err := d.listenFor(setting)(ctx, addr)
		if err != nil {
			_ = l.Close()
			return nil, err
		}
		l.all = append(l.all, one)
	}
	if len(l.all) == 1 {
		return l.all[0], nil
	}
	for _, one := range l.all {
		go l.accept(one)
	}
	return l, nil
}

// listeners are several as one.
type listeners struct {
	all    []net.Listener
	came   chan cameIn
	once   sync.Once
	closed chan struct{}
}

// cameIn is what one of them has accepted.
type cameIn struct {
	nc  net.Conn
	err error
}

// accept hands over what comes to one of them; one that cannot accept tries again when its error
// was taken.
func (l *listeners) accept(one net.Listener) {
	for {
		nc, err := one.Accept()
		select {
		case l.came <- cameIn{nc, err}:
		case <-l.closed:
			if err == nil {
				_ = nc.Close()
			}
			return
		}
	}
}

// Accept implements net.Listener.
func (l *listeners) Accept() (net.Conn, error) {
	select {
	case c := <-l.came:
		return c.nc, c.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listeners) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		for _, one := range l.all {
			err = errors.Join(err, one.Close())
		}
	})
	return err
}

// Addr implements net.Listener: the first one's.
func (l *listeners) Addr() net.Addr { return l.all[0].Addr() }

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
		if d.server != nil {
			all = append(all, d.server.Ready())
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
