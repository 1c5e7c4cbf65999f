package model

import "fmt"

// Messages: a queue pair may live as long as the run and carry one message after the
// other, as RDMA writes, reads and sends do. The handler is told when the last frame
// of a message has been delivered in order at the far end.

// MessageHandler is what a Handler may implement to be told of messages.
type MessageHandler interface {
	Delivered(s *Sim, id FlowID, tag uint64)
}

// message is one transfer on a queue pair.
type message struct {
	end  uint32 // sequence number after its last frame
	last uint16 // bytes on the wire of its last frame
}

// msgQueue is the sending end of a queue pair's messages: those that are not acknowledged.
type msgQueue struct {
	list []message
	head int // the first not acknowledged
	cur  int // the one being sent
}

// dueQueue is the receiving end: those of which the handler is still to be told.
type dueQueue struct {
	list []due
	next int
}

// due is a message on its way.
type due struct {
	tag uint64
	end uint32 // sequence number after its last frame
}

// OpenQP opens a queue pair for messages at the present time; Bytes and Start of the
// specification are not looked at.
func (s *Sim) OpenQP(f FlowSpec) (FlowID, error) {
	f.Bytes, f.Start = 1, s.now
	wasRunning := s.running
	s.running = false // not to be begun as an ordinary flow
	listed := len(s.starts)
	id, err := s.AddFlow(f)
	s.running = wasRunning
	if err != nil {
		return 0, err
	}
	s.starts = s.starts[:listed]
	s.sorted = wasRunning
	q := &s.qps[id]
	q.total, q.msgs = 0, int32(len(s.msgs))
	s.msgs, s.dues = append(s.msgs, msgQueue{}), append(s.dues, dueQueue{})
	s.flows[id].begun = true
	return id, nil
}

// Post adds a message of at least one byte to a queue pair.
func (s *Sim) Post(id FlowID, bytes int64, tag uint64) error {
	if int(id) >= len(s.qps) || s.qps[id].msgs < 0 {
		return fmt.Errorf("%w %d: not a queue pair for messages", ErrFlow, id)
	}
	q := &s.qps[id]
	p := s.nics[q.nic].prof
	frames := (bytes + int64(p.MTU) - 1) / int64(p.MTU)
	if bytes <= 0 || int64(q.total)+frames >= 1<<32-1 {
		return fmt.Errorf("%w %d: message of %d bytes", ErrFlow, id, bytes)
	}
	if q.done {
		return nil // closed: the message goes nowhere
	}
	q.total += uint32(frames)
	m := &s.msgs[q.msgs]
	m.list = append(m.list, message{end: q.total, last: uint16(bytes-(frames-1)*int64(p.MTU)) + q.full - uint16(p.MTU)})
	if d := (due{tag, q.total}); s.owner == nil {
		s.dues[q.msgs].list = append(s.dues[q.msgs].list, d)
	} else {
		s.announce(q.msgs, s.owner[s.nics[s.rx[id].dst].port], d)
	}
	s.wake(int32(id))
	return nil
}

// CloseQP ends a queue pair: nothing is sent or delivered on it any more.
func (s *Sim) CloseQP(id FlowID) {
	q := &s.qps[id]
	q.done = true
	q.sndNxt, q.hole = q.total, noHole
	s.flows[id].done = s.now
	if q.msgs >= 0 {
		s.msgs[q.msgs], s.dues[q.msgs] = msgQueue{}, dueQueue{}
	}
}

// msgFrame gives size and flags of a frame of a queue pair; flags are those it has anyway.
func (s *Sim) msgFrame(q *qp, psn uint32, flags uint8) (uint16, uint8) {
	m := &s.msgs[q.msgs]
	if m.cur > m.head && m.list[m.cur-1].end > psn {
		m.cur = m.head // it went back
	}
	for m.list[m.cur].end <= psn {
		m.cur++
	}
	if psn == m.list[m.cur].end-1 {
		return m.list[m.cur].last, flagTell
	}
	return q.full, flags
}

// delivered tells the handler of messages that are complete at the receiver.
func (s *Sim) delivered(id int32, expect uint32) {
	d := &s.dues[s.qps[id].msgs]
	for d.next < len(d.list) && d.list[d.next].end <= expect {
		tag := d.list[d.next].tag
		if d.next++; d.next > 64 && d.next*2 > len(d.list) {
			d.list = d.list[:copy(d.list, d.list[d.next:])]
			d.next = 0
		}
		if h, ok := s.handler.(MessageHandler); ok {
			h.Delivered(s, FlowID(id), tag)
			d = &s.dues[s.qps[id].msgs] // it may have opened queue pairs
		}
	}
}

// ackedMessages forgets what is acknowledged.
func (s *Sim) ackedMessages(q *qp) {
	m := &s.msgs[q.msgs]
	for m.head < len(m.list) && m.list[m.head].end <= q.sndUna {
		m.head++
	}
	m.cur = max(m.cur, m.head)
	if m.head > 64 && m.head*2 > len(m.list) {
		n := copy(m.list, m.list[m.head:])
		m.list = m.list[:n]
		m.cur, m.head = m.cur-m.head, 0
	}
}
