package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// A reflector and three clients: two share a zone and hear of each other's fault,
// the third hears nothing; restarts withdraw nothing.
func TestThreeClientsAndAReflector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		auth := newPassword("password1")
		r := startReflector(t, &f, auth, 1, inoftest.ThreeZones, nil)
		var cs []*clientNode
		for i := range 3 {
			cs = append(cs, startClient(t, &f, auth, inoftest.DevID(i), 1, inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(i), "p1")))
		}
		after(time.Second)
		want := func(step string, i, hosts, faults int) {
			t.Helper()
			if h, fs := cs[i].knows(); h != hosts || fs != faults {
				t.Errorf("%s: client %d knows %d hosts and %d faults, want %d and %d", step, i, h, fs, hosts, faults)
			}
		}
		for i, h := range []int{1, 1, 0} {
			want("start", i, h, 0)
			if !cs[i].client.Synced() {
				t.Errorf("client %d is not synced", i)
			}
		}
		cs[0].wait(func() {
			at := time.Now()
			cs[0].client.SetDown("p1", []netip.Addr{inoftest.HostIP(0)}, zone.Down{Why: snsd.ReasonLinkDown, Since: at})
			cs[0].client.MarkFault(at)
			if err := cs[0].peers.Deliver(cs[0].client.Flush(at)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		want("fault", 1, 1, 1)
		want("fault", 2, 0, 0)
		cs[1].wait(func() {
			a := cs[1].applied[len(cs[1].applied)-1]
			if a.Origin != inoftest.DevID(0) || a.From != inoftest.ReflID || !a.FaultAt.Equal(time.Now()) || a.ReflectedAt.IsZero() {
				t.Errorf("stamps of the fault: %+v", a)
			}
		})

		for i := range cs {
			cs[i].withdrawn()
		}
		none := func(step string) {
			t.Helper()
			for i := range cs {
				if h, fs, z := cs[i].withdrawn(); h+fs+z > 0 {
					t.Errorf("%s: client %d withdrew %d hosts, %d faults, %d zones", step, i, h, fs, z)
				}
			}
		}
		known := r.refl.KnownDevices()
		r.stop()
		after(30 * time.Second)
		r = startReflector(t, &f, auth, 2, inoftest.ThreeZones, known)
		after(20 * time.Second)
		none("reflector restarted")
		want("reflector restarted", 1, 1, 1)
		for i := range cs {
			if info := cs[i].dialer.Info(); info.State != StateEstablished || info.Reconnects == 0 {
				t.Errorf("client %d: %+v", i, info)
			}
		}

		cs[0].stop()
		after(time.Minute)
		cs[0] = startPrepared(t, &f, auth, inoftest.DevID(0), 2, func(c *client.Client) {
			c.PutHost(inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p1"))
			c.SetDown("p1", []netip.Addr{inoftest.HostIP(0)}, zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0})
		})
		after(10 * time.Second)
		none("client restarted")
		want("client restarted", 0, 1, 0)
		want("client restarted", 1, 1, 1)

		// The third device never comes back: it hears of it when the grace time is over.
		cs[0].stop()
		after(wire.DefaultGrace - time.Second)
		r.wait(func() {})
		want("in grace", 1, 1, 1)
		after(2 * time.Second)
		r.wait(func() {}) // Tick
		synctest.Wait()
		want("after grace", 1, 0, 0)
		cs[1].stop()
		cs[2].stop()
		r.stop()
		if r.err != nil {
			t.Error(r.err)
		}
	})
}

func TestWrongPasswordThenCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		right, wrong := newPassword("password1"), newPassword("password2")
		r := startReflector(t, &f, right, 1, inoftest.ThreeZones, nil)
		c := startClient(t, &f, wrong, inoftest.DevID(0), 1)
		after(time.Minute)
		info := c.dialer.Info()
		if info.State == StateEstablished || !strings.Contains(info.LastError, "authentication failed") {
			t.Errorf("with a wrong password: %+v", info)
		}
		n, s := c.dialer.Counters(), r.server.Counters()
		if n.Dials < 10 || n.Dials > 30 || n.NotifiedByPeer == 0 || s.AuthFailed == 0 || s.Established != 0 {
			t.Errorf("after a minute: %+v and %+v", n, s)
		}
		wrong.set("password1")
		after(BackoffMax)
		if info := c.dialer.Info(); info.State != StateEstablished || info.Device != inoftest.ReflID {
			t.Errorf("with the right password: %+v", info)
		}
		c.stop()
		r.stop()
	})
}

// rawPeer speaks for itself on a connection to the server.
func rawPeer(t *testing.T, f *fabricNet) net.Conn {
	t.Helper()
	c, err := f.dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStrangersAreCountedAndCut(t *testing.T) {
	for _, tt := range []struct {
		name string
		say  []byte
		n    func(TransportCounters) uint64
	}{
		{"http", []byte("GET / HTTP/1.1\r\n\r\n"), func(c TransportCounters) uint64 { return c.NotINOF }},
		{"tls", []byte{0x16, 3, 1, 0, 200, 1, 0, 0, 196}, func(c TransportCounters) uint64 { return c.NotINOF }},
		{"bgp", slices.Repeat([]byte{0xff}, 16), func(c TransportCounters) uint64 { return c.NotINOF }},
		{"nothing", nil, func(c TransportCounters) uint64 { return c.HandshakeTimeout }},
		{"half a header", []byte{0, 0, 0, 50, 1, 1}, func(c TransportCounters) uint64 { return c.HandshakeTimeout }},
		{"oversize", inoftest.AppendHeader(nil, 1<<20, wire.TypeOpen, 0, 0), func(c TransportCounters) uint64 { return c.BadLength }},
		{"version 9", inoftest.Edit(inoftest.AppendHeader(nil, 100, wire.TypeOpen, 0, 0), func(b []byte) []byte { b[4] = 9; return b }), func(c TransportCounters) uint64 { return c.BadVersion }},
		{"unknown type", inoftest.AppendHeader(nil, 16, 77, 0, 0), func(c TransportCounters) uint64 { return c.BadType }},
		{"keepalive first", inoftest.AppendHeader(nil, 16, wire.TypeKeepalive, 0, 1), func(c TransportCounters) uint64 { return c.Unexpected }},
		{"truncated TLV", append(inoftest.AppendHeader(nil, 20, wire.TypeOpen, 0, 0), 1, 0, 0, 9), func(c TransportCounters) uint64 { return c.Malformed }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f fabricNet
				auth := newPassword("password1")
				r := startReflector(t, &f, auth, 1, inoftest.ThreeZones, nil)
				synctest.Wait()
				peer := rawPeer(t, &f)
				go func() { _, _ = peer.Write(tt.say) }()
				var got []byte
				done := make(chan struct{})
				go func() {
					defer close(done)
					buf := make([]byte, 4096)
					for {
						n, err := peer.Read(buf)
						got = append(got, buf[:n]...)
						if err != nil {
							return
						}
					}
				}()
				began := time.Now()
				<-done
				if d := time.Since(began); d > wire.HandshakeTimeout+lingerTime {
					t.Errorf("cut after %v", d)
				}
				m, err := wire.Decode(got)
				if err != nil || m.Type() != wire.TypeNotification {
					t.Errorf("the stranger was told %v, %v", m, err)
				}
				synctest.Wait()
				if c := r.server.Counters(); tt.n(c) != 1 {
					t.Errorf("counters %+v", c)
				}
				_ = peer.Close()
				r.stop()
			})
		})
	}
}

func TestKeepalivesAndHoldTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		auth := newPassword("password1")
		r := startReflector(t, &f, auth, 1, inoftest.ThreeZones, nil)
		c := startClient(t, &f, auth, inoftest.DevID(0), 1)
		after(100 * time.Millisecond)
		before := c.dialer.Info()
		after(10 * wire.DefaultKeepalive)
		now := c.dialer.Info()
		if in, out := now.MsgIn-before.MsgIn, now.MsgOut-before.MsgOut; in < 9 || in > 11 || out < 9 || out > 11 {
			t.Errorf("in 30 s: %d messages in, %d out, want 10 keepalives", in, out)
		}
		if now.State != StateEstablished || !now.Since.Equal(before.Since) {
			t.Errorf("%+v", now)
		}
		// The path from the client breaks without a word: its reflector notices
		// after the hold time.
		f.broken.Store(true)
		after(wire.DefaultHold + time.Second)
		if n := r.server.Counters(); n.HoldExpired != 1 {
			t.Errorf("counters %+v", n)
		}
		f.broken.Store(false)
		after(BackoffMax)
		if n := r.server.Counters(); n.Established != 2 {
			t.Errorf("the client is not back: %+v", n)
		}
		c.stop()
		r.stop()
	})
}

func TestFloodKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		auth := newPassword("password1")
		r := startReflector(t, &f, auth, 1, inoftest.ThreeZones, nil)
		a := startClient(t, &f, auth, inoftest.DevID(0), 1)
		after(time.Second)
		f.mu.Lock()
		f.l.mu.Lock()
		f.l.fail = []error{errors.New("too many open files"), errors.New("too many open files")}
		f.l.mu.Unlock()
		f.mu.Unlock()
		var conns []net.Conn
		for range 3 * DefaultMaxPending {
			conns = append(conns, rawPeer(t, &f))
		}
		b := startClient(t, &f, auth, inoftest.DevID(1), 1)
		after(time.Second)
		n := r.server.Counters()
		if n.PendingRefused < 2*DefaultMaxPending || n.AcceptErrors != 2 {
			t.Errorf("counters %+v", n)
		}
		for i, c := range []*clientNode{a, b} {
			if info := c.dialer.Info(); info.State != StateEstablished || info.Reconnects != 0 {
				t.Errorf("client %d: %+v", i, info)
			}
		}
		for _, c := range conns {
			_ = c.Close()
		}
		a.stop()
		b.stop()
		r.stop()
	})
}
