package model

import (
	"math"
	"testing"
)

// Queues 1 and 2 share the first group evenly, queue 3 has its weight to itself, queue 7 goes
// first.
func TestETSShares(t *testing.T) {
	sp := ReferenceSwitch(16<<20, nil)
	sp.Lossless = 0
	sp.Scheduler = &ETS{Strict: []int{6, 7}, Other: []int{3}, Weight: 40}
	s := oneSwitch(t, 5, sp, ReferenceNIC(nil), link100, Options{Seed: 1})
	for i, q := range []uint8{1, 2, 3, 7} {
		rate := Rate(0)
		if q == 7 {
			rate = 10 * Gbps
		}
		if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i), Dst: 4, Bytes: Forever, TOS: q << 5, Rate: rate}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, 2*Millisecond)
	out := s.PortOf(0, 4)
	var before [8]uint64
	for q := range before {
		before[q] = s.Queue(out, q).TxBytes
	}
	run(t, s, 6*Millisecond)
	for q, want := range map[int]float64{1: 27, 2: 27, 3: 36, 7: 10} {
		got := float64(s.Queue(out, q).TxBytes-before[q]) * 8 / 4e-3 / 1e9
		if math.Abs(got-want) > 0.5 {
			t.Errorf("queue %d: %.2f Gb/s, want %.0f", q, got, want)
		}
	}
}
