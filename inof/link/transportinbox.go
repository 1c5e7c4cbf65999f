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
	// restingRoom is how many times as much of a device is read while it rests: losses are
	// looked for in it.
	restingRoom = 8
)

// Inbox holds what sessions have received until the goroutine that owns the state takes
// it. Each device has a queue of its own, bounded in bytes. They are served in turn, those
// first whose next message tells of a loss, and of a long message a piece at a time.
// So what one device sends without end delays others by a piece, and when its queue is
// full only its own session waits: it is not read, and TCP holds the peer back.
//
// A device that has said more than it may, or whose messages have made more work, rests until
// that is made up for. A loss among what waits of it does not: everything up to it is taken in
// its order, within an allowance of its own (Pace). What a session has left that has ended is a
// burst. Nothing overtakes within a device, so that what is taken is always a state that it was in.
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
	goesOn  *time.Timer // rings when the first of those that rest may go on; nil: none did yet
	first   time.Time   // and this is when
	rested  uint64      // InboxStatus.Rested
	spared  uint64      // InboxStatus.Spared
}

// inletKey is a device on one side: it may be our reflector and our client at once.
type inletKey struct {
	device netip.Addr
	client bool
}

// inlet is the queue of one device.
type inlet struct {
	key    inletKey
	queue  []waiting
	bytes  int
	room   chan struct{} // closed when there may be room; nil: nobody waits
	stuck  int           // readers that wait
	downs  int           // of queue: sessions that have ended, for which a burst alone is held back
	losses int           // of queue: what tells of a loss
	rests  time.Time     // since when it rests; zero: it does not
}

// waiting is an event in a queue.
type waiting struct {
	PeerEvent
	loss bool // it is a message that tells of a loss
}

// InboxStatus is what waits, for operators.
type InboxStatus struct {
	Events int           `json:"events"`
	Bytes  int           `json:"bytes"`
	Peers  int           `json:"peers"`     // of which something waits
	Full   int           `json:"full"`      // of these are not read any further until then
	Oldest time.Duration `json:"oldest_ns"` // age of the event that waits longest, but for those of devices that rest
	Device netip.Addr    `json:"device"`    // whose it is; zero: nothing waits

	Resting       int           `json:"resting"`           // devices of Peers that rest
	RestingOldest time.Duration `json:"resting_oldest_ns"` // age of the event of them that waits longest
	RestingDevice netip.Addr    `json:"resting_device"`    // whose it is; zero: none rests
	Rested        uint64        `json:"rested"`            // times that a device began to rest
	Spared        uint64        `json:"losses_spared"`     // losses that were taken while their device was to rest
}

// NewInbox gives an empty one; bytes is what may wait of one device, zero: the default.
func NewInbox(bytes int) *Inbox {
	return &Inbox{bytes: cmp.Or(bytes, DefaultInboxBytes), ready: make(chan struct{}, 1), inlets: map[inletKey]*inlet{}}
}

// Put queues an event of a session; client tells which side of it we are. It waits while
// too much of the device is queued, but for a message only, and until stop is closed or the
// session is to end.
func (b *Inbox) Put(ev PeerEvent, client bool, stop <-chan struct{}) {
	if b.Lay(ev, client, stop) {
		b.Wake()
	}
}

// Lay is Put without a word to the owner. It reports whether there may be something to take, which
// the caller does then, or calls Wake.
func (b *Inbox) Lay(ev PeerEvent, client bool, stop <-chan struct{}) bool {
	k := inletKey{ev.Peer.Device(), client}
	w := waiting{PeerEvent: ev}
	if u, ok := ev.Msg.(*wire.Update); ok {
		u.Order()
		w.loss = ev.pace().tellsLoss(u, time.Now())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	in := b.inlets[k]
	if in == nil {
		in = &inlet{key: k}
		b.inlets[k] = in
	}
	for ev.Kind == PeerMessage && in.bytes > 0 && in.bytes+ev.Size > b.room(in) {
		if !b.await(in, ev.Peer, stop) {
			return false
		}
	}
	in.queue = append(in.queue, w)
	in.bytes += ev.Size
	b.events++
	if ev.Kind == PeerDown {
		in.downs++
	}
	if w.loss {
		in.losses++
	}
	switch {
	case len(in.queue) == 1:
		b.line(in)
	case in.rests.IsZero():
	case w.loss || ev.Kind == PeerDown: // it may go on now
		b.first = time.Time{}
	default:
		return false
	}
	return true
}

// room is how many bytes may wait of a device. b.mu is held.
func (b *Inbox) room(in *inlet) int {
	if in.rests.IsZero() {
		return b.bytes
	}
	return restingRoom * b.bytes
}

// await waits until there may be room for a message of a session; false: it is to be dropped.
// b.mu is held, but not meanwhile.
func (b *Inbox) await(in *inlet, of *Peer, stop <-chan struct{}) bool {
	if in.room == nil {
		in.room = make(chan struct{})
	}
	room := in.room
	in.stuck++
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		in.stuck--
	}()
	look := time.NewTicker(slowest)
	defer look.Stop()
	for {
		select {
		case <-room:
			return true
		case <-stop:
			return false
		case <-look.C:
			if of.c != nil && of.c.out.stopping.Load() {
				return false
			}
		}
	}
}

// Wake lets Ready have a value.
func (b *Inbox) Wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// line puts a device behind the others of its kind. b.mu is held.
func (b *Inbox) line(in *inlet) {
	if in.queue[0].loss {
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
	return in.queue[0].pace().restsUntil(in.losses > 0, in.downs > 0)
}

// pace is that of the device whose message it is; nil: nothing slows it down.
func (ev *PeerEvent) pace() *pacer {
	if ev.Kind == PeerMessage && ev.Peer.c != nil {
		return ev.Peer.c.pace
	}
	return nil
}

// goOn lines up those that have rested. b.mu is held.
func (b *Inbox) goOn(now time.Time) {
	if len(b.resting) == 0 || b.first.After(now) {
		return
	}
	b.resting = slices.DeleteFunc(b.resting, func(in *inlet) bool {
		if in.mayGoOn().After(now) {
			return false
		}
		if p := in.queue[0].Peer.c; p != nil {
			p.pace.note(in.rests, now)
		}
		in.rests = time.Time{}
		b.line(in)
		return true
	})
	b.ring(now)
}

// rest leaves a device out until it may go on. b.mu is held.
func (b *Inbox) rest(in *inlet, now time.Time) {
	b.rested++
	in.rests = now
	in.hasRoom()
	b.resting = append(b.resting, in)
	b.ring(now)
}

// ring wakes the owner when the first of those that rest may go on. b.mu is held.
func (b *Inbox) ring(now time.Time) {
	if len(b.resting) == 0 {
		return
	}
	b.first = b.resting[0].mayGoOn()
	for _, in := range b.resting[1:] {
		if at := in.mayGoOn(); at.Before(b.first) {
			b.first = at
		}
	}
	if b.goesOn == nil {
		b.goesOn = time.AfterFunc(b.first.Sub(now), b.Wake)
	} else {
		b.goesOn.Reset(b.first.Sub(now))
	}
}

// hasRoom lets readers that wait look again. b.mu is held.
func (in *inlet) hasRoom() {
	if in.room != nil {
		close(in.room)
		in.room = nil
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
	ev, whole, late := in.next(now)
	if whole {
		b.events--
		in.hasRoom()
	}
	if late {
		b.spared++
	}
	switch {
	case len(in.queue) > 0:
		b.line(in)
	case in.stuck == 0:
		delete(b.inlets, in.key)
	}
	if len(b.losses)+len(b.others) > 0 {
		b.Wake()
	}
	return ev, in.key.client, true
}

// next takes the first event whole, or a piece of it, and charges its device with it. Spared:
// it was a loss, the last of its message, that did not rest as its device had to.
func (in *inlet) next(now time.Time) (ev PeerEvent, whole, spared bool) {
	w := &in.queue[0]
	ev, whole = w.PeerEvent, true
	pace := ev.pace()
	weight := wire.Weight(ev.Msg)
	u, _ := ev.Msg.(*wire.Update)
	if u != nil {
		if first, rest := u.Cut(pieceRecords); rest != nil {
			ev.Msg, w.Msg, whole = first, rest, false
			weight -= wire.Weight(rest)
			u = rest
		}
	}
	owes := pace.take(weight, now)
	if w.loss && (whole || !u.TellsLoss()) {
		w.loss, spared = false, owes
		in.losses--
	}
	if !whole {
		return ev, false, spared
	}
	if ev.Kind == PeerDown {
		in.downs--
	}
	*w = waiting{}
	in.queue = in.queue[1:]
	in.bytes -= ev.Size
	return ev, true, spared
}

// Status is what waits now.
func (b *Inbox) Status(now time.Time) InboxStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := InboxStatus{Events: b.events, Resting: len(b.resting), Rested: b.rested, Spared: b.spared}
	for _, in := range b.inlets {
		s.Bytes += in.bytes
		if in.stuck > 0 {
			s.Full++
		}
		if len(in.queue) == 0 {
			continue
		}
		s.Peers++
		oldest, of := &s.Oldest, &s.Device
		if !in.rests.IsZero() { // it waits for itself
			oldest, of = &s.RestingOldest, &s.RestingDevice
		}
		if age := now.Sub(in.queue[0].At); age >= *oldest || !of.IsValid() {
			*oldest, *of = max(0, age), in.key.device
		}
	}
	return s
}
