package inof

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// memNet is a network of one listener in memory.
type memNet struct {
	accept chan net.Conn
	mu     sync.Mutex
	fail   []error // what the next Accepts give
	done   chan struct{}
	once   sync.Once
}

func newMemNet() *memNet { return &memNet{accept: make(chan net.Conn), done: make(chan struct{})} }

func (n *memNet) Accept() (net.Conn, error) {
	n.mu.Lock()
	if len(n.fail) > 0 {
		err := n.fail[0]
		n.fail = n.fail[1:]
		n.mu.Unlock()
		return nil, err
	}
	n.mu.Unlock()
	select {
	case c := <-n.accept:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}
func (n *memNet) Close() error { n.once.Do(func() { close(n.done) }); return nil }
func (n *memNet) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 250), Port: DefaultPort}
}

func (n *memNet) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case n.accept <- far:
		return near, nil
	case <-n.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fabricNet is a network that a reflector comes to and leaves.
type fabricNet struct {
	mu     sync.Mutex
	l      *memNet
	broken atomic.Bool // what clients write is lost
	tcp    bool        // over real sockets
	real   net.Listener
}

// lossy is a client's end of a connection over a path that can break.
type lossy struct {
	net.Conn
	broken *atomic.Bool
}

func (c lossy) Write(b []byte) (int, error) {
	if c.broken.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (f *fabricNet) listen(context.Context) (net.Listener, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tcp {
		var err error
		f.real, err = net.Listen("tcp", "127.0.0.1:0")
		return f.real, err
	}
	f.l = newMemNet()
	return f.l, nil
}

func (f *fabricNet) dial(ctx context.Context) (net.Conn, error) {
	f.mu.Lock()
	l, addr := f.l, f.real
	f.mu.Unlock()
	if addr != nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr.Addr().String())
	}
	if l == nil {
		return nil, errors.New("connection refused")
	}
	c, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	return lossy{c, &f.broken}, nil
}

// password is an Auth that changes while sessions come and go.
type password struct {
	mu sync.Mutex
	a  Auth
}

func newPassword(s string) *password { return &password{a: hmacAuth(s)} }
func (p *password) get() Auth        { p.mu.Lock(); defer p.mu.Unlock(); return p.a }
func (p *password) set(s string)     { p.mu.Lock(); defer p.mu.Unlock(); p.a = hmacAuth(s) }

// reflNode is a reflector with its server, owned by one goroutine.
type reflNode struct {
	refl   *Reflector
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
	if n.refl, err = NewReflector(reflID, epoch, set, ReflectorConfig{Known: known}, time.Now()); err != nil {
		t.Fatal(err)
	}
	var peers Peers
	n.peers = &peers
	handle := func(ev PeerEvent) {
		var out []Delivery
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
		TransportConfig: TransportConfig{Self: reflID, Roles: RoleReflector, Epoch: epoch, Auth: auth.get, Sink: func(ev PeerEvent) {
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
	client  *Client
	dialer  *Dialer
	peers   Peers
	do      chan func()
	stop    func()
	applied []Applied
	hosts   map[zone.HostKey]bool // that it holds
	faults  map[portKey]bool
}

func startClient(t *testing.T, f *fabricNet, auth *password, dev netip.Addr, epoch uint64, hosts ...zone.Host) *clientNode {
	t.Helper()
	return startPrepared(t, f, auth, dev, epoch, func(c *Client) {
		for _, h := range hosts {
			c.PutHost(h)
		}
	})
}

// startPrepared starts a client that knows its records before its first session.
func startPrepared(t *testing.T, f *fabricNet, auth *password, dev netip.Addr, epoch uint64, prepare func(*Client)) *clientNode {
	t.Helper()
	n := &clientNode{client: NewClient(dev, epoch), do: make(chan func()), hosts: map[zone.HostKey]bool{}, faults: map[portKey]bool{}}
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
				n.hosts[h.Host.HostKey] = h.Op == Put
			}
			for _, f := range a.Faults {
				n.faults[portKey{f.Device, f.Port}] = f.Op == Put
			}
		}
	}
	var err error
	n.dialer, err = NewDialer(DialerConfig{
		TransportConfig: TransportConfig{Self: dev, Roles: RoleClient, Epoch: epoch, Auth: auth.get, Sink: func(ev PeerEvent) {
			n.wait(func() { handle(ev) })
		}},
		Name: "reflector", Expect: reflID, Dial: f.dial,
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
				if h.Op == Withdraw {
					hosts++
				}
			}
			for _, f := range a.Faults {
				if f.Op == Withdraw {
					faults++
				}
			}
			for _, z := range a.Zones {
				if z.Op == Withdraw {
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

// A reflector and three clients: two share a zone and hear of each other's fault,
// the third hears nothing; restarts withdraw nothing.
func TestThreeClientsAndAReflector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		auth := newPassword("password1")
		r := startReflector(t, &f, auth, 1, threeZones, nil)
		var cs []*clientNode
		for i := range 3 {
			cs = append(cs, startClient(t, &f, auth, devID(i), 1, hostAt(hostIP(i), devID(i), "p1")))
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
			cs[0].client.PutFault(FaultRecord{Port: "p1", Why: snsd.ReasonLinkDown, Since: at, Addrs: []netip.Addr{hostIP(0)}})
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
			if a.Origin != devID(0) || a.From != reflID || !a.FaultAt.Equal(time.Now()) || a.ReflectedAt.IsZero() {
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
		r = startReflector(t, &f, auth, 2, threeZones, known)
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
		cs[0] = startPrepared(t, &f, auth, devID(0), 2, func(c *Client) {
			c.PutHost(hostAt(hostIP(0), devID(0), "p1"))
			c.PutFault(FaultRecord{Port: "p1", Why: snsd.ReasonLinkDown, Since: t0, Addrs: []netip.Addr{hostIP(0)}})
		})
		after(10 * time.Second)
		none("client restarted")
		want("client restarted", 0, 1, 0)
		want("client restarted", 1, 1, 1)

		// The third device never comes back: it hears of it when the grace time is over.
		cs[0].stop()
		after(DefaultGrace - time.Second)
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
		r := startReflector(t, &f, right, 1, threeZones, nil)
		c := startClient(t, &f, wrong, devID(0), 1)
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
		if info := c.dialer.Info(); info.State != StateEstablished || info.Device != reflID {
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
		{"oversize", appendHeader(nil, 1<<20, TypeOpen, 0, 0), func(c TransportCounters) uint64 { return c.BadLength }},
		{"version 9", edit(appendHeader(nil, 100, TypeOpen, 0, 0), func(b []byte) []byte { b[4] = 9; return b }), func(c TransportCounters) uint64 { return c.BadVersion }},
		{"unknown type", appendHeader(nil, 16, 77, 0, 0), func(c TransportCounters) uint64 { return c.BadType }},
		{"keepalive first", appendHeader(nil, 16, TypeKeepalive, 0, 1), func(c TransportCounters) uint64 { return c.Unexpected }},
		{"truncated TLV", append(appendHeader(nil, 20, TypeOpen, 0, 0), 1, 0, 0, 9), func(c TransportCounters) uint64 { return c.Malformed }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f fabricNet
				auth := newPassword("password1")
				r := startReflector(t, &f, auth, 1, threeZones, nil)
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
				if d := time.Since(began); d > HandshakeTimeout+lingerTime {
					t.Errorf("cut after %v", d)
				}
				m, err := Decode(got)
				if err != nil || m.Type() != TypeNotification {
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
		r := startReflector(t, &f, auth, 1, threeZones, nil)
		c := startClient(t, &f, auth, devID(0), 1)
		after(100 * time.Millisecond)
		before := c.dialer.Info()
		after(10 * DefaultKeepalive)
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
		after(DefaultHold + time.Second)
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
		r := startReflector(t, &f, auth, 1, threeZones, nil)
		a := startClient(t, &f, auth, devID(0), 1)
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
		b := startClient(t, &f, auth, devID(1), 1)
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
