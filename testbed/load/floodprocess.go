package load

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/testbed/pki"
)

// A device that floods, and the clients that hear of it and are not measured, are other machines
// in a fabric. Here they are a process that gives way to all others: it runs on one processor, when
// nobody else has anything to do there.

// floodOf is a request to that process: join has devices of a plan come in; flood has one of them
// begin to send, and burn has the process take as much processor time as a flood did, until rest.
type floodOf struct {
	Addr     netip.AddrPort `json:"addr,omitzero"`
	Auth     string         `json:"auth,omitempty"`
	Clients  int            `json:"clients,omitempty"`
	Measured int            `json:"measured,omitempty"` // the first clients, which are elsewhere
	ZoneSize int            `json:"zone_size,omitempty"`
	Origins  int            `json:"origins,omitempty"`
	Burst    int            `json:"burst,omitempty"`
	Devices  Range          `json:"devices,omitzero"`
	Hosts    Range          `json:"hosts,omitzero"`
	Kind     string         `json:"kind,omitempty"`
	Device   int            `json:"device,omitempty"`
	CPU      time.Duration  `json:"cpu,omitempty"`  // of a burn
	Over     time.Duration  `json:"over,omitempty"` // for so long
}

// flooding is the process.
type flooding struct {
	dir    string
	where  string
	target *Target
	plan   plan
	crew   *crew
	flood  *flood
	burns  func() // ends a burn
}

func floodProcess(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	f := &flooding{dir: dir}
	var err error
	if f.where, err = stepAside(); err != nil {
		return err
	}
	err = answers(in, out, func(q request) (reply, error) { return f.answer(ctx, q) })
	f.rest()
	if f.crew != nil {
		f.crew.close()
	}
	return err
}

func (f *flooding) answer(ctx context.Context, q request) (r reply, err error) {
	switch {
	case q.Op == "rest":
		r.Sent = f.rest()
	case q.Flood == nil:
		err = fmt.Errorf("%q is none of join, flood, burn, rest, or says nothing of it", q.Op)
	case q.Op == "join":
		err = f.join(ctx, q.Flood)
	case q.Op == "burn":
		f.burns = burn(q.Flood.CPU, q.Flood.Over)
	case q.Op == "flood":
		for i := range floods {
			if floods[i].name == q.Flood.Kind {
				f.flood, err = startFlood(ctx, f.target, &f.plan, i, q.Flood.Device)
			}
		}
	}
	if err == nil {
		r.CPU, err = processorTime(unix.RUSAGE_SELF)
	}
	r.Where = f.where
	return r, err
}

// join brings the clients that are not measured in, with their hosts.
func (f *flooding) join(ctx context.Context, q *floodOf) (err error) {
	f.plan = plan{clients: q.Clients, zoneSize: q.ZoneSize, origins: q.Origins, burst: q.Burst, devices: q.Devices, hosts: q.Hosts}
	if f.target, err = targetIn(f.dir, q.Addr, q.Auth); err != nil {
		return err
	}
	if q.Measured == q.Clients {
		return nil
	}
	if f.crew, err = assemble(ctx, f.target, q.Devices.list(q.Measured, q.Clients-q.Measured), nil); err != nil {
		return err
	}
	for i, c := range f.crew.all {
		u := c.update(f.crew.epoch)
		u.Hosts = []wire.HostRecord{putHost(q.Hosts.at(q.Measured+i), c.dev, portZone, time.Now())}
		if err := c.send(u); err != nil {
			return err
		}
	}
	return nil
}

// targetIn is the reflector of a benchmark whose directory is given.
func targetIn(dir string, addr netip.AddrPort, auth string) (*Target, error) {
	mode, err := wire.ParseAuthMode(auth)
	if err != nil {
		return nil, err
	}
	t := &Target{Addr: addr, Auth: mode}
	switch mode {
	case wire.AuthHMAC:
		t.Password, err = link.NewPassword([]byte(ownPassword))
	case wire.AuthTLS:
		var p *pki.CA
		if p, err = pki.Read(dir); err == nil {
			t.Credentials = p.Credentials
		}
	}
	return t, err
}

// rest ends what goes on, and tells how many messages a flood has sent.
func (f *flooding) rest() (sent uint64) {
	if f.flood != nil {
		f.flood.stop()
		sent, f.flood = f.flood.sent.Load(), nil
	}
	if f.burns != nil {
		f.burns()
		f.burns = nil
	}
	return sent
}

// burn takes so much processor time, evenly over a time, until it is stopped.
func burn(cpu, over time.Duration) (stop func()) {
	const turn = 2 * time.Millisecond
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		began, took := time.Now(), time.Duration(0)
		for took < cpu {
			select {
			case <-end:
				return
			default:
			}
			if due := time.Duration(float64(took) / float64(cpu) * float64(over)); time.Since(began) < due {
				time.Sleep(due - time.Since(began))
				continue
			}
			for at := time.Now(); time.Since(at) < turn; {
			}
			took += turn
		}
	})
	return func() {
		close(end)
		wg.Wait()
	}
}

// processorTime is what the process has taken so far.
func processorTime(who int) (time.Duration, error) {
	var u unix.Rusage
	err := unix.Getrusage(who, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
