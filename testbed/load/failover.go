package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
)

// FailoverOptions say how the return of sessions is measured, with a reflector of one's
// own and the dialers of the daemon.
type FailoverOptions struct {
	Options
	Clients  int
	ZoneSize int
	// Settle is how long sessions live before they are lost: as long as it takes for
	// their back-off to begin anew, unless it is set.
	Settle time.Duration
}

// Return is when sessions were back, from the moment they were lost, in milliseconds.
type Return struct {
	First  float64 `json:"first_ms"`
	Median float64 `json:"median_ms"`
	Last   float64 `json:"last_ms"`
}

// FailoverResult is what came out.
type FailoverResult struct {
	Machine Machine `json:"machine"`
	Auth    string  `json:"auth"`
	Clients int     `json:"clients"`
	// Cut: every connection breaks at once, the reflector goes on. The sessions resume.
	CutUp   Return `json:"cut_established"`
	CutSync Return `json:"cut_synced"`
	Resumed int    `json:"cut_resumed"` // sessions in which only what was missed was sent
	// Killed: the reflector's process is killed and started again at once.
	Restart  float64 `json:"kill_listens_ms"` // until it listened again
	KillUp   Return  `json:"kill_established"`
	KillSync Return  `json:"kill_synced"`
}

// failover is one run.
type failover struct {
	FailoverOptions
	plan plan
	own  *ownReflector

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	lost  time.Time
	up    map[netip.Addr]time.Duration // since lost
	sync  map[netip.Addr]time.Duration
	res   int
	seen  map[netip.Addr]*wire.Resume
	seq   map[netip.Addr]uint64
}

// Failover measures how long sessions are away when all connections break, and when
// the reflector dies.
func Failover(ctx context.Context, opt FailoverOptions) (*FailoverResult, error) {
	f := &failover{FailoverOptions: opt, plan: plan{clients: opt.Clients, zoneSize: opt.ZoneSize, origins: 1, devices: opt.Devices, hosts: opt.Hosts}, conns: map[net.Conn]struct{}{},
		seen: map[netip.Addr]*wire.Resume{}, seq: map[netip.Addr]uint64{}}
	if err := errors.Join(f.plan.check(), raiseFiles(opt.Clients)); err != nil {
		return nil, err
	}
	if opt.Settle == 0 {
		opt.Settle = link.BackoffReset + time.Second
	}
	res := &FailoverResult{Machine: machine(), Auth: opt.Auth, Clients: opt.Clients}
	set := f.plan.zones()
	set.Zones = set.Zones[:len(set.Zones)-1] // not the one of all
	var err error
	if f.own, err = startReflector(ctx, opt.Process, opt.Auth, set); err != nil {
		return nil, err
	}
	defer f.own.close()
	f.begin(time.Now())
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	f.say("%d clients", opt.Clients)
	epoch := epochOf(time.Now())
	for i := range opt.Clients {
		d, err := f.dialer(i, epoch)
		if err != nil {
			return nil, err
		}
		wg.Go(func() { _ = d.Run(ctx) })
	}
	if err := f.back(ctx); err != nil {
		return nil, err
	}
	if err := f.settle(ctx, opt.Settle); err != nil {
		return nil, err
	}
	f.say("every connection breaks")
	f.begin(time.Now())
	f.cut()
	if err := f.back(ctx); err != nil {
		return nil, err
	}
	res.CutUp, res.CutSync, res.Resumed = f.figures()
	if err := f.settle(ctx, opt.Settle); err != nil {
		return nil, err
	}
	f.say("the reflector is killed and started again")
	f.begin(time.Now())
	killed := time.Now()
	f.own.kill()
	if err := f.own.start(ctx); err != nil {
		return nil, err
	}
	res.Restart = ms(time.Since(killed))
	if err := f.back(ctx); err != nil {
		return nil, err
	}
	res.KillUp, res.KillSync, _ = f.figures()
	return res, nil
}

// begin starts the clock.
func (f *failover) begin(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost, f.res = now, 0
	f.up, f.sync = map[netip.Addr]time.Duration{}, map[netip.Addr]time.Duration{}
}

// cut breaks every connection without a word.
func (f *failover) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for nc := range f.conns {
		nc.Close()
	}
	clear(f.conns)
}

// back waits until every client is synchronized.
func (f *failover) back(ctx context.Context) error {
	left := f.left("clients")
	for {
		f.mu.Lock()
		n, lost := len(f.sync), f.lost
		f.mu.Unlock()
		if n == f.Clients {
			return nil
		}
		left(n, f.Clients)
		if time.Since(lost) > 3*time.Minute {
			return fmt.Errorf("%d of %d clients are synchronized after 3 minutes", n, f.Clients)
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// settle waits, and tells how long.
func (f *failover) settle(ctx context.Context, d time.Duration) error {
	left := f.left("seconds until sessions have settled")
	for n := range int(d / time.Second) {
		left(n, int(d/time.Second))
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return pause(ctx, d%time.Second)
}

func (f *failover) figures() (up, synced Return, resumed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	figure := func(m map[netip.Addr]time.Duration) Return {
		var ds []time.Duration
		for _, d := range m {
			ds = append(ds, d)
		}
		q := quantiles(ds)
		return Return{q.Min, q.Median, q.Max}
	}
	return figure(f.up), figure(f.sync), f.res
}

// dialer is the transport of one client, which has one host.
func (f *failover) dialer(i int, epoch uint64) (*link.Dialer, error) {
	dev := f.Devices.at(i)
	auth, _, err := f.own.auth(dev)
	if err != nil {
		return nil, err
	}
	return link.NewDialer(link.DialerConfig{
		TransportConfig: link.TransportConfig{
			Self: dev, Roles: wire.RoleClient, Epoch: epoch, Auth: func() link.Auth { return auth },
			Resume: func(netip.Addr) *wire.Resume {
				f.mu.Lock()
				defer f.mu.Unlock()
				return f.seen[dev]
			},
			Sink: func(ev link.PeerEvent) { f.event(i, epoch, ev) },
		},
		Name: f.own.Addr.String(),
		Dial: func(ctx context.Context) (net.Conn, error) {
			nc, err := (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", f.own.Addr.String())
			if err == nil {
				f.mu.Lock()
				f.conns[nc] = struct{}{}
				f.mu.Unlock()
			}
			return nc, err
		},
	})
}

// event does what a client does: it tells of its host, and keeps what it has seen.
func (f *failover) event(i int, epoch uint64, ev link.PeerEvent) {
	dev := f.Devices.at(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	at := time.Since(f.lost)
	switch m := ev.Msg.(type) {
	case nil:
		if ev.Kind != link.PeerUp {
			return
		}
		if _, had := f.up[dev]; !had {
			f.up[dev] = at
		}
		if ev.Seen != nil && ev.Seen.Epoch == epoch { // it has all that there is
			_ = ev.Peer.Send(&wire.EndOfSync{Epoch: epoch, Seq: f.seq[dev], Resumed: true})
			return
		}
		f.seq[dev]++
		u := &wire.Update{Origin: dev, Epoch: epoch, Seq: f.seq[dev], SentAt: time.Now(), Hosts: []wire.HostRecord{putHost(f.Hosts.at(i), dev, portZone, f.lost)}}
		_ = ev.Peer.Send(u)
		_ = ev.Peer.Send(&wire.EndOfSync{Epoch: epoch, Seq: f.seq[dev]})
	case *wire.Update:
		if m.Partial {
			return
		}
		f.seen[dev] = &wire.Resume{Epoch: m.Pos.Epoch, Seq: m.Pos.Seq}
		if !m.Pos.Known() {
			f.seen[dev] = &wire.Resume{Epoch: m.Epoch, Seq: m.Seq}
		}
	case *wire.EndOfSync:
		f.seen[dev] = &wire.Resume{Epoch: m.Epoch, Seq: m.Seq}
		if m.Resumed {
			f.res++
		}
		if _, had := f.sync[dev]; !had {
			f.sync[dev] = at
		}
	}
}
