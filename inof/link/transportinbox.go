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
// full only its own session waits: it is not read, and TCP holds the peer back.
type Inbox struct {
	bytes int // of one device
	ready chan struct{}

	mu     sync.Mutex
	inlets map[inletKey]*inlet // those with something in them, or with a reader that waits
	losses []*inlet            // with something in them, in turn; their next tells of a loss
	others []*inlet
	row    int // losses taken in a row
	events int
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

// Len is how many events wait.
func (b *Inbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.events
}

// Take gives the next event, and which side of its session we are; ok is false when there
// is none.
func (b *Inbox) Take() (ev PeerEvent, client, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := &b.others
	if len(b.losses) > 0 && (b.row < urgentRow || len(b.others) == 0) {
		from = &b.losses
		b.row++
	} else {
		b.row = 0
	}
	if len(*from) == 0 {
		return ev, false, false
	}
	in := (*from)[0]
	*from = slices.Delete(*from, 0, 1)
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
	if b.events > 0 {
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
		if age := now.Sub(in.queue[0].At); age >= s.Oldest || !s.Device.IsValid() {
			s.Oldest, s.Device = max(0, age), in.key.device
		}
	}
	return s
}
