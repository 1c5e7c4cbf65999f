package link

import (
	"io"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// Who makes messages only as fast as they are taken hears when that is so: at once from
// a peer that has taken all, by an event from one that has not.
func TestPeerTellsWhenDrained(t *testing.T) {
	drained := make(chan *Peer, 8)
	l := startLoopback(t, func(c *ServerConfig) {
		sink := c.Sink
		c.Sink = func(ev PeerEvent) {
			if ev.Kind == PeerDrained {
				drained <- ev.Peer
			}
			sink(ev)
		}
	})
	defer l.stop()
	nc, _ := connect(t, l, inoftest.DevID(0))
	defer nc.Close()
	p := <-l.peers
	u := &wire.Update{Origin: inoftest.ReflID, Epoch: 1, Seq: 1}
	for i := range 3000 {
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(9), "Ethernet1")})
	}
	for limit := 0; ; limit++ {
		if err := p.Send(u); err != nil {
			t.Fatal(err)
		}
		if !p.WhenDrained() {
			break
		}
		if limit > 1000 {
			t.Fatal("the sockets take 200 MB from a peer that reads nothing")
		}
	}
	select {
	case <-drained:
		t.Fatal("drained, but nothing was read")
	default:
	}
	go func() { _, _ = io.Copy(io.Discard, nc) }()
	select {
	case got := <-drained:
		if got != p {
			t.Fatal("the event is of another session")
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing told that the peer had taken all")
	}
}
