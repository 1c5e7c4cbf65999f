package link

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// reflNode is a reflector with its server, owned by one goroutine.
type reflNode struct {
	refl   *reflector.Reflector
	peers  *Peers
	server *Server
	do     chan func()
	stop   func()
	err    error
}

func startReflector(t *testing.T, f *fabricNet, auth *password, epoch uint64, set zone.Set, known []netip.Addr) *reflNode {
	t.Helper()
	n := &reflNode{do: make(chan func())}
	var err error
	if n.refl, err = reflector.New(inoftest.ReflID, epoch, set, reflector.Config{Known: known}, time.Now()); err != nil {
		t.Fatal(err)
	}
	var peers Peers
	n.peers = &peers
	handle := func(ev PeerEvent) {
		var out []wire.Delivery
		var err error
		dev := ev.Peer.Device()
		now := peers.Handle(ev)
		switch {
		case ev.Kind == PeerUp:
			out = n.refl.Join(dev, ev.At)
		case !now:
		case ev.Kind == PeerDown:
			out = n.refl.Leave(dev, ev.At)
		default:
			out, err = n.refl.Receive(dev, ev.Msg, ev.At)
		}
		if err := errors.Join(err, peers.Deliver(out)); err != nil {
			n.err = err
		}
	}
	n.server, err = NewServer(ServerConfig{
		TransportConfig: TransportConfig{Self: inoftest.ReflID, Roles: wire.RoleReflector, Epoch: epoch, Auth: auth.get, Sink: func(ev PeerEvent) {
			n.wait(func() { handle(ev) })
		}},
		Listen: f.listen,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done, owner := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); _ = n.server.Run(ctx) }()
	go func() {
		defer close(owner)
		for f := range n.do {
			f()
			_ = peers.Deliver(n.refl.Tick(time.Now()))
		}
	}()
	n.stop = func() { cancel(); <-done; close(n.do); <-owner }
	return n
}

// wait runs f in the owner's goroutine.
func (n *reflNode) wait(f func()) {
	done := make(chan struct{})
	n.do <- func() { f(); close(done) }
	<-done
}

// clientNode is a client with its dialer, owned by one goroutine.
type clientNode struct {
	client  *client.Client
	dialer  *Dialer
	peers   Peers
	do      chan func()
	stop    func()
	applied []client.Applied
	hosts   map[zone.HostKey]bool // that it holds
	faults  map[zone.HostKey]bool
}

func startClient(t *testing.T, f *fabricNet, auth *password, dev netip.Addr, epoch uint64, hosts ...zone.Host) *clientNode {
	t.Helper()
	return startPrepared(t, f, auth, dev, epoch, func(c *client.Client) {
		for _, h := range hosts {
			c.PutHost(h)
		}
	})
}

// startPrepared starts a client that knows its records before its first session.
func startPrepared(t *testing.T, f *fabricNet, auth *password, dev netip.Addr, epoch uint64, prepare func(*client.Client)) *clientNode {
	t.Helper()
	n := &clientNode{client: client.New(dev, epoch), do: make(chan func()), hosts: map[zone.HostKey]bool{}, faults: map[zone.HostKey]bool{}}
	prepare(n.client)
	n.client.Flush(time.Now())
	handle := func(ev PeerEvent) {
		n.peers.Handle(ev)
		switch ev.Kind {
		case PeerUp:
			_ = n.peers.Deliver(n.client.Up(ev.Peer.Device(), ev.At))
		case PeerDown:
			n.client.Down(ev.Peer.Device(), ev.At)
		case PeerMessage:
			a, err := n.client.Receive(ev.Peer.Device(), ev.Msg, ev.At)
			if err != nil {
				t.Error(err)
			}
			n.applied = append(n.applied, a)
			for _, h := range a.Hosts {
				n.hosts[h.Host.HostKey] = h.Op == wire.Put
				n.faults[h.Host.HostKey] = h.Host.Down.Is()
			}
			for i := range a.Downs {
				for _, addr := range a.Downs[i].Addrs {
					n.faults[a.Downs[i].Key(addr)] = a.Downs[i].Is()
				}
			}
		}
	}
	var err error
	n.dialer, err = NewDialer(DialerConfig{
		TransportConfig: TransportConfig{Self: dev, Roles: wire.RoleClient, Epoch: epoch, Auth: auth.get, Sink: func(ev PeerEvent) {
			n.wait(func() { handle(ev) })
		}},
		Name: "reflector", Expect: inoftest.ReflID, Dial: f.dial,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done, owner := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); _ = n.dialer.Run(ctx) }()
	go func() {
		defer close(owner)
		for f := range n.do {
			f()
		}
	}()
	n.stop = func() { cancel(); <-done; close(n.do); <-owner }
	return n
}

func (n *clientNode) wait(f func()) {
	done := make(chan struct{})
	n.do <- func() { f(); close(done) }
	<-done
}

// withdrawn counts what was taken back since the last call.
func (n *clientNode) withdrawn() (hosts, faults, zones int) {
	n.wait(func() {
		for _, a := range n.applied {
			for _, h := range a.Hosts {
				if h.Op == wire.Withdraw {
					hosts++
				}
			}
			for _, d := range a.Downs {
				if !d.Is() {
					faults++
				}
			}
			for _, z := range a.Zones {
				if z.Op == wire.Withdraw {
					zones++
				}
			}
		}
		n.applied = nil
	})
	return
}

func (n *clientNode) knows() (hosts, faults int) {
	n.wait(func() {
		for _, there := range n.hosts {
			if there {
				hosts++
			}
		}
		for _, there := range n.faults {
			if there {
				faults++
			}
		}
	})
	return
}

// after lets fake time pass and everything settle.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
