package control

import (
	"errors"

	"github.com/openinof/inof/model"
)

// A stream is a plain TCP: handshake, cumulative acknowledgement of every segment,
// go-back-N after three duplicate acknowledgements or the retransmission time-out,
// which is 200 ms as on Linux and doubles. There is no congestion control: the
// messages are few and small.
const (
	mss       = 1460
	window    = 64 << 10
	rtoMin    = 200 * model.Millisecond
	rtoSYN    = model.Second
	rtoMax    = 120 * model.Second
	dupLimit  = 3
	maxStream = 1<<31 - 1 // bytes of a stream: sequence numbers do not wrap
)

type streamState uint8

const (
	streamOpening  streamState = iota // SYN sent
	streamAccepted                    // SYN received and answered
	streamOpen
	streamClosed
)

// Reasons for the end of a stream.
var (
	errReset  = errors.New("connection reset by the peer")
	errClosed = errors.New("closed by the peer")
	errTooBig = errors.New("the connection has carried all it can")
)

// streamKey names a stream at one end.
type streamKey struct {
	peer         model.NodeID
	local, other uint16 // ports
}

// stream is one end of a connection.
type stream struct {
	d     *device
	key   streamKey
	state streamState

	out      []byte // from sequence number una on: not acknowledged, or not sent
	una, nxt uint32 // the SYN has number 0, the first byte 1
	fin      bool   // nothing comes after out
	finAt    uint32 // number of the FIN, once it was sent
	dups     int
	rto      model.Time
	timer    uint64 // generation of the time-out
	ticking  bool
	resent   uint64

	rcv uint32 // next expected

	opened func()
	taken  func([]byte)
	ended  func(error)
}

// dialStream opens a connection to a port of another switch.
func (d *device) dialStream(peer model.NodeID, port uint16) *stream {
	if d.nextPort++; d.nextPort < portFirst {
		d.nextPort = portFirst
	}
	st := &stream{d: d, key: streamKey{peer, d.nextPort, port}, state: streamOpening, rto: rtoSYN}
	d.streams[st.key] = st
	st.send(flagSYN, 0, nil)
	st.nxt = 1
	st.arm()
	return st
}

// accept answers a SYN.
func (d *device) accept(g *segment) *stream {
	k := streamKey{g.src, g.dport, g.sport}
	st := &stream{d: d, key: k, state: streamAccepted, rto: rtoSYN, rcv: g.seq + 1}
	d.streams[k] = st
	st.send(flagSYN|flagACK, 0, nil)
	st.nxt = 1
	st.arm()
	return st
}

func (st *stream) send(flags uint8, seq uint32, data []byte) {
	g := segment{src: st.d.node, dst: st.key.peer, sport: st.key.local, dport: st.key.other, seq: seq, ack: st.rcv, flags: flags, data: data}
	st.d.route(st.key.peer, st.hash(), g.frame(st.d.p.tos))
}

// hash is what switches choose among equal paths by, the same for all of a direction.
func (st *stream) hash() uint32 {
	return uint32(st.key.local)*0x9e3779b1 ^ uint32(st.key.other)<<16 ^ uint32(st.key.peer)<<8 ^ uint32(st.d.node)
}

// write queues bytes.
func (st *stream) write(b []byte) {
	if st.state == streamClosed || st.fin {
		return
	}
	if int64(st.una)+int64(len(st.out))+int64(len(b)) > maxStream {
		st.end(errTooBig)
		return
	}
	st.out = append(st.out, b...)
	st.push()
}

// close ends the stream once everything written has been sent; what the peer still
// sends is not taken.
func (st *stream) close() {
	if st.state == streamClosed || st.fin {
		return
	}
	st.taken, st.ended = nil, nil
	st.fin = true
	st.push()
}

// push sends what the window allows.
func (st *stream) push() {
	if st.state != streamOpen {
		return
	}
	for {
		done := int(st.nxt - st.una)
		if done >= window || done > len(st.out) || done == len(st.out) && !st.fin {
			break
		}
		n := min(mss, len(st.out)-done, window-done)
		flags := uint8(flagACK)
		next := st.nxt + uint32(n)
		if st.fin && done+n == len(st.out) {
			flags |= flagFIN
			st.finAt = next
			next++
		}
		st.send(flags, st.nxt, st.out[done:done+n])
		st.nxt = next
	}
	st.arm()
}

// arm starts the time-out when something is outstanding and it does not run.
func (st *stream) arm() {
	if st.ticking || st.nxt == st.una || st.state == streamClosed {
		return
	}
	st.ticking = true
	st.timer++
	gen, life := st.timer, st.d.life
	st.d.p.after(st.rto, func() {
		if st.timer == gen && st.d.life == life && st.state != streamClosed {
			st.expired()
		}
	})
}

// expired goes back to the first byte that was not acknowledged.
func (st *stream) expired() {
	st.ticking = false
	st.rto = min(2*st.rto, rtoMax)
	st.again()
}

func (st *stream) again() {
	st.resent++
	st.dups = 0
	switch st.state {
	case streamOpening:
		st.send(flagSYN, 0, nil)
	case streamAccepted:
		st.send(flagSYN|flagACK, 0, nil)
	default:
		st.nxt = st.una
		st.push()
		return
	}
	st.arm()
}

// receive takes a segment of this stream.
func (st *stream) receive(g *segment) {
	if g.flags&flagRST != 0 {
		st.end(errReset)
		return
	}
	if g.flags&flagSYN != 0 {
		if st.state == streamAccepted { // a repetition: our answer was lost
			st.send(flagSYN|flagACK, 0, nil)
			return
		}
		if st.state != streamOpening || g.flags&flagACK == 0 {
			st.send(flagACK, st.nxt, nil)
			return
		}
		st.rcv = g.seq + 1
	}
	if g.flags&flagACK != 0 {
		st.acked(g)
	}
	if st.state == streamClosed || len(g.data) == 0 && g.flags&(flagFIN|flagSYN) == 0 {
		return
	}
	if g.flags&flagSYN != 0 || g.seq != st.rcv {
		st.send(flagACK, st.nxt, nil)
		return
	}
	st.rcv += uint32(len(g.data))
	if g.flags&flagFIN != 0 {
		st.rcv++
	}
	st.send(flagACK, st.nxt, nil)
	if len(g.data) > 0 && st.taken != nil {
		st.taken(g.data)
	}
	if g.flags&flagFIN != 0 {
		st.end(errClosed)
	}
}

// acked takes an acknowledgement.
func (st *stream) acked(g *segment) {
	switch {
	case g.ack > st.una && g.ack <= st.furthest():
		n := g.ack - st.una
		if st.una == 0 { // the SYN's number
			n--
		}
		n = min(n, uint32(len(st.out))) // a FIN has a number and no byte
		st.out = append(st.out[:0], st.out[n:]...)
		st.una = g.ack
		st.nxt = max(st.nxt, st.una)
		st.dups, st.rto, st.ticking = 0, rtoMin, false
		st.timer++
		if st.state < streamOpen {
			st.state = streamOpen
			if st.opened != nil {
				st.opened()
			}
		}
		if st.finAt > 0 && st.una > st.finAt {
			st.finished()
			return
		}
		st.push()
	case g.ack == st.una && st.nxt > st.una && len(g.data) == 0 && g.flags&flagFIN == 0:
		if st.dups++; st.dups == dupLimit {
			st.again()
		}
	}
}

// furthest is the highest number that may have been sent: going back lowers nxt, and
// acknowledgements of before may still come.
func (st *stream) furthest() uint32 {
	n := st.una + uint32(len(st.out)) + 1
	return max(st.nxt, n)
}

// finished forgets a stream whose end the peer has acknowledged.
func (st *stream) finished() {
	st.state = streamClosed
	delete(st.d.streams, st.key)
}

// end is the end of a stream that this side did not ask for.
func (st *stream) end(err error) {
	if st.state == streamClosed {
		return
	}
	st.finished()
	if st.ended != nil {
		st.ended(err)
	}
}

// abort ends the stream here without a word to the owner; the peer is told.
func (st *stream) abort() {
	if st.state != streamClosed {
		st.send(flagRST, st.nxt, nil)
		st.finished()
	}
}

// segment hands a segment to its stream, or opens one, or refuses it.
func (d *device) segment(g *segment) {
	k := streamKey{g.src, g.dport, g.sport}
	if st := d.streams[k]; st != nil {
		if g.flags&(flagSYN|flagACK) == flagSYN && st.state == streamOpen && st.rcv > 1 {
			st.end(errReset) // the peer began anew
		} else {
			st.receive(g)
			return
		}
	}
	switch {
	case g.flags&flagRST != 0:
	case g.flags&(flagSYN|flagACK) == flagSYN && d.running && d.reflects && g.dport == portINOF:
		d.listen(d.accept(g))
	default:
		rst := segment{src: d.node, dst: g.src, sport: g.dport, dport: g.sport, seq: g.ack, flags: flagRST}
		d.route(g.src, 0, rst.frame(d.p.tos))
	}
}
