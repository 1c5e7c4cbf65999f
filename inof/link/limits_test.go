package link

import (
	"errors"
	"net"
	"runtime"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// A peer beyond the number of sessions is told so, and counted; the others go on.
func TestSessionsUpToTheLimit(t *testing.T) {
	l := startLoopback(t, func(c *ServerConfig) { c.MaxPeers = 2 })
	defer l.stop()
	var conns []net.Conn
	for i := range 2 {
		nc, _ := connect(t, l, inoftest.DevID(i))
		conns = append(conns, nc)
		<-l.peers
	}
	nc, err := tryConnect(t, l, inoftest.DevID(2)) // it knows the password; then it is told
	if told, ok := errors.AsType[*PeerError](err); !ok || told.Code != wire.CodeLimit {
		t.Errorf("one more: %v", err)
	}
	_ = nc.Close()
	for l.server.Counters().LimitRefused == 0 { // counted when the peer has been given time to read why
		runtime.Gosched()
	}
	if n := l.server.Counters(); n.LimitRefused != 1 || n.Established != 2 {
		t.Errorf("%+v", n)
	}
	for _, c := range conns {
		_ = c.Close()
	}
}
