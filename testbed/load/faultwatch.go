package load

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// faultPrefix begins the names of ports that have faults.
const faultPrefix = "faulty"

// board is where readers say that they have heard of a fault of a port. Faults come by the clock,
// whether or not those before have arrived: else one that is late would keep away others that had
// been late too.
type board struct {
	base  time.Time
	of    int // readers, which are told of each
	ports []boarded
	open  atomic.Int64 // faults that not all have heard of
}

// boarded is a port on it.
type boarded struct {
	turn atomic.Uint32          // of its faults; 0: it had none
	left atomic.Int32           // readers that have not heard of it
	at   atomic.Int64           // when the last had, from base on
	last atomic.Pointer[[]byte] // the message that told it
}

// watch is what one reader has heard of.
type watch struct {
	board *board
	seen  []uint32 // by port: the last turn
}

func newBoard(ports, readers int) *board {
	return &board{base: time.Now(), of: readers, ports: make([]boarded, ports)}
}

func (b *board) watch() *watch { return &watch{board: b, seen: make([]uint32, len(b.ports))} }

// begins notes that a port has a fault now.
func (b *board) begins(port int) {
	p := &b.ports[port]
	p.left.Store(int32(b.of))
	b.open.Add(1)
	p.turn.Add(1)
}

// see looks at the value of a down record: reason, time, device, port; m is its message.
func (w *watch) see(v, m []byte) {
	const device = 1 + 8
	at := device + 1 + 4
	if v[device] == 6 {
		at = device + 1 + 16
	}
	if v[0] == 0 { // it has recovered
		return
	}
	name, ok := bytes.CutPrefix(v[at+1:at+1+int(v[at])], []byte(faultPrefix))
	if !ok {
		return
	}
	n, err := strconv.Atoi(string(name))
	if err != nil || n >= len(w.seen) {
		return
	}
	p := &w.board.ports[n]
	turn := p.turn.Load()
	if w.seen[n] == turn {
		return
	}
	if w.seen[n] = turn; p.left.Add(-1) == 0 {
		p.at.Store(int64(time.Since(w.board.base)))
		m = bytes.Clone(m)
		p.last.Store(&m)
		w.board.open.Add(-1)
	}
}

// lateLimit is how long a fault may take.
const lateLimit = time.Minute

// faults lets so many faults happen, so many a second, each at the next port, and gives what
// each took until all had heard of it. Ports recover half a turn of all ports later.
func (h *hostile) faults(ctx context.Context, count int) ([]faultTime, error) {
	pause := time.Second / time.Duration(h.Rate)
	ports := len(h.board.ports)
	all, port := make([]faultTime, count), make([]int, count)
	down := make([]int, 0, count) // ports that are to recover, the oldest first
	up := func() error {
		p := down[0]
		down = down[1:]
		return h.fault(p, false)
	}
	t := time.NewTimer(0)
	defer t.Stop()
	<-t.C
	first := time.Now()
	at := func(due time.Time) error {
		if d := time.Until(due); d > 0 {
			t.Reset(d)
			select {
			case <-t.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	for i := range count {
		due := first.Add(time.Duration(i) * pause)
		if err := at(due); err != nil {
			return nil, err
		}
		p := h.nth % ports
		h.nth++
		if err := h.heard(ctx, p); err != nil {
			return nil, err
		}
		port[i], down = p, append(down, p)
		h.board.begins(p)
		all[i].all = time.Since(h.board.base)
		if err := h.fault(p, true); err != nil {
			return nil, err
		}
		if len(down) > ports/2 {
			if err := at(due.Add(pause / 2)); err != nil {
				return nil, err
			}
			if err := up(); err != nil {
				return nil, err
			}
		}
		if i >= ports/2 { // before the port has its next
			if err := h.took(ctx, port[i-ports/2], &all[i-ports/2]); err != nil {
				return nil, err
			}
		}
	}
	for i := max(0, count-ports/2); i < count; i++ {
		if err := h.took(ctx, port[i], &all[i]); err != nil {
			return nil, err
		}
	}
	for len(down) > 0 {
		if err := up(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// faultTime is how long a fault took until the last had it, and on its way to that one: until the
// reflector had read it, until it had made the message that tells it, and from there.
type faultTime struct{ all, in, through, out time.Duration }

// took puts how long a fault took in place of when it began.
func (h *hostile) took(ctx context.Context, port int, f *faultTime) error {
	if err := h.heard(ctx, port); err != nil {
		return err
	}
	p := &h.board.ports[port]
	at := time.Duration(p.at.Load())
	f.all = at - f.all
	m, err := wire.Decode(*p.last.Load())
	if err != nil {
		return fmt.Errorf("what tells the fault of %s%05d: %w", faultPrefix, port, err)
	}
	u := m.(*wire.Update)
	f.in, f.through, f.out = u.ReflectorAt.Sub(u.FaultAt), u.ReflectedAt.Sub(u.ReflectorAt), h.board.base.Add(at).Sub(u.ReflectedAt)
	return nil
}

// heard waits until all have heard of the last fault of a port.
func (h *hostile) heard(ctx context.Context, port int) error {
	p := &h.board.ports[port]
	for began := time.Now(); p.left.Load() > 0; {
		if err := h.crew.lost(); err != nil {
			return err
		}
		if time.Since(began) > lateLimit {
			return fmt.Errorf("%d clients have not heard of the fault of %s%05d within %v", p.left.Load(), faultPrefix, port, lateLimit)
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
