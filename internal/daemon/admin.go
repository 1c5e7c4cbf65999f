package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/openinof/inof/device"
)

// admin shuts and opens ports, in the order in which that was decided, outside of
// the owner goroutine: the kernel may take its time.
type admin struct {
	do func(port string, up bool)

	mu    sync.Mutex
	queue []adminJob
	kick  chan struct{}
}

type adminJob struct {
	port   string
	up     bool
	before time.Time // not before
}

// shutLead is how long a port that is shut because of a fault stays open still: the
// update to the reflectors and the notices to local hosts are on their way then, but
// a carrier is lost within microseconds.
const shutLead = 10 * time.Millisecond

func newAdmin(do func(port string, up bool)) *admin {
	return &admin{do: do, kick: make(chan struct{}, 1)}
}

// put queues one change; it never waits.
func (a *admin) put(port string, up bool, now time.Time) {
	j := adminJob{port: port, up: up, before: now}
	if !up {
		j.before = now.Add(shutLead)
	}
	a.mu.Lock()
	a.queue = append(a.queue, j)
	a.mu.Unlock()
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

func (a *admin) take() (adminJob, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		return adminJob{}, false
	}
	j := a.queue[0]
	a.queue = a.queue[1:]
	return j, true
}

// run does what is queued until ctx ends.
func (a *admin) run(ctx context.Context, now func() time.Time) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		j, ok := a.take()
		if !ok {
			select {
			case <-a.kick:
				continue
			case <-ctx.Done():
				return
			}
		}
		timer.Reset(max(0, j.before.Sub(now())))
		select {
		case <-timer.C:
			a.do(j.port, j.up)
		case <-ctx.Done():
			return
		}
	}
}

// SetAdmin implements device.Actions.
func (d *Device) SetAdmin(port string, up bool) { d.admin.put(port, up, d.now()) }

func (d *Device) setAdmin(port string, up bool) {
	if err := d.dp.SetAdmin(port, up); err != nil {
		_ = d.Do(context.Background(), func(c *device.Core, now time.Time) {
			d.adminErrors++
			c.Complain(now, "admin", port, err)
		})
	}
}
