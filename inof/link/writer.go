package link

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/nowait"
)

// maxBatch is about how many bytes one write call carries.
const maxBatch = 64 << 10

// writer sends the messages of one connection. A message goes to the socket from
// the goroutine that sends it when nothing waits before it and the socket takes it
// at once; what does not fit is left to a goroutine that lives while there is a
// backlog. So nobody who sends ever waits for a peer.
type writer struct {
	c   *conn
	raw syscall.RawConn // nil: the connection is no socket, every write takes a goroutine

	msgIn, msgOut, bytesIn, bytesOut atomic.Uint64

	stopping atomic.Bool // closing is set

	mu       sync.Mutex
	opened   bool  // Established
	closing  error // set once: why this side ends the session
	busy     bool  // a goroutine is writing
	queue    []*wire.Encoded
	head     int
	queued   int             // bytes in queue
	wait     *wire.Coalescer // what came while the queue was long; nil: nothing
	taking   bool            // what waited is being encoded: what comes now must wait for it
	rest     []byte          // sealed bytes that the socket did not take
	asked    bool            // somebody waits for PeerDrained
	ping     *time.Timer
	idle     chan struct{} // closed when the goroutine that was busy at the end is done
	try      func(fd uintptr) bool
	tryBuf   []byte
	tryN     int
	tryError error
}

func (w *writer) init(c *conn) {
	w.c = c
	if sc, ok := c.nc.(syscall.Conn); ok {
		w.raw, _ = sc.SyscallConn()
	}
	// One closure for the life of the connection: a write must not allocate.
	w.try = func(fd uintptr) bool {
		w.tryN, w.tryError = nowait.Write(fd, w.tryBuf)
		return true // never wait for the socket
	}
}

// open lets messages through; the first keepalive is due after d.
func (w *writer) open(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing != nil {
		return
	}
	w.opened = true
	w.ping = time.AfterFunc(d, w.keepalive)
}

// keepalive sends one if nothing else was sent for the interval.
func (w *writer) keepalive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing != nil {
		return
	}
	now := time.Now()
	if !now.Before(w.c.sess.KeepaliveAt()) && !w.busy {
		w.push(keepalive)
		w.flush()
	}
	d := w.c.sess.KeepaliveAt().Sub(now)
	if d <= 0 { // a backlog is on its way: that is life enough
		_, d = w.c.sess.Timers()
	}
	w.ping.Reset(d)
}

func (w *writer) push(e *wire.Encoded) {
	w.queue = append(w.queue, e)
	w.queued += e.Len()
}

// send queues a message, and starts it on its way if now is true. M is the message
// that was encoded, nil: it must not be coalesced.
func (w *writer) send(e *wire.Encoded, m wire.Message, now bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing != nil || !w.opened {
		return ErrClosed
	}
	cfg := &w.c.host.cfg
	if w.absorb(m) {
		if w.wait != nil && w.wait.Size() > cfg.QueueBytes {
			w.cut(&wire.ProtocolError{Code: wire.CodeSlow, Where: "send queue", Detail: fmt.Sprintf("the latest state that waits has %d bytes, limit %d", w.wait.Size(), cfg.QueueBytes)})
			return ErrQueueFull
		}
		return nil
	}
	if len(w.queue)-w.head >= cfg.QueueMessages || w.queued+len(w.rest)+e.Len() > cfg.QueueBytes {
		w.cut(&wire.ProtocolError{Code: wire.CodeSlow, Where: "send queue", Detail: fmt.Sprintf(
			"%d messages of %d bytes wait, limit %d and %d", len(w.queue)-w.head, w.queued+len(w.rest), cfg.QueueMessages, cfg.QueueBytes)})
		return ErrQueueFull
	}
	w.push(e)
	if now {
		w.flush()
	}
	return nil
}

// absorb lets a message wait as the latest state of its records when the peer is
// slow. w.mu is held.
func (w *writer) absorb(m wire.Message) bool {
	cfg := &w.c.host.cfg
	long := len(w.queue)-w.head >= max(1, cfg.QueueMessages/64) || w.queued+len(w.rest) >= cfg.QueueBytes/4
	if !w.taking && w.wait == nil && !long {
		return false
	}
	if !w.busy {
		if w.flush(); !w.busy { // it was not the peer that was slow
			return false
		}
	}
	wait := w.wait
	if wait == nil {
		wait = &wire.Coalescer{}
	}
	if !wait.Add(m) {
		return false
	}
	w.wait = wait
	w.c.host.tally.coalesced.Add(1)
	return true
}

// resume queues what waited. w.mu is held, but not while it is encoded: who sends
// must not wait for that.
func (w *writer) resume() {
	c := w.wait
	w.wait, w.taking = nil, true
	w.mu.Unlock()
	var ready []*wire.Encoded
	var failed error
	for _, m := range c.Take() {
		e, err := wire.Encode(m)
		if err != nil {
			failed = err
			continue
		}
		ready = append(ready, e)
	}
	w.mu.Lock()
	w.taking = false
	if failed != nil { // no record may be missing
		w.cut(failed)
	}
	if w.closing == nil {
		for _, e := range ready {
			w.push(e)
		}
	}
}

// sealed reports whether no message waits as it came: all were sealed into bytes of their own.
func (w *writer) sealed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.head == len(w.queue) && w.wait == nil && !w.taking
}

// kick starts what was queued on its way.
func (w *writer) kick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing == nil {
		w.flush()
	}
}

// flush writes as much as the socket takes. w.mu is held.
func (w *writer) flush() {
	if w.busy || (w.head == len(w.queue) && len(w.rest) == 0) {
		return
	}
	if w.raw == nil {
		w.background()
		return
	}
	bp := w.c.host.bufs.Get().(*[]byte)
	buf := (*bp)[:0]
	for w.head < len(w.queue) {
		buf = w.seal(buf[:0])
		n, err := w.writeNow(buf)
		if err != nil {
			w.cut(err)
			break
		}
		if n < len(buf) {
			w.rest = append([]byte(nil), buf[n:]...)
			w.background()
			break
		}
	}
	w.recycle(bp, buf)
}

func (w *writer) recycle(bp *[]byte, buf []byte) {
	if cap(buf) <= 2*maxBatch {
		*bp = buf[:0]
	}
	w.c.host.bufs.Put(bp)
}

// seal moves messages from the queue into buf. w.mu is held.
func (w *writer) seal(buf []byte) []byte {
	now := time.Now()
	n := 0
	for w.head < len(w.queue) && (n == 0 || len(buf)+w.queue[w.head].Len() <= maxBatch) {
		e := w.queue[w.head]
		w.queue[w.head] = nil
		w.head++
		w.queued -= e.Len()
		buf = w.c.sess.Seal(buf, e, now)
		n++
	}
	if w.head == len(w.queue) {
		w.queue, w.head = w.queue[:0], 0
		if cap(w.queue) > 64 {
			w.queue = nil
		}
	}
	w.msgOut.Add(uint64(n))
	w.c.host.tally.msgOut.Add(uint64(n))
	return buf
}

// writeNow gives the socket what it takes without waiting.
func (w *writer) writeNow(b []byte) (int, error) {
	w.tryBuf, w.tryN, w.tryError = b, 0, nil
	err := w.raw.Write(w.try)
	w.tryBuf = nil
	if err == nil {
		err = w.tryError
	}
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
		w.tryN, err = max(w.tryN, 0), nil
	}
	if err != nil {
		return 0, fmt.Errorf("write to %s: %w", w.c.nc.RemoteAddr(), err)
	}
	w.wrote(0, w.tryN)
	return w.tryN, nil
}

func (w *writer) wrote(msgs, bytes int) {
	w.msgOut.Add(uint64(msgs))
	w.bytesOut.Add(uint64(bytes))
	t := &w.c.host.tally
	t.msgOut.Add(uint64(msgs))
	t.bytesOut.Add(uint64(bytes))
	t.writes.Add(1)
}

// background leaves the backlog to a goroutine. w.mu is held.
func (w *writer) background() {
	w.busy = true
	w.c.host.busy.Add(1)
	w.idle = make(chan struct{})
	go w.drain(w.idle)
}

// drain writes until nothing waits. A peer that takes nothing for the hold time
// is cut.
func (w *writer) drain(idle chan struct{}) {
	defer close(idle)
	bp := w.c.host.bufs.Get().(*[]byte)
	buf := (*bp)[:0]
	hold, _ := w.c.sess.Timers()
	w.mu.Lock()
	for w.closing == nil && (w.head < len(w.queue) || len(w.rest) > 0 || w.wait != nil) {
		if w.head == len(w.queue) && len(w.rest) == 0 {
			w.resume()
			continue
		}
		buf = append(buf[:0], w.rest...)
		w.rest = nil
		if len(buf) == 0 {
			buf = w.seal(buf)
		}
		w.mu.Unlock()
		_ = w.c.nc.SetWriteDeadline(time.Now().Add(hold))
		n, err := w.c.nc.Write(buf)
		w.wrote(0, n)
		w.mu.Lock()
		if err != nil {
			w.cut(w.writeError(err, hold))
		}
	}
	if w.closing == nil {
		_ = w.c.nc.SetWriteDeadline(time.Time{})
	}
	tell := w.asked && w.closing == nil
	w.busy, w.asked = false, false
	w.c.host.busy.Add(-1)
	w.mu.Unlock()
	w.recycle(bp, buf)
	if tell {
		w.c.host.cfg.Sink(PeerEvent{Peer: w.c.peer, Kind: PeerDrained, At: time.Now()})
	}
}

// whenDrained reports whether nothing waits; otherwise drain tells when that is so.
func (w *writer) whenDrained() bool {
	if w.c.host.busy.Load() == 0 { // of a thousand sessions it need not be asked one by one
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing == nil && !w.busy {
		w.flush()
	}
	w.asked = w.busy
	return w.closing == nil && !w.busy
}

func (w *writer) writeError(err error, hold time.Duration) error {
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return &wire.ProtocolError{Code: wire.CodeSlow, Where: "write", Detail: fmt.Sprintf("the peer took nothing for %v", hold)}
	}
	return fmt.Errorf("write to %s: %w", w.c.nc.RemoteAddr(), err)
}

// cut ends the session without a word: the socket takes no more. w.mu is held.
func (w *writer) cut(err error) {
	if w.closing == nil {
		w.closing = err
	}
	w.drop()
	_ = w.c.nc.Close()
}

func (w *writer) drop() {
	w.queue, w.head, w.queued, w.rest, w.wait = nil, 0, 0, nil, nil
	if w.ping != nil {
		w.ping.Stop()
	}
}

// ends reports whether the session is on its way to its end.
func (w *writer) ends() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closing != nil
}

// shut asks the reader to end the session for a reason that the peer is told.
func (w *writer) shut(err error) {
	w.mu.Lock()
	if w.closing == nil {
		w.closing = err
		w.drop()
	}
	w.stopping.Store(true)
	w.mu.Unlock()
	// The reader wakes and finishes.
	_ = w.c.nc.SetReadDeadline(time.Unix(1, 0))
	_ = w.c.nc.SetWriteDeadline(time.Now().Add(lingerTime))
}

// finish is called by the reader when it has ended with err. It tells the peer
// why, closes the connection and gives the true reason.
func (w *writer) finish(err error) error {
	w.mu.Lock()
	if w.closing == nil {
		w.closing = err
	}
	err = w.closing
	w.drop()
	idle := w.idle
	if w.busy {
		_ = w.c.nc.SetWriteDeadline(time.Now().Add(lingerTime))
	}
	w.mu.Unlock()
	if idle != nil {
		<-idle
	}
	w.say(err)
	_ = w.c.nc.Close()
	return err
}

// say sends the Notification and waits a moment for the peer to close, so that it
// is not lost in a reset.
func (w *writer) say(err error) {
	w.c.mu.Lock()
	b := w.c.sess.Notify(nil, err)
	w.c.mu.Unlock()
	if len(b) == 0 || wire.CodeOf(err) == wire.CodeSlow {
		return
	}
	_ = w.c.nc.SetDeadline(time.Now().Add(lingerTime))
	if _, err := w.c.nc.Write(b); err != nil {
		return
	}
	w.wrote(1, len(b))
	if half, ok := w.c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, w.c.nc, lingerBytes)
	}
}

func (w *writer) info(v *PeerInfo) {
	v.MsgIn, v.MsgOut, v.BytesIn, v.BytesOut = w.msgIn.Load(), w.msgOut.Load(), w.bytesIn.Load(), w.bytesOut.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	v.QueueBytes = w.queued + len(w.rest)
	if w.wait != nil {
		v.QueueBytes += w.wait.Size()
	}
	if w.closing != nil {
		v.LastError, v.LastCode = w.closing.Error(), ReasonOf(w.closing)
	}
}
