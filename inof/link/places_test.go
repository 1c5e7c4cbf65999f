package link

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// refusedFor expects a device to be refused for want of a place.
func refusedFor(t *testing.T, l *loopback, dev netip.Addr, text string) {
	t.Helper()
	nc, err := tryConnect(t, l, dev)
	if nc != nil {
		defer nc.Close()
	}
	if told, ok := errors.AsType[*PeerError](err); !ok || told.Code != wire.CodeLimit || !strings.Contains(err.Error(), text) {
		t.Errorf("%v: %v, want %q", dev, err, text)
	}
}

// One machine with the password does not take all places with many ids: one address has a few,
// besides those that the operator has listed.
func TestOneAddressHasFewPlaces(t *testing.T) {
	l := startLoopback(t, func(c *ServerConfig) {
		c.MaxFromOne = 2
		c.Listed = func(dev netip.Addr) bool { return dev == inoftest.DevID(0) || dev == inoftest.DevID(4) }
	})
	defer l.stop()
	var last net.Conn
	for i := range 3 { // the first is listed
		last, _ = connect(t, l, inoftest.DevID(i))
		defer last.Close()
		<-l.peers
	}
	refusedFor(t, l, inoftest.DevID(3), "2 devices are connected from this address")
	nc, _ := connect(t, l, inoftest.DevID(4))
	defer nc.Close()
	<-l.peers
	again, _ := connect(t, l, inoftest.DevID(1)) // a session of before gives way
	defer again.Close()
	<-l.peers
	last.Close()
	for dev := range l.downs {
		if dev.Peer.Device() == inoftest.DevID(2) {
			break
		}
	}
	nc, _ = connect(t, l, inoftest.DevID(3))
	defer nc.Close()
	<-l.peers
}

// The place of a device that had hosts is kept for it, over a restart of the reflector too, while
// strangers come; not for ever.
func TestPlacesOfDevicesWithHostsAreKept(t *testing.T) {
	honest, earlier := inoftest.DevID(0), inoftest.DevID(1)
	l := startLoopback(t, func(c *ServerConfig) { c.MaxPeers, c.Returning = 3, []netip.Addr{earlier} })
	defer l.stop()
	nc, s := connect(t, l, honest)
	<-l.peers
	e, err := wire.Encode(&wire.Update{Origin: honest, Epoch: 1, Seq: 1, SentAt: time.Now(), Hosts: []wire.HostRecord{
		{Op: wire.Put, Host: zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr("198.51.100.7"), Device: honest, Port: "e1"}, Since: time.Now()}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write(s.Seal(nil, e, time.Now())); err != nil {
		t.Fatal(err)
	}
	for had := false; !had; time.Sleep(time.Millisecond) {
		l.server.mu.Lock()
		_, had = l.server.hosts[honest]
		l.server.mu.Unlock()
	}
	nc.Close()
	<-l.downs
	stranger, _ := connect(t, l, inoftest.DevID(2))
	defer stranger.Close()
	<-l.peers
	refusedFor(t, l, inoftest.DevID(3), "1 clients are connected, and 2 places are kept for devices that had hosts; the limit is 3")
	for _, dev := range []netip.Addr{honest, earlier} {
		nc, _ := connect(t, l, dev)
		defer nc.Close()
		<-l.peers
	}
	refusedFor(t, l, inoftest.DevID(3), "3 clients are connected; the limit is 3")

	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	delete(l.server.peers, honest)
	if n := l.server.awaited(time.Now()); n != 1 {
		t.Errorf("%d awaited, want 1", n)
	}
	if n := l.server.awaited(time.Now().Add(keepPlace + time.Hour)); n != 0 || len(l.server.hosts) != 1 {
		t.Errorf("%d awaited after a day, %d known", n, len(l.server.hosts))
	}
}
