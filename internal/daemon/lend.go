package daemon

import (
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/deepstack"
)

// lend does the owner's work for what was just queued, in the goroutine that brought it, if the
// owner rests: it is awake, and to wake another one takes about as long as the work. Otherwise, and
// where more is there than this, wake tells the owner.
func (d *Device) lend(wake func()) {
	if !d.turn.TryLock() {
		wake() // whoever is at work may have looked already
		return
	}
	defer d.turn.Unlock()
	if ev, ok := d.ports.take(); ok {
		d.port(ev)
	} else {
		d.takePeer()
	}
	d.settle()
	if d.ports.waiting() || d.inbox.Len() > 0 || d.core.Owing() {
		wake()
	}
}

// portEvent takes what a dataplane says, in the dataplane's goroutine.
func (d *Device) portEvent(ev fabric.Event) {
	deepstack.Grow()
	if d.ports.put(ev, d.stopped) {
		d.lend(d.ports.wake)
	}
}

// PeerSink gives the sink for the sessions we accept (client) or dial.
func (d *Device) PeerSink(client bool) func(link.PeerEvent) {
	return func(ev link.PeerEvent) {
		u, ok := ev.Msg.(*wire.Update)
		loss := ok && u.TellsLoss() // before it is anybody else's
		switch there := d.inbox.Lay(ev, client, d.stopped); {
		case there && loss:
			d.lend(d.inbox.Wake)
		case there:
			d.inbox.Wake()
		}
	}
}
