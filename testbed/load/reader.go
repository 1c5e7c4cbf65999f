package load

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
)

// TLV types of an Update that are counted (docs/protocol.md, "Update").
const (
	tlvZone = 5
	tlvHost = 6
	tlvDown = 7
)

// crowd is what the readers of one kind wait for together.
type crowd struct {
	pending atomic.Int64
	last    chan time.Time // when the last of them had all
}

func newCrowd() *crowd { return &crowd{last: make(chan time.Time, 1)} }

// reader takes in what a socket brings, sees where messages begin and end, and
// counts. It is the same for sessions and for the bound. The tag is not checked and
// records are not decoded: that is the client's cost, not the reflector's.
type reader struct {
	nc    net.Conn
	crowd *crowd
	bytes atomic.Uint64
	msgs  atomic.Uint64 // Updates
	recs  atomic.Uint64 // hosts and faults in them
	zones atomic.Uint64
	syncs atomic.Uint64 // EndOfSyncs
	want  atomic.Uint64 // of recs: when there, the crowd waits for one less
	watch atomic.Pointer[watch]
	frame atomic.Pointer[[]byte]
	keep  atomic.Bool // the next Update is kept in frame
	err   error       // set before done is closed
	done  chan struct{}
}

func newReader(nc net.Conn, c *crowd) *reader {
	r := &reader{nc: nc, crowd: c, done: make(chan struct{})}
	r.want.Store(1 << 62)
	return r
}

const readBuffer = 2 << 10

func (r *reader) run() {
	defer close(r.done)
	buf := make([]byte, readBuffer)
	from, to := 0, 0
	for {
		n, err := r.nc.Read(buf[to:])
		r.bytes.Add(uint64(n))
		to += n
		for to-from >= wire.HeaderLen {
			size := int(binary.BigEndian.Uint32(buf[from:]))
			if size < wire.HeaderLen || size > wire.MaxMessage {
				r.err = errors.New("this is no message")
				return
			}
			if to-from < size {
				if size > len(buf) {
					buf = append(make([]byte, 0, size), buf[from:to]...)[:size]
					from, to = 0, to-from
				}
				break
			}
			if why := r.message(buf[from : from+size]); why != nil {
				r.err = why
				return
			}
			from += size
		}
		if from == to {
			from, to = 0, 0
		} else if from > 0 && to == len(buf) {
			to = copy(buf, buf[from:to])
			from = 0
		}
		if n == len(buf) && len(buf) < 64<<10 { // there is more: fewer reads
			buf = append(make([]byte, 0, 2*len(buf)), buf[:to]...)[:2*len(buf)]
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				r.err = err
			}
			return
		}
	}
}

// message counts what one message has; the error is the peer's last word.
func (r *reader) message(m []byte) error {
	switch wire.MsgType(m[5]) {
	case wire.TypeUpdate:
		if r.keep.CompareAndSwap(true, false) {
			c := append([]byte(nil), m...)
			r.frame.Store(&c)
		}
		end := len(m)
		if m[7]&1 != 0 {
			end -= wire.TagLen
		}
		recs := uint64(0)
		for at := wire.HeaderLen; at+4 <= end; {
			switch m[at] &^ 0x80 {
			case tlvDown:
				if w := r.watch.Load(); w != nil {
					w.see(m[at+4:at+4+(int(m[at+1])<<16|int(m[at+2])<<8|int(m[at+3]))], m)
				}
				recs++
			case tlvHost:
				recs++
			case tlvZone:
				r.zones.Add(1)
			}
			at += 4 + (int(m[at+1])<<16 | int(m[at+2])<<8 | int(m[at+3]))
		}
		r.msgs.Add(1)
		r.count(recs)
	case wire.TypeEndOfSync:
		r.syncs.Add(1)
		r.count(0)
	case wire.TypeNotification:
		if n, err := wire.Decode(m); err == nil {
			n := n.(*wire.Notification)
			return &link.PeerError{Code: n.Code, Text: n.Text}
		}
	}
	return nil
}

func (r *reader) count(recs uint64) {
	if recs == 0 {
		return
	}
	got, want := r.recs.Add(recs), r.want.Load()
	if got >= want && got-recs < want && r.crowd.pending.Add(-1) == 0 {
		r.crowd.last <- time.Now()
	}
}

// expect lets the crowd wait until each of some readers has so many records more.
func (c *crowd) expect(rs []*reader, more uint64) {
	c.pending.Store(int64(len(rs)))
	for _, r := range rs {
		r.want.Store(r.recs.Load() + more)
	}
}
