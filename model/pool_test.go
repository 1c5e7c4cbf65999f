package model

import (
	"slices"
	"testing"
	"unsafe"
)

// The pool of frames may move whenever a frame is made, also while another one is being sent: a
// frame that leaves may have an XON made for the port it came from.
func TestPoolMayMoveAtAnyMoment(t *testing.T) {
	s := oneSwitch(t, 3, ReferenceSwitch(400_000, nil), ReferenceNIC(nil), link100, Options{Seed: 1})
	for src := range EndpointID(2) {
		if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 2, Bytes: Forever, TOS: 3 << 5}); err != nil {
			t.Fatal(err)
		}
	}
	for at := Time(0); at < 300*Microsecond; at += 83 * Nanosecond {
		// No free frames and no room: the next one made moves the pool.
		s.pool.pkts, s.pool.n = slices.Clip(s.pool.pkts), 0
		run(t, s, at)
		if err := s.CheckConservation(); err != nil {
			t.Fatal(err)
		}
		if len(s.pool.pkts) > 1<<20 {
			break
		}
	}
	if s.XoffSent() < 10 {
		t.Errorf("only %d XOFF: this test shows nothing", s.XoffSent())
	}
}

// What each frame touches of a port, of a queue and of a receiving end is a cache line each, and
// two frames share one.
func TestHotRecordsAreCacheLines(t *testing.T) {
	const line = 64
	for what, size := range map[string][2]uintptr{
		"port": {unsafe.Sizeof(port{}), line}, "queue": {unsafe.Sizeof(queue{}), line},
		"receiving end": {unsafe.Sizeof(rxqp{}), line}, "frame": {unsafe.Sizeof(packet{}), line / 2},
	} {
		if size[0] != size[1] {
			t.Errorf("a %s has %d bytes, want %d", what, size[0], size[1])
		}
	}
}

// Flows that are expected are added without copying those before them, nor what their controller
// keeps of each.
func TestExpectedFlowsStayWhereTheyAre(t *testing.T) {
	cc := CX4()
	s := oneSwitch(t, 3, ReferenceSwitch(4<<20, cc), ReferenceNIC(cc), link100, Options{Seed: 1})
	const n = 1000
	s.ExpectFlows(n)
	first := 0
	for i := range n {
		id, err := s.AddFlow(FlowSpec{Src: EndpointID(i % 2), Dst: 2, Bytes: 1000, Start: Time(i), TOS: 3 << 5})
		if err != nil {
			t.Fatal(err)
		}
		rooms := cap(s.flows) + cap(s.qps) + cap(s.rx) + cap(s.starts) + cap(s.control(&s.qps[id]).(*reactionPoint).qps)
		if i == 0 {
			first = rooms
		}
		if rooms != first {
			t.Fatalf("flow %d: room for %d records in all, at first for %d", i, rooms, first)
		}
	}
}
