package link

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// The memory of a message for one peer serves the next one as soon as nobody has anything left of
// the message, and not before: a peer that reads nothing for a while gets each of them as it was.
func TestMemoryOfAMessageIsUsedAgainOnlyOnceItIsSent(t *testing.T) {
	l := startLoopback(t, func(c *ServerConfig) { c.QueueBytes = 256 << 20 })
	defer l.stop()
	nc, s := connect(t, l, inoftest.DevID(0))
	defer nc.Close()
	var peers Peers
	peers.Handle(PeerEvent{Peer: <-l.peers, Kind: PeerUp})
	var spare []wire.HostRecord
	done, sent := 0, uint64(0)
	send := func() {
		sent++
		hosts := spare[:0]
		spare = nil
		for i := range 400 {
			hosts = append(hosts, wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(9), fmt.Sprint("p", sent))})
		}
		form := &wire.Form{Done: func() { done, spare = done+1, hosts }}
		u := &wire.Update{Origin: inoftest.ReflID, Epoch: 1, Seq: sent, Hosts: hosts}
		if err := peers.Deliver([]wire.Delivery{{To: []netip.Addr{inoftest.DevID(0)}, Msg: u, Form: form}}); err != nil {
			t.Fatal(err)
		}
	}
	for want := 1; want <= 3; want++ { // the socket takes these
		if send(); done != want {
			t.Fatalf("the memory of %d messages of %d was given back", done, want)
		}
	}
	for sent < 600 { // 20 MB, which the sockets do not hold
		send()
	}
	if done == int(sent) {
		t.Fatal("the memory of messages that wait was given back")
	}
	for seq := uint64(1); seq <= sent; seq++ {
		m, _, err := s.Receive(readFrame(t, nc), nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		u, ok := m.(*wire.Update)
		if !ok {
			seq--
			continue
		}
		for i := range u.Hosts {
			if u.Seq != seq || len(u.Hosts) != 400 || u.Hosts[i].Host.HostKey.Port != fmt.Sprint("p", seq) {
				t.Fatalf("update %d, %d hosts, one at port %s; want update %d", u.Seq, len(u.Hosts), u.Hosts[i].Host.HostKey.Port, seq)
			}
		}
	}
}
