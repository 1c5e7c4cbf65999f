package model

import "testing"

// hooked is up - leaf - down with the leaf's uplink group of both; a flow of class 3
// from a host at up to one at down is moved to class 4 at the leaf. The second host at down
// stops the leaf in class 4.
func hooked(t *testing.T, old bool) *Sim {
	t.Helper()
	net := &Network{}
	p := ReferenceSwitch(1<<20, nil)
	p.Lossless = 1<<3 | 1<<4
	up, leaf, down := net.AddSwitch("up", p), net.AddSwitch("leaf", p), net.AddSwitch("down", p)
	h0, h1 := net.AddHost("h0", ReferenceNIC(nil)), net.AddHost("h1", ReferenceNIC(nil))
	for _, l := range [][2]NodeID{{up, leaf}, {leaf, down}, {h0, up}, {h1, down}} {
		if _, err := net.Connect(l[0], l[1], link100); err != nil {
			t.Fatal(err)
		}
	}
	s, err := net.Build(Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetUplinkGroup(leaf, []HookRule{{24, 32}}, old); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddFlow(FlowSpec{Src: 0, Dst: 1, Bytes: Forever, TOS: 24 << 2}); err != nil {
		t.Fatal(err)
	}
	return s
}

// What an uplink group moves leaves in the new class with the new DSCP. When it fills the leaf,
// the class that is paused upstream is the new one (and what still comes in the old one
// is lost), or by option the old one (and nothing is lost).
func TestHookPriority(t *testing.T) {
	for _, old := range []bool{false, true} {
		s := hooked(t, old)
		run(t, s, 50*Microsecond)
		leafUp, leafDown, upDown := s.PortOf(1, 0), s.PortOf(1, 1), s.PortOf(0, 0)
		if n := s.Queue(leafDown, 4).TxFrames; n == 0 || s.Queue(leafDown, 3).TxFrames != 0 || s.HookHits(1) < n {
			t.Fatalf("%d frames left the leaf in class 4, %d in class 3; %d hits", n, s.Queue(leafDown, 3).TxFrames, s.HookHits(1))
		}
		s.Storm(1, 1<<4, Millisecond, 10*Millisecond) // h1 stops class 4
		run(t, s, 500*Microsecond)
		want, other := 4, 3
		if old {
			want, other = 3, 4
		}
		if a, b := s.Queue(leafUp, want).TxXoff, s.Queue(leafUp, other).TxXoff; a == 0 || b != 0 {
			t.Errorf("old %v: the leaf sent %d XOFF for class %d and %d for class %d", old, a, want, b, other)
		}
		if st := s.Queue(upDown, 3); st.PausedNow != old {
			t.Errorf("old %v: class 3 of the spine stands still: %v", old, st.PausedNow)
		}
		if lost := s.Totals().Dropped[DropHeadroom.String()]; (lost == 0) != old {
			t.Errorf("old %v: %d frames lost", old, lost)
		}
		run(t, s, 11*Millisecond)
		moved := s.Queue(leafDown, 4).TxFrames
		run(t, s, 12*Millisecond)
		if st := s.Queue(upDown, 3); st.PausedNow && old || s.Queue(leafDown, 4).TxFrames == moved && old {
			t.Errorf("old %v: no way on after the storm: %+v", old, st)
		}
		if err := s.CheckConservation(); err != nil {
			t.Error(err)
		}
	}
}

// The group's rules are checked; a host has no group.
func TestUplinkGroupIsChecked(t *testing.T) {
	s := hooked(t, false)
	for _, rules := range [][]HookRule{nil, {{1, 2}, {3, 4}, {5, 6}}, {{64, 1}}, {{7, 7}}} {
		if err := s.SetUplinkGroup(1, rules, false); err == nil {
			t.Errorf("%v was accepted", rules)
		}
	}
	if err := s.SetUplinkGroup(3, []HookRule{{24, 32}}, false); err == nil {
		t.Error("a host got an uplink group")
	}
}
