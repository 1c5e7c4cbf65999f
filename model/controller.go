package model

// Controller decides at what pace, and with how much in flight, queue pairs send. One value
// serves all queue pairs of one Control; what it knows of each it keeps by QP.ID, so that
// the pairs of different hosts may run on different cores. It is told what it Hears.
type Controller interface {
	Hears() Hear
	Open(q QP)                          // before the first frame
	Ack(q QP, a Ack)                    // an ACK or NACK has come
	Notified(q QP)                      // a CNP, or an ACK with the bit that stands for one
	Sent(q QP, psn uint32, bytes int64) // a data frame has left
	Timer(q QP, n int)                  // a timer of QP.Timer has run out
	State(q QP) (st ControlState)       // for those who look on
}

// Hear says what a Controller is told, as bits.
type Hear uint8

// What there is to hear.
const (
	HearNotified Hear = 1 << iota
	HearAcks
	HearSent
)

// Ack is what an ACK or NACK tells.
type Ack struct {
	Psn    uint32 // the frame that the receiver expects next
	New    uint32 // frames that it acknowledges for the first time
	Nack   bool
	Marked bool // the frame that it answers met congestion (CE)
}

// ControlState is how the control of a queue pair stands.
type ControlState struct {
	CNPs, Cuts, Ups uint64
	RTTs            uint64 // round trips measured
	RTTMin, RTTMax  Time
	RTTSum          Time
}

// Control is the settings of a rate control. What a flow's receiver tells its sender belongs to
// them.
type Control interface {
	Settings
	Controller() Controller
	Marking() ECN // of switches that have no thresholds of their own
	Answer() Answer
}

// Uncontrolled as FlowSpec.Congestion is a flow without rate control, whatever its NIC has.
var Uncontrolled Control = uncontrolled{}

type uncontrolled struct{ Control }

// Answer is what the receiver of a flow does beside acknowledging.
type Answer struct {
	Echo      bool             // a bit in the ACK of each marked frame
	CNPEvery  Time             // least time between the CNPs of a flow; 0 = none
	CNPDSCP   uint8            // 0..63, of CNPs
	Header    int32            // bytes that data frames are longer by, for stamps and telemetry
	Ack       int32            // bytes that ACKs are longer by
	Receiver  ReceiverSettings // nil: the NIC's
	NoECT     bool             // its frames say that they cannot be marked
	Telemetry bool             // switches write into its frames what they are loaded with
}

// hearsNothing is for Controllers to embed that are not told everything.
type hearsNothing struct{}

func (hearsNothing) Ack(QP, Ack)            {}
func (hearsNothing) Notified(QP)            {}
func (hearsNothing) Sent(QP, uint32, int64) {}
func (hearsNothing) Timer(QP, int)          {}
func (hearsNothing) State(QP) ControlState  { return ControlState{} }

// Prober is a Controller that sends probes: it is told of answers.
type Prober interface {
	Answered(q QP, serial uint32)
}

// TimeOuts is a Controller that is told when its flow goes back to the first frame that is
// not acknowledged, because nothing was heard for the NIC's time-out.
type TimeOuts interface {
	TimedOut(q QP)
}

// probeFrame is the size of a probe and of its answer; the answer comes in answerQueue.
const (
	probeFrame  = 64
	answerQueue = 6
)

// Probe sends a probe in the class of the data, ahead of what the queue pairs of the host
// have to send. Its answer comes at high priority.
func (q QP) Probe(serial uint32) {
	s, p := q.s, &q.s.qps[q.id]
	n := &s.nics[p.nic]
	pk := s.pool.get()
	f := &s.pool.pkts[pk]
	*f = packet{flow: q.id, psn: serial, hash: p.hash, dst: p.home, size: probeFrame, tos: p.tos &^ ecnMask, kf: kindFlags(kindProbe, 0, p.q)}
	s.made[kindProbe]++
	s.hostQueue(n.port, &s.ports[n.port], pk, f)
}

// probed answers a probe, or hands the answer to the sender.
func (s *Sim) probed(pi int32, pt *port, pk int32, p *packet) {
	if p.flags()&flagAnswer != 0 {
		id, serial := p.flow, p.psn
		s.pool.put(pk)
		if q := &s.qps[id]; !q.done {
			if c, ok := s.control(q).(Prober); ok {
				c.Answered(QP{s, id}, serial)
			}
		}
		return
	}
	r := &s.rx[p.flow]
	*p = packet{flow: p.flow, psn: p.psn, hash: r.hash, dst: r.home, size: probeFrame, tos: answerQueue << 5, kf: kindFlags(kindProbe, flagAnswer, answerQueue)}
	s.made[kindProbe]++
	s.hostQueue(pi, pt, pk, p)
}

// Unacked gives the first frame that is not acknowledged.
func (q QP) Unacked() uint32 { return q.s.qps[q.id].sndUna }

// Resend sends the first frame that is not acknowledged again, ahead of new ones.
func (q QP) Resend() {
	if p := &q.s.qps[q.id]; p.sndUna < p.sndNxt {
		p.hole = p.sndUna
		q.s.wake(q.id)
	}
}

// QP is a queue pair as its Controller sees it.
type QP struct {
	s  *Sim
	id int32
}

// perQP gives a list of what a Controller keeps of each queue pair room for one more of them, or for
// as many as the fabric has room for.
func perQP[T any](v []T, q QP) []T {
	n := q.ID() + 1
	if n <= len(v) {
		return v
	}
	if n > cap(v) {
		bigger := make([]T, len(v), max(n, cap(q.s.qps)))
		copy(bigger, v)
		v = bigger
	}
	return v[:n]
}

// ID numbers the queue pairs of a fabric from 0.
func (q QP) ID() int { return int(q.id) }

// Now gives the virtual time.
func (q QP) Now() Time { return q.s.now }

// Line gives the greatest rate: that of the link, or of the flow if it has a lower one.
func (q QP) Line() Rate {
	r := q.s.portInfo[q.s.nics[q.s.qps[q.id].nic].port].rate
	if own := q.s.flows[q.id].spec.Rate; own > 0 {
		r = min(r, own)
	}
	return r
}

// SetRate sets the pace of the frames after the next one, whose time stands.
func (q QP) SetRate(r Rate) {
	p := &q.s.qps[q.id]
	p.psb = r.perByte()
	p.gapFull = q.s.span(p.full, p.psb)
}

// SetPace is SetRate that moves the next frame too, by the difference of the gaps.
func (q QP) SetPace(r Rate) {
	p := &q.s.qps[q.id]
	before := p.gapFull
	q.SetRate(r)
	p.next += p.gapFull - before
	if p.state == qpWaiting {
		n := &q.s.nics[p.nic]
		n.moveWait(p.next, q.id)
		q.s.nicArm(n.port, &q.s.ports[n.port])
	}
}

// Rate gives the present pace.
func (q QP) Rate() Rate { return Rate((8e12<<serBits + q.s.qps[q.id].psb/2) / q.s.qps[q.id].psb) }

// Next gives the sequence number of the next new frame.
func (q QP) Next() uint32 { return q.s.qps[q.id].sndNxt }

// MTU gives the payload of a full frame in bytes.
func (q QP) MTU() int32 { return q.s.nics[q.s.qps[q.id].nic].prof.MTU }

// Frame gives the bytes of a full frame on the wire.
func (q QP) Frame() int32 { return int32(q.s.qps[q.id].full) }

// BaseRTT gives the longest round trip of the fabric when it is empty: propagation both ways and
// the serialisation of one payload at every hop. A Controller that needs it asks first when a queue
// pair opens: it is found then, over all pairs of access switches, and kept.
func (q QP) BaseRTT() Time {
	if q.s.longestRTT == 0 {
		q.s.longestRTT = q.s.findLongestRTT()
	}
	return q.s.longestRTT
}

// SetWindow bounds the frames in flight; 0 is no bound.
func (q QP) SetWindow(frames int32) { q.s.qps[q.id].win = frames }

// Timer has the Controller's Timer called with n, 0 or 1, at the given moment. It cannot be
// taken back: who changes his mind looks at the time when it comes.
func (q QP) Timer(n int, at Time) { q.s.schedule(at, evDecrease+uint32(n), q.id) }

// control is a Control at work in a fabric.
type control struct {
	set    Control
	ctl    Controller
	answer Answer
}

// controlOf gives the number of a Control among those at work; 0 is none.
func (s *Sim) controlOf(c Control) uint8 {
	if len(s.controls) == 0 {
		s.controls = make([]control, 1, 4)
	}
	if c == nil {
		return 0
	}
	for i := range s.controls {
		if s.controls[i].set == c {
			return uint8(i)
		}
	}
	if c.Answer().Telemetry && !s.telemetry {
		s.telemetry = true
		s.useTelemetry()
	}
	s.controls = append(s.controls, control{set: c, ctl: c.Controller(), answer: c.Answer()})
	return uint8(len(s.controls) - 1)
}

// control gives the Controller of a queue pair.
func (s *Sim) control(q *qp) Controller { return s.controls[q.ctl].ctl }

func (s *Sim) controlTimer(id int32, n int) {
	if q := &s.qps[id]; !q.done {
		s.control(q).Timer(QP{s, id}, n)
	}
}
