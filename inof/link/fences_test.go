package link

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// A peer that has not announced that it takes fence records, or declared hosts, gets the rest of the
// message.
func TestRecordsGoToPeersThatTakeThem(t *testing.T) {
	l := startLoopback(t, nil)
	defer l.stop()
	var peers Peers
	u := &wire.Update{Origin: inoftest.ReflID, Epoch: 1, Seq: 1,
		Hosts:  []wire.HostRecord{{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(1), inoftest.DevID(9), "p")}},
		Fences: []wire.FenceRecord{{Device: inoftest.DevID(9), Port: "p", Array: inoftest.HostIP(1), Peers: []wire.FencePeer{{Hold: time.Second}}}}}
	bound := &wire.Bound{NQNs: []string{"*"}, Hosts: []wire.DeclaredHost{{Addr: inoftest.HostIP(2), Ports: []string{"p"}}}}
	var to []netip.Addr
	var conns []net.Conn
	var sessions []*Session
	for i, caps := range []wire.Capabilities{0, wire.CapFence | wire.CapDeclared} {
		nc, err := net.Dial("tcp", l.server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		dev := inoftest.DevID(i)
		_, s, err := handshakeOver(t, nc, dev, SessionConfig{Auth: hmacAuth("password1"), Caps: caps})
		if err != nil {
			t.Fatal(err)
		}
		peers.Handle(PeerEvent{Peer: <-l.peers, Kind: PeerUp})
		to, conns, sessions = append(to, dev), append(conns, nc), append(sessions, s)
	}
	if err := peers.Deliver([]wire.Delivery{{To: to, Msg: u}, {To: to, Msg: bound}}); err != nil {
		t.Fatal(err)
	}
	for i, nc := range conns {
		for {
			m, _, err := sessions[i].Receive(readFrame(t, nc), nil, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := m.(*wire.Update); ok {
				if len(got.Hosts) != 1 || len(got.Fences) != i {
					t.Errorf("peer %d got %+v", i, got)
				}
			}
			if got, ok := m.(*wire.Bound); ok {
				if len(got.NQNs) != 1 || len(got.Hosts) != i {
					t.Errorf("peer %d got %+v", i, got)
				}
				break
			}
		}
	}
}
