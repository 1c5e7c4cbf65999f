package link

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/inof/wire"
)

const (
	// DefaultInboxBytes is how much of one peer waits for the owner, in bytes on the wire.
	// One message is taken however large it is; then the peer is not read any further.
	DefaultInboxBytes = 128 << 10
	// pieceRecords is how many records of a message are taken at a time: others are looked
	// at in between.
	pieceRecords = 32
	// urgentRow is how many losses in a row are taken while other messages wait.
	urgentRow = 4
)

// Inbox holds what sessions have received until the goroutine that owns the state takes
// it. Each device has a queue of its own, bounded in bytes. They are served in turn, those
// first whose next message tells of a loss, and of a long message a piece at a time.
// So what one device sends without end delays others by a piece, and when its queue is
// full only its own session waits: it is not read, and TCP holds the peer back. A device whose
// messages have made more work than it may rests until that is made up for.
type Inbox struct {
	bytes int // of one device
	ready chan struct{}

	mu      sync.Mutex
	inlets  map[inletKey]*inlet // those with something in them, or with a reader that waits
	losses  []*inlet            // with something in them, in turn; their next tells of a loss
	others  []*inlet
	resting []*inlet
	row     int // losses taken in a row
	events  int
	goesOn  *time.Timer // when the first of those that rest may; nil: there was none yet
}

// inletKey is a device on one side: it may be our reflector and our client at once.
type inletKey struct {
	device netip.Addr
	client bool
}

// inlet is the queue of one device.
type inlet struct {
	key   inletKey
	queue []PeerEvent
	bytes int
	room  chan struct{} // closed when something was taken; nil: nobody waits
	stuck int           // readers that wait
	downs int           // of queue: sessions that have ended, for which nothing is held back
	rests time.Time     // since when it rests; zero: it does not
}

// InboxStatus is what waits, for operators.
type InboxStatus struct {
	Events int           `json:"events"`
	Bytes  int           `json:"bytes"`
	Peers  int           `json:"peers"`     // of which something waits
	Full   int           `json:"full"`      // of these are not read any further until then
	Oldest time.Duration `json:"oldest_ns"` // age of the event that waits longest
	Device netip.Addr    `json:"device"`    // whose it is; zero: nothing waits
}

// NewInbox gives an empty one; bytes is what may wait of one device, zero: the default.
func NewInbox(bytes int) *Inbox {
	return &Inbox{bytes: cmp.Or(bytes, DefaultInboxBytes), ready: make(chan struct{}, 1), inlets: map[inletKey]*inlet{}}
}

// Put queues an event of a session; client tells which side of it we are. It waits while
// too much of the device is queued, but for a message only, and until stop is closed.
func (b *Inbox) Put(ev PeerEvent, client bool, stop <-chan struct{}) {
	k := inletKey{ev.Peer.Device(), client}
	b.mu.Lock()
	defer b.mu.Unlock()
	in := b.inlets[k]
	if in == nil {
		in = &inlet{key: k}
		b.inlets[k] = in
	}
	for ev.Kind == PeerMessage && in.bytes > 0 && in.bytes+ev.Size > b.bytes {
		if in.room == nil {
			in.room = make(chan struct{})
		}
		room := in.room
		in.stuck++
		b.mu.Unlock()
		select {
		case <-room:
		case <-stop:
			b.mu.Lock()
			in.stuck--
			return
		}
		b.mu.Lock()
		in.stuck--
	}
	in.queue = append(in.queue, ev)
	in.bytes += ev.Size
	b.events++
	if ev.Kind == PeerDown {
		in.downs++
	}
	if len(in.queue) == 1 {
		b.line(in)
	}
	b.wake()
}

// wake tells the owner that there is something. b.mu is held.
func (b *Inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// line puts a device behind the others of its kind. b.mu is held.
func (b *Inbox) line(in *inlet) {
	if u, ok := in.queue[0].Msg.(*wire.Update); ok && u.TellsLoss() {
		b.losses = append(b.losses, in)
	} else {
		b.others = append(b.others, in)
	}
}

// Ready has a value when there may be something to Take.
func (b *Inbox) Ready() <-chan struct{} { return b.ready }

// Len is how many events wait, but for those of devices that rest.
func (b *Inbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.events
	for _, in := range b.resting {
		n -= len(in.queue)
	}
	return n
}

// mayGoOn is until when a device with something in its queue has to rest; zero: it has not.
func (in *inlet) mayGoOn() time.Time {
	if ev := &in.queue[0]; ev.Kind == PeerMessage && in.downs == 0 && ev.Peer.c != nil {
		return ev.Peer.c.pace.restsUntil()
	}
	return time.Time{}
}

// goOn lines up those that have rested. b.mu is held.
func (b *Inbox) goOn(now time.Time) {
	b.resting = slices.DeleteFunc(b.resting, func(in *inlet) bool {
		if in.mayGoOn().After(now) {
			return false
		}
		in.queue[0].Peer.c.pace.note(in.rests, now)
		in.rests = time.Time{}
		b.line(in)
		return true
	})
}

// rest leaves a device out until it may go on. b.mu is held.
func (b *Inbox) rest(in *inlet, now time.Time) {
	in.rests = now
	b.resting = append(b.resting, in)
	first := in.mayGoOn()
	for _, o := range b.resting {
		if at := o.mayGoOn(); at.Before(first) {
			first = at
		}
	}
	if b.goesOn == nil {
		b.goesOn = time.AfterFunc(first.Sub(now), b.wake)
	} else {
		b.goesOn.Reset(first.Sub(now))
	}
}

// turn takes the next device out of its line, nil: there is none. b.mu is held.
func (b *Inbox) turn(now time.Time) *inlet {
	for {
		from := &b.others
		if len(b.losses) > 0 && (b.row < urgentRow || len(b.others) == 0) {
			from = &b.losses
		}
		if len(*from) == 0 {
			return nil
		}
		in := (*from)[0]
		*from = slices.Delete(*from, 0, 1)
		if in.mayGoOn().After(now) {
			b.rest(in, now)
			continue
		}
		if b.row++; from == &b.others {
			b.row = 0
		}
		return in
	}
}

// Take gives the next event, and which side of its session we are; ok is false when there
// is none.
func (b *Inbox) Take() (ev PeerEvent, client, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.goOn(now)
	in := b.turn(now)
	if in == nil {
		return ev, false, false
	}
	ev, whole := in.next()
	if whole {
		b.events--
	}
	switch {
	case len(in.queue) > 0:
		b.line(in)
	case in.stuck == 0:
		delete(b.inlets, in.key)
	}
	if whole && in.room != nil {
		close(in.room)
		in.room = nil
	}
	if len(b.losses)+len(b.others) > 0 {
		b.wake()
	}
	return ev, in.key.client, true
}

// next takes the first event whole, or a piece of it.
func (in *inlet) next() (ev PeerEvent, whole bool) {
	ev = in.queue[0]
	if u, ok := ev.Msg.(*wire.Update); ok {
		if first, rest := u.Cut(pieceRecords); rest != nil {
			in.queue[0].Msg = rest
			ev.Msg = first
			return ev, false
		}
	}
	if ev.Kind == PeerDown {
		in.downs--
	}
	in.queue[0] = PeerEvent{}
	in.queue = in.queue[1:]
	in.bytes -= ev.Size
	return ev, true
}

// Status is what waits now.
func (b *Inbox) Status(now time.Time) InboxStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := InboxStatus{Events: b.events}
	for _, in := range b.inlets {
		s.Bytes += in.bytes
		if in.stuck > 0 {
			s.Full++
		}
		if len(in.queue) == 0 {
			continue
		}
		s.Peers++
		if !in.rests.IsZero() { // it waits for itself
			continue
		}
		if age := now.Sub(in.queue[0].At); age >= s.Oldest || !s.Device.IsValid() {
			s.Oldest, s.Device = max(0, age), in.key.device
		}
	}
	return s
}
