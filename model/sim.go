package model

import (
	"errors"
	"fmt"
)

// Classes of random generators.
const (
	classPort = iota
	classFlow
	classSwitch
	classApp
	classStage
)

const (
	keyBits = 27 // of the entity; the kind stands above
	keyMask = 1<<keyBits - 1
)

// node is a switch or a host.
type node struct {
	name     string
	portBase int32
	nports   int32
	sw, nic  int32 // index of the switch, or of the first NIC
}

// Sim is a fabric at work. It is not safe for concurrent use except for Stop.
type Sim struct {
	now        Time
	heap       wheel
	pool       pool
	ports      []port
	queues     []queue
	lost       []lost // of each queue
	ingress    []ingress
	switches   []swtch
	nics       []nic
	qps        []qp
	rx         []rxqp
	longestRTT Time       // of the empty fabric, once somebody asked
	plan       *nslbPlan  // of flows placed at the start
	innerECN   uint32     // bits of a hash that hold the inner codepoint, in fabrics with tunnels
	telemetry  bool       // switches write it
	ints       []*intRing // telemetry of queue pairs that use it
	receivers  []receiver
	controls   []control // [0] is none
	routes     []uint16
	homes      []int32  // the switch of each column of routes
	home       []uint16 // the column of each destination
	local      []int32  // the port of its switch towards each endpoint, -1 = none
	paths      *router  // over what is up now, for RerouteSwitch; nil = not computed since the last change

	groups     []group
	hops       []PortID
	pauses     []pauseState
	portInfo   []portInfo
	nodes      []node
	links      []link
	flows      []flow
	msgs       []msgQueue
	dues       []dueQueue
	starts     []int32 // flows in order of start that are not yet started
	pfcTimes   [][NumQueues]uint16
	pfcFree    []int32
	raws       [][]byte
	rawFree    []int32
	timers     timers
	brakes     []brakeState
	tuners     []tunerAt
	cut        []uint64 // bit of each port whose peer is in another shard; nil = the fabric is whole
	flight     []flight // their wires, at the receiving shard
	cutting    *cutting // how the fabric was cut last
	held       []event  // of the whole fabric, while it is cut
	peak       int      // the most frames that all shards together had room for
	out        [2][]box // frames for other shards: written in this window, read in this window
	box        int      // which of them is written
	mailAt     Time     // earliest arrival of those
	first      Time     // of what is to do after the last window
	trip       Time     // of the first look at a queue that may take its port down
	owner      []int16  // shard of each port
	shard      int16
	lastWindow int // events of a shard in its last window

	opt       Options
	drops     [numReasons]dropCount
	made      [numKinds]uint64
	sent      [kindMask + 1]uint64 // frames put on a link, by kind
	ended     [numKinds]uint64     // frames that reached their end
	events    uint64
	hash      uint64
	stop      stopper
	handler   Handler
	nicRate   Rate
	sorted    bool
	running   bool
	addressed bool // switches are destinations too
	active    int
	finished  int
}

// Handler is told what happens to flows and timers; it may start new ones.
type Handler interface {
	FlowDone(s *Sim, id FlowID)
	Timer(s *Sim, tag uint64)
	Control(s *Sim, port PortID, frame []byte)
}

// SetHandler sets who is told; nil is nobody.
func (s *Sim) SetHandler(h Handler) { s.handler = h }

// Now gives the virtual time.
func (s *Sim) Now() Time { return s.now }

// Events gives how many events have been handled.
func (s *Sim) Events() uint64 { return s.events }

// TraceHash gives the hash of all events so far, if Options.Trace asked for it: a sum
// over what happened when, whichever shard did it. Two runs with the same hash did the
// same things at the same moments.
func (s *Sim) TraceHash() uint64 { return s.hash }

func (s *Sim) schedule(at Time, kind uint32, idx int32) {
	s.heap.schedule(at, kind<<keyBits|uint32(idx))
}

// ErrStopped is returned by Run when Stop ended it.
var ErrStopped = errors.New("stopped")

// Run handles all events up to and including until; the clock then stands at until.
// It may be called again with a later time.
func (s *Sim) Run(until Time) error {
	if until < s.now {
		return fmt.Errorf("cannot run until %v: it is %v already", until, s.now)
	}
	s.sortStarts()
	for {
		if s.stop.due(s) {
			return ErrStopped
		}
		if !s.batch(until, stopEvery) {
			s.now = until
			return nil
		}
	}
}

// RunWhile runs until cond says no, or until the given time; cond is asked every
// 4,096 events.
func (s *Sim) RunWhile(until Time, cond func() bool) error {
	s.sortStarts()
	for cond() {
		if s.stop.due(s) {
			return ErrStopped
		}
		if !s.batch(until, 4096) {
			s.now = until
			return nil
		}
	}
	return nil
}

// batch handles at most n events; false means that none is left before until.
func (s *Sim) batch(until Time, n int) bool {
	h := &s.heap
	for range n {
		if h.ri == len(h.run) && !h.advance() {
			return false
		}
		e := h.run[h.ri]
		if e.at > until {
			return false
		}
		h.ri++
		s.now = e.at
		s.events++
		if s.opt.Trace {
			s.hash += mix64(uint64(e.at) ^ mix64(uint64(e.key)))
		}
		idx := int32(e.key & keyMask)
		switch kind := e.key >> keyBits; kind { // nearly all are of the first two
		case evArrive:
			s.arrive(idx)
		case evKick:
			s.kick(idx)
		default:
			events[kind].handle(s, idx)
		}
	}
	return true
}
