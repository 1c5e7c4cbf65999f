package model

import "testing"

// lagged is two switches joined by n parallel links, with two hosts at each.
func lagged(t *testing.T, n int) (*Sim, []LinkID) {
	t.Helper()
	net := &Network{}
	p := ReferenceSwitch(8<<20, nil)
	a, b := net.AddSwitch("a", p), net.AddSwitch("b", p)
	var links []LinkID
	for range n {
		l, err := net.Connect(a, b, link100)
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, l)
	}
	for _, sw := range []NodeID{a, a, b, b} {
		if _, err := net.Connect(net.AddHost("h", ReferenceNIC(nil)), sw, link100); err != nil {
			t.Fatal(err)
		}
	}
	s, err := net.Build(Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s, links
}

// Flows spread over the members by their hash, each staying on one.
func TestLAGSpreadsFlows(t *testing.T) {
	s, links := lagged(t, 4)
	for i := range 400 {
		if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i % 2), Dst: EndpointID(2 + i%2), Bytes: 2000, TOS: 3 << 5, Start: Time(i) * 2 * Microsecond}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, 2*Millisecond)
	for _, l := range links {
		a, _ := s.LinkPorts(l)
		if n := s.Queue(a, 3).TxFrames; n%2 != 0 || n < 2*70 || n > 2*130 {
			t.Errorf("a member carried %d frames of 800, two a flow", n)
		}
	}
}

// When a member goes its flows go over the others at once; only what was on it is lost.
// When all are gone, all is lost until one is back.
func TestLAGMemberFails(t *testing.T) {
	s, links := lagged(t, 3)
	var ids []FlowID
	for i := range 20 {
		id, err := s.AddFlow(FlowSpec{Src: EndpointID(i % 2), Dst: EndpointID(2 + i%2), Bytes: Forever, TOS: 3 << 5, Rate: 5 * Gbps, NoCC: true})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	run(t, s, 100*Microsecond)
	s.SetLink(links[0], false)
	run(t, s, 200*Microsecond)
	lost := s.Totals().Dropped[DropCarrier.String()]
	if lost == 0 || lost > 30 {
		t.Errorf("%d frames lost with a member, about a microsecond of 33 Gb/s both ways is on it", lost)
	}
	got := func() (n uint64) {
		for _, id := range ids {
			n += uint64(s.rx[id].expect) + uint64(s.rx[id].ooo)
		}
		return n
	}
	before := got()
	run(t, s, 300*Microsecond)
	if n := s.Totals().Dropped[DropCarrier.String()]; n != lost || got() < before+1100 { // 100 Gb/s for 100 us are 1,192 frames
		t.Errorf("%d more frames lost, %d received", n-lost, got()-before)
	}
	s.SetLink(links[1], false)
	s.SetLink(links[2], false)
	run(t, s, 400*Microsecond)
	if n := s.Totals().Dropped[DropCarrier.String()]; n < lost+1000 {
		t.Errorf("%d frames lost without any member", n-lost)
	}
	s.SetLink(links[1], true)
	run(t, s, 410*Microsecond)
	before = got()
	run(t, s, 510*Microsecond)
	if got() < before+1000 {
		t.Errorf("%d frames received over the member that came back", got()-before)
	}
	if err := s.CheckConservation(); err != nil {
		t.Error(err)
	}
}
