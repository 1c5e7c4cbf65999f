package model

import "testing"

// Braking on one class leaves the others their XOFF and XON: one whose pauses have no time
// (quanta 0) waits until XON and loses nothing.
func TestBrakingOnOneClassLeavesTheOthersTheirXON(t *testing.T) {
	sp := SwitchProfile{Name: "cells", MMU: MMUCells, Buffer: 32 << 20, Lossless: 1<<3 | 1<<4,
		PFC: PFC{ABS: 1 << 4}, Cells: CellMMU{Cell: 320, Guaranteed: 1600, Headroom: 200_000, Xoff: 200_000, XonOffset: 6144, LimitAlpha: 7}}
	s := oneSwitch(t, 5, sp, ReferenceNIC(nil), link100, Options{Seed: 1})
	for src := range EndpointID(4) { // two senders of each class
		if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 4, Bytes: 20_000_000, TOS: uint8(3+src%2) << 5}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, 10*Millisecond)
	if err := s.CheckConservation(); err != nil {
		t.Error(err)
	}
	if tot := s.Totals(); len(tot.Dropped) > 0 {
		t.Errorf("dropped %v", tot.Dropped)
	}
	for src := range 4 {
		if st := s.Queue(s.PortOf(0, src), 3+src%2); st.TxXoff == 0 {
			t.Errorf("host %d was never told to stop", src)
		}
	}
}
