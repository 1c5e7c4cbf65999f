package model

import "testing"

// twoWays is two leaves with two spines between them and two hosts each; the second spine is
// behind links of another delay.
func twoWays(t *testing.T, b BalancerSettings, rcv ReceiverSettings, far Time) *Sim {
	t.Helper()
	sp, np := ReferenceSwitch(8<<20, nil), ReferenceNIC(nil)
	sp.Balancer, np.Receiver = b, rcv
	net := &Network{}
	l0, l1 := net.AddSwitch("l0", sp), net.AddSwitch("l1", sp)
	for _, delay := range []Time{Microsecond, far} {
		spine := net.AddSwitch("s", sp)
		for _, leaf := range []NodeID{l0, l1} {
			if _, err := net.Connect(leaf, spine, LinkSpec{Rate: 100 * Gbps, Delay: delay}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, leaf := range []NodeID{l0, l0, l1, l1} {
		if _, err := net.Connect(net.AddHost("h", np), leaf, link100); err != nil {
			t.Fatal(err)
		}
	}
	s, err := net.Build(Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Two elephants that a hash puts on one of two links have half of what there is; frames that are
// spread one by one have nearly all, and overtake each other.
func TestSprayUsesWhatAHashLeaves(t *testing.T) {
	gbps := func(b BalancerSettings) (sum float64, overtaken uint64) {
		s := twoWays(t, b, &Reorder{Window: 1 << 20}, Microsecond)
		other := uint32(2) // a hash that takes the way of 1
		for s.ECMPChoice(0, other, 2) != s.ECMPChoice(0, 1, 2) {
			other++
		}
		for i, h := range []uint32{1, other} {
			if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i), Dst: EndpointID(2 + i), Bytes: Forever, TOS: 3 << 5, Hash: h}); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, Millisecond)
		for i := range 2 {
			f := s.Flow(FlowID(i))
			if f.Retx > 0 {
				t.Errorf("flow %d sent %d frames again", i, f.Retx)
			}
			sum += float64(f.Acked) * 8 / 1e6 * 1048 / 1000
			overtaken += f.OutOfOrder
		}
		return sum, overtaken
	}
	if sum, n := gbps(nil); sum < 97 || sum > 101 || n != 0 {
		t.Errorf("by hash: %.1f of 200 Gb/s, %d frames out of order", sum, n)
	}
	if sum, n := gbps(&Spray{}); sum < 190 || n == 0 {
		t.Errorf("spread: %.1f of 200 Gb/s, %d frames out of order", sum, n)
	}
}

// A flow that may move after a pause longer than the ways differ is never out of order, though it
// moves; with a gap below the difference it is.
func TestFlowletsKeepTheOrderWhenTheGapIsLongEnough(t *testing.T) {
	const skew = 8 * Microsecond // 2 x 5 us instead of 2 x 1
	for _, c := range []struct {
		gap       Time
		overtakes bool
	}{{skew + 2*Microsecond, false}, {Microsecond, true}} {
		s := twoWays(t, &Flowlet{Gap: c.gap}, &Reorder{Window: 1 << 20}, 5*Microsecond)
		for i := range 2 {
			if _, err := s.OpenQP(FlowSpec{Src: EndpointID(i), Dst: EndpointID(2 + i), TOS: 3 << 5}); err != nil {
				t.Fatal(err)
			}
		}
		rng := RNG(1)
		for at := Time(0); at < 3*Millisecond; at += Time(rng.Intn(int(12 * Microsecond))) {
			run(t, s, at)
			if err := s.Post(FlowID(rng.Intn(2)), int64(1+rng.Intn(8))*1000, 0); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, 4*Millisecond)
		overtaken := s.Flow(0).OutOfOrder + s.Flow(1).OutOfOrder
		a, b := s.Queue(s.PortOf(0, 0), 3).TxFrames, s.Queue(s.PortOf(0, 1), 3).TxFrames
		if overtaken > 0 != c.overtakes || a == 0 || b == 0 {
			t.Errorf("gap %v: %d frames out of order; %d and %d frames took the two ways", c.gap, overtaken, a, b)
		}
	}
}
