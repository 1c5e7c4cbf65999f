package linux

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// reopenDelay is how long to wait before the link socket is opened again.
const reopenDelay = 100 * time.Millisecond

// reader is the one goroutine that turns link messages into port state and events.
type reader struct {
	d      *Dataplane
	ctx    context.Context
	poll   *poller // nil when polling is off
	frames *sync.WaitGroup
	dump   uint64 // number of the dump that comes next
}

// run reads until the context ends.
func (r *reader) run() {
	r.dump = 1
	if h := r.d.hearing; h != nil {
		r.frames.Go(func() { r.hear(r.ctx, h) })
	}
	r.d.resync(time.Now())
	h := handlers{link: r.link, done: r.dumped, bad: r.bad}
	for r.ctx.Err() == nil {
		err := r.d.current().receive(h)
		switch {
		case err == nil:
		case r.ctx.Err() != nil:
			return
		case errors.Is(err, unix.ENOBUFS):
			r.d.count.lost.Add(1)
			r.d.cfg.Log.Warn("link notifications were lost, reading all links again", "dataplane", r.d.String())
			// Twice: the kernel says once that it drops notifications, and drops more
			// without a word until the socket has been read empty, which the end of
			// the first dump shows.
			r.d.resync(time.Now())
			r.d.resync(time.Now())
		default:
			r.d.count.errors.Add(1)
			r.d.cfg.Log.Warn("link socket failed, opening a new one", "dataplane", r.d.String(), "err", err)
			r.reopen()
		}
	}
}

// reopen replaces the link socket and starts over with a dump.
func (r *reader) reopen() {
	r.d.current().close()
	for {
		select {
		case <-time.After(reopenDelay):
		case <-r.ctx.Done():
			return
		}
		var w *watcher
		err := inNetNS(r.d.cfg.NetNS, func() (err error) {
			w, err = openWatcher()
			return err
		})
		if err != nil {
			r.d.count.errors.Add(1)
			r.d.cfg.Log.Warn("cannot open a link socket", "dataplane", r.d.String(), "err", err)
			continue
		}
		r.d.mu.Lock()
		r.d.watcher = w
		r.d.mu.Unlock()
		if r.ctx.Err() != nil { // whoever closes at the end may have seen the old one
			w.close()
			return
		}
		r.d.resync(time.Now())
		return
	}
}

func (r *reader) bad(err error) {
	r.d.count.badMessages.Add(1)
	r.d.cfg.Log.Warn("link message not understood", "dataplane", r.d.String(), "err", err)
}

// dumped removes the ports that a complete dump did not show.
func (r *reader) dumped(at time.Time) {
	r.d.count.dumps.Add(1)
	r.d.changing.Lock()
	defer r.d.changing.Unlock()
	for _, p := range r.d.ports {
		if p.seen != r.dump {
			r.d.count.seenByDump.Add(1)
			r.remove(p, at)
		}
	}
	r.dump++
	r.unanswered()
	r.d.readyOnce.Do(func() { close(r.d.ready) })
}

// link takes in what the kernel says about one interface.
func (r *reader) link(l link, gone bool, from linkSource, at time.Time) {
	r.d.count.messages.Add(1)
	r.d.changing.Lock()
	defer r.d.changing.Unlock()
	p := r.d.ports[l.index]
	named := r.d.names.Load().Match(l.name)
	if p != nil && (gone || p.name != l.name || !named) {
		r.remove(p, at)
		p = nil
	}
	if gone || !l.ethernet || l.mac.IsZero() || !named {
		return
	}
	if old := r.d.byName[l.name]; old != nil && old != p {
		r.remove(old, at) // its name went to a new interface before we heard of its end
	}
	if p == nil {
		r.add(l, at)
		return
	}
	p.seen = r.dump
	if p.nts.Load() == nil {
		r.open(p, true)
	}
	r.update(p, l, from, at)
}

// update compares what the kernel says with what was known.
func (r *reader) update(p *port, l link, from linkSource, at time.Time) {
	asked := p.asked.Load()
	if from == fromPoll {
		p.asked.Store(false)
	}
	r.weigh(p, &l, from)
	if l.master != p.master {
		p.master = l.master
		r.setWide(p)
	}
	now := l.port()
	moved := now.Carrier != p.state.Carrier || now.AdminUp != p.state.AdminUp
	if l.changes != p.changes || moved {
		r.d.alarm(at)
		p.changes = l.changes
	}
	if now == p.state {
		return
	}
	if moved {
		r.countSeen(from, asked)
	}
	if now.MAC != p.state.MAC {
		r.setMAC(p, now.MAC)
	}
	r.tell(p, now, at)
}

// countSeen counts who saw a change first. The kernel sends a notification that it
// held back right before it answers our question, so that one is the poller's merit.
func (r *reader) countSeen(from linkSource, asked bool) {
	switch {
	case from == fromDump:
		r.d.count.seenByDump.Add(1)
	case from == fromPoll, asked:
		r.d.count.seenByPoll.Add(1)
	default:
		r.d.count.seenByNotice.Add(1)
	}
}

func (r *reader) setMAC(p *port, mac fabric.MAC) {
	for _, s := range p.sockets() {
		if err := s.setMAC(mac); err != nil {
			r.d.cfg.Log.Warn("cannot change a port's filter", "port", p.name, "mac", mac.String(), "err", err)
		}
	}
}

// setWide has a port hear its notices and acks before a bridge takes them, or no longer.
func (r *reader) setWide(p *port) {
	s := p.nts.Load()
	if s == nil {
		return
	}
	if err := s.setWide(p.master != 0); err != nil {
		r.d.cfg.Log.Warn("a port that joined or left a bridge may not hear acks", "port", p.name, "err", err)
	}
}

// add makes an interface a port: first its sockets, so that the owner can send as
// soon as it hears of it, then the event, then the frames.
func (r *reader) add(l link, at time.Time) {
	p := newPort(l.port(), r.d.cfg.Log)
	p.toldAt = at
	p.changes, p.seen, p.master = l.changes, r.dump, l.master
	p.openAsk = func() (s *Socket) {
		_ = inNetNS(r.d.cfg.NetNS, func() error { // it tells of errors itself
			s = p.openAsking(r.d.frames, r.d.cfg.FrameRate, r.frames)
			return nil
		})
		return s
	}
	r.open(p, false)
	r.d.mu.Lock()
	r.d.ports[l.index], r.d.byName[l.name] = p, p
	r.d.mu.Unlock()
	r.d.cfg.Log.Debug("port added", "port", l.name, "index", l.index, "mac", l.mac.String(),
		"admin_up", l.adminUp, "carrier", p.state.Carrier)
	r.emit(fabric.Event{Kind: fabric.PortAdded, Port: p.state, At: at, Changes: l.changes + 1})
	p.start(r.d.frames, r.d.cfg.FrameRate, r.frames)
	if r.d.hearing != nil {
		r.listen(&l)
	}
	if r.poll == nil {
		if r.d.hearing != nil {
			r.d.question(l.index)
		}
		return
	}
	if err := r.poll.add(l.index, l.name); err != nil {
		r.d.cfg.Log.Debug("carrier of a port is not polled", "port", l.name, "err", err)
		return
	}
	// The carrier may have changed after this message and before polling began.
	r.d.question(l.index)
}

// open opens a port's sockets; a port without them still tells its carrier, and the
// next message about it tries again.
func (r *reader) open(p *port, start bool) {
	err := inNetNS(r.d.cfg.NetNS, func() error { return p.openSockets(r.d.cfg.QdiscBypass) })
	if err != nil {
		r.d.count.errors.Add(1)
		r.d.cfg.Log.Warn("no control frames on a port", "port", p.name, "err", err)
		return
	}
	if start {
		p.start(r.d.frames, r.d.cfg.FrameRate, r.frames)
	}
}

// remove ends a port.
func (r *reader) remove(p *port, at time.Time) {
	r.d.mu.Lock()
	delete(r.d.ports, p.index)
	delete(r.d.byName, p.name)
	r.d.mu.Unlock()
	if r.poll != nil {
		r.poll.remove(p.index)
	}
	if r.d.hearing != nil {
		r.d.hearing.Remove(p.index)
	}
	p.halt()
	r.d.cfg.Log.Debug("port removed", "port", p.name, "index", p.index)
	r.emit(fabric.Event{Kind: fabric.PortRemoved, Port: p.state, At: at})
}

// stopAll ends all ports silently, at the end of Run.
func (r *reader) stopAll() {
	r.d.changing.Lock()
	defer r.d.changing.Unlock()
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	for _, p := range r.d.ports {
		p.halt()
	}
	clear(r.d.ports)
	clear(r.d.byName)
}

// emit waits for the owner: an event is never dropped. Meanwhile messages wait in
// the kernel, which says so if it has to drop some.
func (r *reader) emit(ev fabric.Event) {
	if r.d.handle != nil {
		r.d.count.events.Add(1)
		r.d.handle(ev)
		return
	}
	select {
	case r.d.events <- ev:
		r.d.count.events.Add(1)
	case <-r.ctx.Done():
	}
}

// mayOpenPacketSocket fails early, with what is missing, where every port would fail
// later.
func mayOpenPacketSocket() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errors.Join(errors.New("packet sockets are not permitted, want CAP_NET_RAW in the ports' namespace"),
			os.NewSyscallError("socket AF_PACKET", err))
	}
	return unix.Close(fd)
}
