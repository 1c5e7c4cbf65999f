package model

import "testing"

// twoSwitches is h0 - a - b - h1 with all links alike.
func twoSwitches(t *testing.T, a, b SwitchProfile) *Sim {
	t.Helper()
	net := &Network{}
	x, y := net.AddSwitch("a", a), net.AddSwitch("b", b)
	h0, h1 := net.AddHost("h0", ReferenceNIC(nil)), net.AddHost("h1", ReferenceNIC(nil))
	for _, l := range [][2]NodeID{{h0, x}, {x, y}, {y, h1}} {
		if _, err := net.Connect(l[0], l[1], link100); err != nil {
			t.Fatal(err)
		}
	}
	s, err := net.Build(Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// one sends ten frames and gives the classes in which they passed the NIC, a and b.
func classesOf(t *testing.T, a, b SwitchProfile, f FlowSpec) (got [3]int) {
	t.Helper()
	s := twoSwitches(t, a, b)
	f.Src, f.Dst, f.Bytes = 0, 1, 10_000
	id, err := s.AddFlow(f)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, Millisecond)
	if s.Flow(id).Done == 0 {
		t.Fatal("the flow did not complete")
	}
	for i, p := range []PortID{s.PortOf(2, 0), s.PortOf(0, 1), s.PortOf(1, 1)} {
		got[i] = -1
		for q := range NumQueues {
			if s.Queue(p, q).TxFrames == 10 {
				got[i] = q
			}
		}
	}
	return got
}

// The class at a switch comes from the trusted field: DSCP, or the outer 802.1p priority,
// or for untagged frames the priority of the port.
func TestTrust(t *testing.T) {
	dscp := ReferenceSwitch(1<<20, nil)
	l2 := dscp
	l2.Trust8021p = true
	port5 := l2
	port5.PortPriority = 5
	moved := l2
	m := DefaultPriorities()
	m[3] = 6
	moved.Priorities = m
	mapped := dscp
	d := DefaultDSCP()
	d[24] = 4
	mapped.DSCP = d
	remark := mapped
	remark.Remark = true
	tagged := func(prio uint8) FlowSpec { return FlowSpec{TOS: 24 << 2, Tagged: true, Priority: prio} }
	untagged := FlowSpec{TOS: 24 << 2}
	for _, c := range []struct {
		name string
		a, b SwitchProfile
		f    FlowSpec
		want [3]int // at the NIC, at a, at b
	}{
		{"DSCP", dscp, dscp, untagged, [3]int{3, 3, 3}},
		{"DSCP wins over the tag", dscp, dscp, tagged(5), [3]int{5, 3, 3}},
		{"the tag wins over DSCP", l2, l2, tagged(5), [3]int{5, 5, 5}},
		{"untagged: port priority 0", l2, l2, untagged, [3]int{3, 0, 0}},
		{"untagged: port priority 5", port5, l2, untagged, [3]int{3, 5, 5}},
		{"priority map", moved, l2, tagged(3), [3]int{3, 6, 6}},
		{"the tag is rewritten to the class", moved, moved, tagged(3), [3]int{3, 6, 6}},
		{"DSCP map, then trust in the tag", mapped, l2, untagged, [3]int{3, 4, 4}},
		{"DSCP is left alone", mapped, dscp, untagged, [3]int{3, 4, 3}},
		{"DSCP is remarked to that of the class", remark, dscp, untagged, [3]int{3, 4, 4}},
	} {
		if got := classesOf(t, c.a, c.b, c.f); got != c.want {
			t.Errorf("%s: classes %v, want %v", c.name, got, c.want)
		}
	}
}

// A switch that trusts 802.1p pauses a host in the class of the tag, and nothing is lost.
func TestPauseFollowsTheTag(t *testing.T) {
	sp := ReferenceSwitch(400_000, nil)
	sp.Trust8021p, sp.Lossless = true, 1<<5
	s := oneSwitch(t, 3, sp, ReferenceNIC(nil), link100, Options{Seed: 1})
	for src := range EndpointID(2) {
		if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 2, Bytes: Forever, TOS: 24 << 2, Tagged: true, Priority: 5}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, 500*Microsecond)
	if d := s.Totals().Dropped; len(d) > 0 {
		t.Errorf("dropped %v", d)
	}
	if st := s.Queue(s.PortOf(1, 0), 5); st.RxXoff == 0 || st.Paused == 0 {
		t.Errorf("host 0 was not paused in class 5: %+v", st)
	}
	if st := s.Queue(s.PortOf(1, 0), 3); st.RxXoff != 0 {
		t.Errorf("host 0 was paused in class 3: %+v", st)
	}
}

func TestPrioritiesAreChecked(t *testing.T) {
	bad := ReferenceSwitch(1<<20, nil)
	bad.Priorities = &[NumQueues]uint8{7: 8}
	bad.Trust8021p = true
	net := &Network{}
	net.AddSwitch("s", bad)
	if _, err := net.Build(Options{}); err == nil {
		t.Error("a queue 8 was accepted")
	}
	s := oneSwitch(t, 2, ReferenceSwitch(1<<20, nil), ReferenceNIC(nil), link100, Options{})
	for _, f := range []FlowSpec{{Tagged: true, Priority: 8}, {Priority: 3}} {
		f.Dst, f.Bytes = 1, 1
		if _, err := s.AddFlow(f); err == nil {
			t.Errorf("%+v was accepted", f)
		}
	}
}

// Without flow control a lossy queue is cut at its limit, and both buffer models say so.
func TestTailDrop(t *testing.T) {
	for _, cells := range []bool{false, true} {
		sp := ReferenceSwitch(1<<20, nil)
		sp.Lossless = 0
		if cells {
			sp.MMU, sp.Cells = MMUCells, CellMMU{Cell: 320, Limit: 100_000}
		}
		s := oneSwitch(t, 3, sp, ReferenceNIC(nil), link100, Options{Seed: 1})
		for src := range EndpointID(2) {
			if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 2, Bytes: 1_000_000, TOS: 3 << 5}); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, 300*Microsecond)
		tot := s.Totals()
		if tot.Dropped[DropTail.String()] == 0 || len(tot.Dropped) != 1 || tot.TxXoff != 0 {
			t.Errorf("cells %v: dropped %v, %d XOFF", cells, tot.Dropped, tot.TxXoff)
		}
		if peak := s.Queue(s.PortOf(0, 2), 3).Peak; cells && (peak > 101_000 || peak < 80_000) {
			t.Errorf("the queue reached %d bytes at a limit of 100,000", peak)
		}
		if err := s.CheckConservation(); err != nil {
			t.Error(err)
		}
	}
}

// 802.3x: a switch whose link carries PAUSE stops the whole host, and loses nothing.
func TestPauseFrames(t *testing.T) {
	sp := ReferenceSwitch(400_000, nil)
	sp.PFC.Pause, sp.PFC.Quanta = true, 3000
	s := oneSwitch(t, 3, sp, ReferenceNIC(nil), link100, Options{Seed: 1})
	for src := range EndpointID(2) {
		for _, tos := range []uint8{3 << 5, 5 << 5} {
			if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 2, Bytes: Forever, TOS: tos}); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(t, s, 500*Microsecond)
	tot := s.Totals()
	if tot.Created["pause"] < 10 || tot.Created["pfc"] != 0 {
		t.Errorf("%v", tot.Created)
	}
	if tot.Dropped[DropHeadroom.String()] != 0 {
		t.Errorf("dropped %v", tot.Dropped)
	}
	for _, q := range []int{3, 5} {
		if st := s.Queue(s.PortOf(1, 0), q); st.Paused == 0 {
			t.Errorf("class %d of host 0 was never stopped", q)
		}
	}
}
