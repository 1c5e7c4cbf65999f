package load

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// floodHosts is how many hosts a device that floods has at most.
const floodHosts = 4096

// flooder is a device that sends without end.
type flooder struct {
	*client
	plan  *plan
	first int // of its hosts
	epoch uint64
	n     int // messages made
}

func (f *flooder) host(i int) netip.Addr { return f.plan.burstHost(f.first + i%floodHosts) }

// floods are the ways; make gives the next message, nil: it is sessions that begin and end.
var floods = []struct {
	name, what string
	make       func(f *flooder) wire.Message
}{
	{"hosts", "messages of one host that changes", func(f *flooder) wire.Message {
		u := f.update(f.epoch)
		u.Hosts = []wire.HostRecord{putHost(f.host(f.n/8), f.dev, portAll, time.Now())}
		return u
	}},
	{"losses", "messages of one host that goes or comes back", func(f *flooder) wire.Message {
		u := f.update(f.epoch)
		h := putHost(f.host(0), f.dev, portAll, time.Now())
		if f.n%2 == 1 {
			h.Op, h.Why = wire.Withdraw, snsd.ReasonAgedOut
		}
		u.Hosts = []wire.HostRecord{h}
		return u
	}},
	{"syncs", "messages of 4,000 hosts that change", func(f *flooder) wire.Message {
		u := f.update(f.epoch)
		for i := range 4000 {
			u.Hosts = append(u.Hosts, putHost(f.host(i), f.dev, portAll, time.Now()))
		}
		return u
	}},
	{"lists", "faults of 400 ports with 16,384 addresses each", func(f *flooder) wire.Message {
		u := f.update(f.epoch)
		list := make([]netip.Addr, wire.MaxDownAddrs)
		for i := range list {
			list[i] = f.plan.burstHost(i)
		}
		u.Downs = []wire.DownRecord{{Device: f.dev, Port: fmt.Sprintf("p%d", f.n%400), Down: zone.Down{Why: snsd.ReasonLinkDown, Since: time.Now()}, Addrs: list}}
		return u
	}},
	{"flaps", "a port with 1,000 hosts that fails and recovers", func(f *flooder) wire.Message {
		u := f.update(f.epoch)
		if f.n == 0 {
			for i := range 1000 {
				u.Hosts = append(u.Hosts, putHost(f.host(i), f.dev, portAll, time.Now()))
			}
			return u
		}
		r := wire.DownRecord{Device: f.dev, Port: portAll}
		if f.n%2 == 1 {
			r.Down = zone.Down{Why: snsd.ReasonLinkDown, Since: time.Now()}
		}
		for i := range 1000 {
			r.Addrs = append(r.Addrs, f.host(i))
		}
		u.Downs = []wire.DownRecord{r}
		return u
	}},
	{"ends", "an End-of-Sync after the other", func(f *flooder) wire.Message { return &wire.EndOfSync{Epoch: f.epoch, Seq: f.seq} }},
	{"keepalives", "a keepalive after the other", func(*flooder) wire.Message { return &wire.Keepalive{} }},
	{"sessions", "sessions that begin, say 1,000 hosts and end, one after the other", nil},
}

// flood is one that goes on.
type flood struct {
	sent atomic.Uint64 // messages; of "sessions": sessions that were established
	stop func()        // what is on its way is dropped
}

// startFlood lets device dev, which is nobody else's, send flood i.
func startFlood(ctx context.Context, t *Target, p *plan, i, dev int) (*flood, error) {
	f := &flood{}
	id, first := p.devices.at(p.clients+p.origins+dev), dev*floodHosts
	if floods[i].make == nil {
		f.beginAndEnd(ctx, t, p, id, first)
		return f, nil
	}
	epoch := epochOf(time.Now())
	c, err := connect(ctx, t, id, 0, epoch, newCrowd())
	if err != nil {
		return nil, err
	}
	go c.run()
	if err := c.send(&wire.EndOfSync{Epoch: epoch}); err != nil {
		return nil, err
	}
	fl := &flooder{client: c, plan: p, first: first, epoch: epoch}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c.send(floods[i].make(fl)) == nil {
			fl.n++
			f.sent.Add(1)
		}
	}()
	f.stop = func() {
		c.reset()
		<-done
	}
	return f, nil
}

// reset ends a session without a word, and what is on its way with it.
func (c *client) reset() {
	nc := c.nc
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = t.NetConn()
	}
	_ = nc.(*net.TCPConn).SetLinger(0)
	nc.Close()
	<-c.done
}

// dialsAtOnce is how many connections of one device are on their way at a time.
const dialsAtOnce = 4

// beginAndEnd lets a device begin a session and end it, without end.
func (f *flood) beginAndEnd(ctx context.Context, t *Target, p *plan, id netip.Addr, first int) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range dialsAtOnce {
		wg.Go(func() {
			for ctx.Err() == nil {
				epoch := epochOf(time.Now())
				c, err := connect(ctx, t, id, 0, epoch, newCrowd())
				if err != nil {
					continue // refused: it comes again at once
				}
				f.sent.Add(1)
				go c.run()
				u := c.update(epoch)
				for i := range 1000 {
					u.Hosts = append(u.Hosts, putHost(p.burstHost(first+i), id, portAll, time.Now()))
				}
				_ = c.send(u, &wire.EndOfSync{Epoch: epoch, Seq: c.seq})
				c.goodbye()
			}
		})
	}
	f.stop = func() {
		cancel()
		wg.Wait()
	}
}
