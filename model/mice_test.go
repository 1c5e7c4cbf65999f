package model

import "testing"

// withMice is n hosts on a switch that puts the first packets of flows of class 3 into class 4.
func withMice(t *testing.T, n int, m *Mice) *Sim {
	sp := ReferenceSwitch(4<<20, nil)
	sp.Stages = []StageSettings{m}
	return oneSwitch(t, n, sp, ReferenceNIC(nil), link100, Options{Seed: 1})
}

// The first 128 packets of a flow are a mouse's, the 129th takes the flow's own queue; after a
// pause of more than 10 ms the count begins anew, after a shorter one it does not.
func TestTheFirstPacketsAreAMouse(t *testing.T) {
	s := withMice(t, 2, &Mice{Packets: 128, Idle: 10 * Millisecond, From: 3, To: 4, Flows: 10})
	id, err := s.OpenQP(FlowSpec{Src: 0, Dst: 1, TOS: 3 << 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at        Time
		mice, own uint64
	}{{0, 128, 2}, {9 * Millisecond, 128, 132}, {20 * Millisecond, 256, 134}} {
		run(t, s, c.at)
		if err := s.Post(id, 130_000, 0); err != nil { // 130 packets
			t.Fatal(err)
		}
		run(t, s, c.at+Millisecond)
		if mice, own := s.Queue(s.PortOf(0, 1), 4).TxFrames, s.Queue(s.PortOf(0, 1), 3).TxFrames; mice != c.mice || own != c.own {
			t.Errorf("after the 130 packets at %v: %d as a mouse, %d in their own queue, want %d and %d", c.at, mice, own, c.mice, c.own)
		}
	}
}

// Mice go before all that is in lower queues: so many that they fill the port starve an elephant.
func TestTooManyMiceStarve(t *testing.T) {
	s := withMice(t, 4, &Mice{Packets: 128, Idle: 10 * Millisecond, From: 3, To: 4, Flows: 10_000})
	elephant, err := s.AddFlow(FlowSpec{Src: 0, Dst: 3, Bytes: Forever, TOS: 3 << 5})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 { // from 200 us on 1.25 times what the port carries, for 200 us and more
		if _, err := s.AddFlow(FlowSpec{Src: EndpointID(1 + i%2), Dst: 3, Bytes: 10_000, TOS: 3 << 5, Start: 200*Microsecond + Time(i)*670*Nanosecond}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, 200*Microsecond)
	before := s.Flow(elephant).Acked
	run(t, s, 250*Microsecond)
	from := s.Flow(elephant).Acked
	run(t, s, 450*Microsecond)
	if alone, beside := before, s.Flow(elephant).Acked-from; alone < 2_200_000 || beside > alone/100 {
		t.Errorf("the elephant has %d bytes in 200 us alone, %d beside the mice", alone, beside)
	}
}
