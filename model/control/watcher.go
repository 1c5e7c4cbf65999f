package control

import (
	"slices"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/internal/virtual"
)

// watcher is the BFD process of a switch: it has a processor of its own, answers at
// once, and goes on without the daemon; what it finds out the daemon hears of as of any
// other event, and all of it when it starts.
type watcher struct {
	d     *device
	m     *bfd.Manager
	peers []bfd.Peer
	tick  virtual.Look
}

// Ports of multihop BFD.
const sourcePorts = 16384

func newWatcher(d *device) *watcher {
	return &watcher{d: d, m: bfd.NewManager(bfd.Config{Seed: d.p.rng.Uint64()}, d.p.time())}
}

// alive reports whether the switch still has this process.
func (w *watcher) alive() bool { return w.d.bfd == w }

// tellAll tells a daemon that has just started how all paths are.
func (w *watcher) tellAll() {
	now := w.d.p.time()
	for _, peer := range w.peers {
		if r, ok := w.m.ReportOf(peer.Key); ok {
			w.d.core.Path(bfd.Event{Key: peer.Key, Report: r, At: now}, now)
		}
	}
}

// watch makes the sessions be these.
func (w *watcher) watch(peers []bfd.Peer) {
	w.peers = slices.Clone(peers)
	w.d.p.failed(w.m.Reconcile(w.peers, w.d.p.time()))
	w.settle()
}

func (w *watcher) receive(u *datagram) {
	if u.dport != bfd.PortMultihop {
		return
	}
	p := w.d.p
	a := bfd.Arrival{Src: deviceAddr(u.src), Dst: w.d.id, Multihop: true, TTL: 255, At: p.time()}
	w.m.Wake(p.time())
	_ = w.m.Receive(&a, u.data, p.time()) // counted; sessions begin at different times
	w.settle()
}

// settle sends, tells, and plans the next tick.
func (w *watcher) settle() {
	p := w.d.p
	for _, s := range w.m.Sends() {
		to := deviceNode(s.Peer)
		u := datagram{src: w.d.node, dst: to, sport: uint16(portFirst + s.Discr%sourcePorts), dport: bfd.PortMultihop, data: s.Data()}
		w.d.route(to, uint32(u.sport)*0x9e3779b1^uint32(to), u.frame(p.tos))
	}
	for _, ev := range slices.Clone(w.m.Events()) {
		switch ev.Report {
		case bfd.ReportUp, bfd.ReportDown:
			p.note(StepDetected, w.d.name, "", "BFD: path to %s is %s", p.sim.NodeName(deviceNode(ev.Key.Peer)), ev.Report)
		}
		w.d.work(func() { w.d.core.Path(ev, p.time()) })
	}
	next := w.m.Next()
	if next.IsZero() {
		return
	}
	w.tick.Plan(p, next, w.alive, func() {
		w.m.Wake(p.time())
		w.m.Tick(p.time())
		w.settle()
	})
}
