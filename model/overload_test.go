package model

import "testing"

// staticCells is a switch of cells with a fixed XOFF, in bytes, and headroom that links need.
func staticCells(buffer, xoff int64, xonOffset int32) SwitchProfile {
	return SwitchProfile{Name: "cells", MMU: MMUCells, Buffer: buffer, Lossless: 1 << 3,
		Cells: CellMMU{Cell: 320, Guaranteed: 1600, Xoff: xoff, XonOffset: xonOffset, LimitAlpha: 7}}
}

// Twice what a port carries costs a class with PFC no frame, and its peers are paused; a class
// beside it gets what it asks for. Without PFC the same load loses frames.
func TestTwoToOneOverload(t *testing.T) {
	for _, off := range []bool{false, true} {
		sp := staticCells(4<<20, 200_000, 50_000)
		sp.PFC.Off = off
		s := oneSwitch(t, 3, sp, ReferenceNIC(nil), link100, Options{Seed: 1})
		for src := range EndpointID(2) {
			if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 2, Bytes: Forever, TOS: 3 << 5}); err != nil {
				t.Fatal(err)
			}
		}
		other, err := s.AddFlow(FlowSpec{Src: 0, Dst: 2, Bytes: Forever, TOS: 5 << 5, Rate: 10 * Gbps})
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, 2*Millisecond)
		dropped, paused := len(s.Totals().Dropped) > 0, s.Queue(s.PortOf(0, 0), 3).TxXoff > 0 && s.Queue(s.PortOf(0, 1), 3).TxXoff > 0
		if dropped != off || paused == off {
			t.Errorf("PFC off %v: dropped %v, %d XOFF", off, s.Totals().Dropped, s.XoffSent())
		}
		// 10 Gb/s of frames with 1000 bytes of payload in 1048, less a round trip.
		if got, want := s.Flow(other).Acked, int64(10e9/8*2e-3)*1000/1048; got < want*99/100 {
			t.Errorf("PFC off %v: the class beside has %d bytes, asked for %d", off, got, want)
		}
		if st := s.Queue(s.EndpointPort(0), 5); st.RxXoff > 0 || s.Queue(s.PortOf(0, 2), 5).Drops > 0 {
			t.Errorf("PFC off %v: the class beside: %+v", off, st)
		}
	}
}

// Between XON and XOFF nothing changes: who is stopped stays stopped, who may send goes on.
func TestNothingChangesBetweenXONAndXOFF(t *testing.T) {
	const xoff, xon, frames = 200_000, 150_000, 4 * 1280 // what may come and go between two looks
	s := oneSwitch(t, 3, staticCells(4<<20, xoff, xoff-xon), ReferenceNIC(nil), link100, Options{Seed: 1})
	for src := range EndpointID(2) {
		if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 2, Bytes: Forever, TOS: 3 << 5}); err != nil {
			t.Fatal(err)
		}
	}
	in := &s.ingress[int(s.PortOf(0, 0))*NumQueues+3]
	stopped, changes, between := false, 0, 0
	for at := Time(0); at < 500*Microsecond; at += 20 * Nanosecond {
		run(t, s, at)
		held := int64(in.used+in.hdrm)*320 - 1600 // of the service pool
		if held > xon+frames && held < xoff-frames {
			between++
		}
		if in.xoff == stopped {
			continue
		}
		stopped = in.xoff
		changes++
		if stopped && held < xoff-frames || !stopped && held > xon+frames {
			t.Fatalf("at %v: stopped %v with %d bytes", at, stopped, held)
		}
	}
	if changes < 10 || between < 1000 {
		t.Errorf("%d changes, %d looks between the thresholds: this test shows nothing", changes, between)
	}
}

// What is guaranteed to each port and set aside as headroom is not in the service pool: too much
// headroom starves a lossy class, too little loses frames of a lossless one.
func TestPoolsShareTheBuffer(t *testing.T) {
	const ports = 6
	pool := func(guaranteed, headroom int32) (s *Sim, service int64) {
		sp := staticCells(4_000_000, 40_000, 6400)
		sp.Cells.Guaranteed, sp.Cells.Headroom, sp.Cells.LimitAlpha = guaranteed, headroom, 9
		s = oneSwitch(t, ports, sp, ReferenceNIC(nil), LinkSpec{Rate: 100 * Gbps, Delay: 10 * Microsecond}, Options{Seed: 1})
		c := s.Switch(0)
		if whole := c.Service + c.Headroom + ports*NumQueues*int64(guaranteed); whole > c.Buffer || whole < c.Buffer-320 {
			t.Errorf("%d of %d bytes are in the pools", whole, c.Buffer)
		}
		return s, c.Service
	}
	_, less := pool(1600, 320_000)
	_, more := pool(3200, 320_000)
	if less-more != ports*NumQueues*1600 {
		t.Errorf("1,600 bytes more for each class of each port take %d of the service pool", less-more)
	}
	for _, c := range []struct {
		headroom        int32
		lossless, lossy bool // that loses frames
	}{{9600, true, false}, {320_000, false, false}, {608_000, false, true}} {
		s, _ := pool(1600, c.headroom)
		for i, tos := range []uint8{3 << 5, 3 << 5, 1 << 5, 1 << 5} {
			// Two senders each; those of the lossy class send a burst of 600 KB in all.
			f := FlowSpec{Src: EndpointID(i), Dst: EndpointID(4 + i/2), Bytes: Forever, TOS: tos}
			if tos == 1<<5 {
				f.Bytes = 300_000
			}
			if _, err := s.AddFlow(f); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, 300*Microsecond)
		lossless, lossy := s.Queue(s.PortOf(0, 4), 3).Drops, s.Queue(s.PortOf(0, 5), 1).Drops
		if lossless > 0 != c.lossless || lossy > 0 != c.lossy {
			t.Errorf("headroom %d: %d frames of the lossless class lost, %d of the lossy one", c.headroom, lossless, lossy)
		}
	}
}

// More deadlocks than a window can hold never turn PFC off: at 100/100 ms 100 fall in 20 s.
func TestDeadlocksThatTheWindowCannotHold(t *testing.T) {
	for _, c := range []struct {
		count int
		off   bool
	}{{100, true}, {102, false}} {
		sp := ReferenceSwitch(1<<20, nil)
		sp.Deadlock = Deadlock{On: true, Detect: 100 * Millisecond, Recover: 100 * Millisecond, TurnOff: c.count}
		s := oneSwitch(t, 2, sp, ReferenceNIC(nil), link100, Options{})
		s.Storm(1, 1<<3, 100*Second, 200*Second)
		run(t, s, 90*Second)
		if st := s.Queue(s.PortOf(0, 1), 3); st.TurnedOff != c.off || !c.off && st.Deadlocks < 440 {
			t.Errorf("turn off at %d: %+v", c.count, st)
		}
	}
}
