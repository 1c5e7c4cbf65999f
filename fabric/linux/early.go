package linux

import (
	"context"
	"errors"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux/carrier"
)

// Early words. Package carrier hears of a loss in the kernel function that notices it, before
// netlink is told. A word and a link message both say which change of carrier they are of (the
// kernel's count), so that neither can undo what the other said of a later one:
//
//   - A loss is believed at once. Until netlink has said as much, no message of an earlier change,
//     or of the same one with another outcome, makes the carrier come back.
//   - Whatever else a word says is left to netlink.
//   - What netlink has not confirmed after confirmAfter is asked for; the answer is believed,
//     whatever it says. So a wrong word lasts that long, and a lost one is what it was without.

// confirmAfter is how long netlink may take to say what a word said. It is longer than a notice
// needs to leave: the kernel's answer waits for whoever changes links just now, with a
// processor kept busy.
const confirmAfter = 5 * time.Millisecond

// hearing is what a source of words is to a dataplane: a *carrier.Watch, or one of a test.
type hearing interface {
	Read() (carrier.Word, error)
	Add(index int) error
	Remove(index int)
	Lost() uint64
	Source() fabric.CarrierSource
	Whole() bool
	Stop()
	Close()
}

// doubt is what a port owes to early words.
type doubt struct {
	lost    bool   // the loss of change number changes is not confirmed yet
	heard   uint32 // the latest change that a word told of
	pending bool   // a question will be put
	asked   bool   // a question about this is open; an answer to it is believed
}

// openHearing gives the best source that the configuration, the kernel and the rights allow, nil
// for none, and says why there is no better one. It must be called in the ports' namespace.
func openHearing(want fabric.CarrierSource) (hearing, string) {
	ways := []fabric.CarrierSource{want}
	switch want {
	case fabric.CarrierNetlink:
		return nil, "the configuration says so"
	case fabric.CarrierAuto:
		ways = carrier.Ways()
	}
	w, err := carrier.Open(ways...)
	why := ""
	if err != nil {
		why = err.Error()
	}
	if w == nil {
		return nil, why
	}
	if err := w.Wake(); err != nil {
		w.Close()
		return nil, err.Error()
	}
	return w, why
}

// whole reports whether all changes of carrier are heard early, so that nothing needs to look for
// those that netlink holds back.
func (d *Dataplane) whole() bool { return d.hears.Load() && d.hearing.Whole() }

// hear takes words until the source is closed.
func (r *reader) hear(ctx context.Context, h hearing) {
	for {
		word, err := h.Read()
		switch {
		case err == nil:
			r.word(word)
		case ctx.Err() != nil:
			return
		case errors.Is(err, carrier.ErrWord):
			r.d.count.errors.Add(1)
		default:
			r.d.count.errors.Add(1)
			r.d.hears.Store(false) // the poller goes on
			r.d.cfg.Log.Warn("changes of carrier are not heard early any more, only by netlink", "dataplane", r.d.String(), "err", err)
			return
		}
	}
}

// word takes one in.
func (r *reader) word(w carrier.Word) {
	r.d.changing.Lock()
	defer r.d.changing.Unlock()
	r.d.count.words.Add(1)
	p := r.d.ports[w.Index]
	if p == nil || !later(w.Changes, uint32(p.changes)) {
		return // netlink was first
	}
	p.doubt.heard, p.doubt.asked = w.Changes, false
	defer r.confirm(p)
	if w.Carrier {
		return
	}
	was := p.state
	now := was
	now.Carrier, now.AdminUp = false, was.AdminUp && w.Running
	p.changes, p.doubt.lost = uint64(w.Changes), true
	if now == was {
		return
	}
	r.d.count.seenEarly.Add(1)
	r.tell(p, now, w.At)
}

// later reports whether a count of changes, which wraps, is above another one.
func later(a, b uint32) bool { return int32(a-b) > 0 }

// weigh holds a link message against what was heard early, and takes from it what is older.
func (r *reader) weigh(p *port, l *link, from linkSource) {
	d := &p.doubt
	answer := from == fromPoll && d.asked
	if answer || !later(d.heard, uint32(l.changes)) {
		d.asked = false
	}
	if !d.lost {
		return
	}
	up := l.adminUp && l.carrier
	switch n := uint32(l.changes); {
	case answer:
		if up && !later(n, uint32(p.changes)) {
			r.d.count.earlyWrong.Add(1)
		}
	case later(n, uint32(p.changes)), n == uint32(p.changes) && !up:
	default: // composed before
		l.adminUp, l.carrier, l.changes = p.state.AdminUp, false, p.changes
		return
	}
	d.lost = false
}

// confirm sees to it that netlink is asked unless it speaks by itself.
func (r *reader) confirm(p *port) {
	if p.doubt.pending {
		return
	}
	p.doubt.pending = true
	time.AfterFunc(confirmAfter, func() { r.ask(p) })
}

// ask puts the question of confirm. It may wait for the kernel.
func (r *reader) ask(p *port) {
	r.d.changing.Lock()
	p.doubt.pending = false
	open := r.d.ports[p.index] == p && (p.doubt.lost || later(p.doubt.heard, uint32(p.changes)))
	if open && p.asked.Load() { // its answer may be of before the word
		r.confirm(p)
		open = false
	}
	p.doubt.asked = open
	r.d.changing.Unlock()
	if open && r.ctx.Err() == nil {
		r.d.question(p.index)
	}
}

// unanswered forgets questions that are older than a dump, which has just ended: their answers are
// lost if they did not come before it.
func (r *reader) unanswered() {
	for _, p := range r.d.ports {
		p.asked.Store(false)
		p.doubt.asked = false
		if p.doubt.lost || later(p.doubt.heard, uint32(p.changes)) {
			r.confirm(p)
		}
	}
}

// makeGood reads all links when words were lost since the last call.
func (d *Dataplane) makeGood(now time.Time) {
	if !d.hears.Load() {
		return
	}
	lost := d.hearing.Lost()
	if lost <= d.count.wordsLost.Load() {
		return
	}
	d.count.wordsLost.Store(lost)
	d.cfg.Log.Warn("early words about carrier were lost, reading all links", "dataplane", d.String(), "so_far", lost)
	d.resync(now)
}

// listen begins to hear of a port, in its namespace.
func (r *reader) listen(l *link) {
	err := inNetNS(r.d.cfg.NetNS, func() error { return r.d.hearing.Add(l.index) })
	if err != nil {
		r.d.count.errors.Add(1)
		r.d.cfg.Log.Warn("changes of carrier of a port are not heard early", "port", l.name, "err", err)
	}
}

// tell makes a state that of a port and hands it to the owner. A word is of the moment itself, a
// link message of when it was read: so that times do not go back, a word counts from the message
// before it.
func (r *reader) tell(p *port, now fabric.Port, at time.Time) {
	if at.Before(p.toldAt) {
		at = p.toldAt
	}
	p.toldAt = at
	r.d.mu.Lock()
	p.state = now
	r.d.mu.Unlock()
	r.emit(fabric.Event{Kind: fabric.PortChanged, Port: now, At: at, Changes: p.changes + 1})
}
