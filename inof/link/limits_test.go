package link

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

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

// A device that begins and ends sessions without end is refused after some, told so, and named
// once; it may have another one later, and the others are left alone.
func TestADeviceThatBeginsSessionsWithoutEndIsRefused(t *testing.T) {
	var told []string
	var mu sync.Mutex
	l := startLoopback(t, func(c *ServerConfig) {
		c.Alarm = func(dev netip.Addr, text string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, dev.String()+": "+text)
		}
	})
	defer l.stop()
	ends := func(dev int) {
		nc, _ := connect(t, l, inoftest.DevID(dev))
		<-l.peers
		_ = nc.Close()
		<-l.downs
	}
	p := l.server.pace.of(inoftest.DevID(0))
	p.sessions.SetLimitAt(time.Now().Add(-time.Hour), 0) // in this test nothing is made up for by itself
	for range sessionsBurst {
		ends(0)
	}
	for range 3 {
		nc, err := tryConnect(t, l, inoftest.DevID(0))
		if told, ok := errors.AsType[*PeerError](err); !ok || told.Code != wire.CodeLimit {
			t.Fatalf("one more: %v", err)
		}
		_ = nc.Close()
	}
	ends(1)
	for l.server.Counters().LimitRefused < 3 { // counted when the peer has been given time to read why
		runtime.Gosched()
	}
	if n := l.server.Counters(); n.SessionsRefused != 3 || n.Established != sessionsBurst+1 {
		t.Errorf("%+v", n)
	}
	mu.Lock()
	if len(told) != 1 || !strings.Contains(told[0], inoftest.DevID(0).String()+": its sessions begin and end too often") {
		t.Errorf("told: %q", told)
	}
	mu.Unlock()
	p.sessions.SetLimit(rate.Inf) // as after a while
	ends(0)
}

// A dialer that keeps to its back-off has as many sessions as it likes.
func TestADialerThatWaitsIsNeverRefused(t *testing.T) {
	p := newPacer(Pace{}.withDefaults())
	now := time.Now()
	for attempt := range 1000 {
		if _, err := p.begins(now); err != nil {
			t.Fatalf("session %d: %v", attempt, err)
		}
		now = now.Add(Backoff(attempt, 0))
	}
}
