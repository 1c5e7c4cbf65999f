package model

import (
	"math"
	"testing"
)

// rig is one sender of a given DCQCN set whose notifications the test makes up.
func rig(t *testing.T, cc *DCQCN) (*Sim, func(), *dcqcn) {
	t.Helper()
	s := oneSwitch(t, 2, ReferenceSwitch(1<<20, nil), ReferenceNIC(cc), link100, Options{})
	if _, err := s.AddFlow(FlowSpec{Src: 0, Dst: 1, Bytes: Forever, TOS: 3 << 5}); err != nil {
		t.Fatal(err)
	}
	run(t, s, 10*Microsecond)
	rp := s.controls[1].ctl.(*reactionPoint)
	return s, func() { rp.Notified(QP{s, 0}) }, &rp.qps[0]
}

// The first CNP halves the rate; the cut uses the old alpha; alpha decays by 1/256
// for each 55 us without a CNP; the timer brings half of the way back.
func TestPaperReactionPoint(t *testing.T) {
	s, cnp, c := rig(t, Paper())
	cnp()
	if c.rate != 50e9 || c.target != 100e9 {
		t.Fatalf("after the first CNP: rate %d, target %d", c.rate, c.target)
	}
	if want := uint64(alphaOne); c.alpha != want {
		t.Errorf("alpha %d, want %d", c.alpha, want)
	}
	run(t, s, s.Now()+54*Microsecond)
	c.settle(Paper(), s.Now())
	if c.alpha != alphaOne {
		t.Error("alpha fell before 55 us")
	}
	run(t, s, s.Now()+Microsecond)
	c.settle(Paper(), s.Now())
	if want := alphaOne * 255.0 / 256; math.Abs(float64(c.alpha)-want) > 2 {
		t.Errorf("alpha %d after 55 us, want %.0f", c.alpha, want)
	}
	if c.rate != 75e9 {
		t.Errorf("rate %d after one increase, want 75e9", c.rate)
	}
	cnp() // cut by (255/256)/2 of 75G; the target is what the rate was
	if want := 75e9 * (1 - 255.0/512); math.Abs(float64(c.rate)-want) > 2 || c.target != 75e9 {
		t.Errorf("rate %d target %d, want %.0f and 75e9", c.rate, c.target, want)
	}
	// F = 5 recoveries, then the target grows by 40 Mb/s each 55 us.
	run(t, s, s.Now()+55*5*Microsecond-Nanosecond)
	if c.target != 75e9 {
		t.Errorf("target %d moved during recovery", c.target)
	}
	run(t, s, s.Now()+Microsecond)
	if c.target != 75.04e9 {
		t.Errorf("target %d, want 75.04e9", c.target)
	}
}

// The cx4 set: alpha follows notifications each microsecond, cuts happen at most each
// 4 us, the increase timer restarts with each cut, and F = 1.
func TestCX4ReactionPoint(t *testing.T) {
	s, cnp, c := rig(t, CX4())
	cnp()
	if c.rate != 100e9 {
		t.Fatalf("the cut came at once: %d", c.rate)
	}
	run(t, s, s.Now()+4*Microsecond+Nanosecond)
	// Four alpha intervals without a further notification.
	alpha := math.Pow(255.0/256, 4)
	if want := 100e9 * (1 - alpha/2); math.Abs(float64(c.rate)-want) > 100 {
		t.Errorf("rate %d after the check, want %.0f", c.rate, want)
	}
	if c.target != 100e9 {
		t.Errorf("target %d", c.target)
	}
	cut := c.rate
	run(t, s, s.Now()+299*Microsecond)
	if c.rate != cut {
		t.Error("the rate moved before the increase timer")
	}
	run(t, s, s.Now()+Microsecond)
	if c.rate != cut/2+50e9 {
		t.Errorf("rate %d after fast recovery", c.rate)
	}
	for range 200 { // notifications without end push the rate to its minimum
		cnp()
		run(t, s, s.Now()+2*Microsecond)
	}
	if c.rate != 1e9 {
		t.Errorf("rate %d, want the minimum", c.rate)
	}
}

// The lazy alpha equals one that is stepped every interval.
func TestAlphaIsExact(t *testing.T) {
	par := CX4()
	lazy := &dcqcn{alpha: alphaOne}
	rng := RNG(1)
	alpha, fresh := uint64(alphaOne), false
	next := Microsecond
	for now := Time(0); now < 3*Millisecond; {
		now += Time(rng.Intn(int(12 * Microsecond)))
		for next <= now {
			alpha -= alpha >> par.GShift
			if fresh {
				alpha += alphaOne >> par.GShift
				fresh = false
			}
			next += Microsecond
		}
		fresh = true
		lazy.settle(par, now)
		lazy.fresh = true
		if lazy.alpha != alpha {
			t.Fatalf("at %v: %d, want %d", now, lazy.alpha, alpha)
		}
	}
}

// The NP sends at most one CNP per flow and 50 us.
func TestCNPPacing(t *testing.T) {
	cc := Paper()
	cc.ECN.KMin, cc.ECN.KMax = 0, 1 // everything that waits is marked
	s := oneSwitch(t, 3, ReferenceSwitch(4<<20, cc), ReferenceNIC(cc), link100, Options{})
	for i := range 2 {
		if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i), Dst: 2, Bytes: Forever, TOS: 3 << 5, NoCC: true}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, 10*Millisecond)
	got := s.Totals().Created["cnp"]
	if got < 2*195 || got > 2*201 {
		t.Errorf("%d CNPs of two flows in 10 ms, want about 400", got)
	}
}

// p = pmax/2 in the middle between the thresholds, 0 below, 1 above.
func TestMarkingProbability(t *testing.T) {
	sp := ReferenceSwitch(4<<20, nil)
	sp.ECN = ECN{Mode: ECNDequeue, KMin: 100_000, KMax: 300_000, PMax: 0.4}
	s := oneSwitch(t, 1, sp, ReferenceNIC(nil), link100, Options{Seed: 9})
	out, qu := int32(s.PortOf(0, 0)), s.queues[int(s.PortOf(0, 0))*NumQueues+3]
	const n = 200_000
	for _, c := range []struct {
		depth int32
		want  float64
	}{{100_001, 0}, {150_000, 0.1}, {200_000, 0.2}, {300_000, 0.4}, {300_001, 1}} {
		hits := 0
		for range n {
			qu.bytes = c.depth
			if qu.bytes > qu.kmin && s.marks(out, &qu) {
				hits++
			}
		}
		if got := float64(hits) / n; math.Abs(got-c.want) > 0.004 {
			t.Errorf("depth %d: marked %.4f, want %.4f", c.depth, got, c.want)
		}
	}
}

// At enqueue: a frame that cannot be marked is dropped if the profile says so.
func TestWREDDropsNonECT(t *testing.T) {
	for _, c := range []struct {
		noECT, drop bool
		marks       bool
		drops       bool
	}{{false, true, true, false}, {true, true, false, true}, {true, false, false, false}} {
		sp := ReferenceSwitch(4<<20, nil)
		sp.ECN = ECN{Mode: ECNEnqueue, KMin: 10_000, KMax: 20_000, PMax: 1, DropNonECT: c.drop}
		s := oneSwitch(t, 3, sp, ReferenceNIC(nil), link100, Options{})
		for i := range 2 {
			if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i), Dst: 2, Bytes: 200_000, TOS: 3 << 5, NoECT: c.noECT}); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, 100*Microsecond)
		tot := s.Totals()
		if (tot.Marks > 0) != c.marks || (tot.Dropped["wred"] > 0) != c.drops {
			t.Errorf("%+v: %d marks, dropped %v", c, tot.Marks, tot.Dropped)
		}
	}
}

// On a lossy wire everything arrives in order with go-back-N and with selective
// repeat; the latter sends little more than what was lost.
func TestRetransmission(t *testing.T) {
	const frames = 30_001
	var retx [2]uint64
	for i, selective := range []bool{false, true} {
		np := ReferenceNIC(nil)
		np.RTO = 200 * Microsecond
		np.NackGap = 20 * Microsecond
		np.Selective = selective
		np.AckEvery = 2
		l := link100
		l.Loss = 0.002
		s := oneSwitch(t, 2, ReferenceSwitch(4<<20, nil), np, l, Options{Seed: 3})
		id, err := s.AddFlow(FlowSpec{Src: 0, Dst: 1, Bytes: (frames-1)*1000 + 1, TOS: 3 << 5})
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, 100*Millisecond)
		f := s.Flow(id)
		retx[i] = f.Retx
		lost := s.Totals().Dropped["crc"]
		t.Logf("selective %v: done at %v, %d lost, %d sent again", selective, f.Done, lost, f.Retx)
		if f.Done == 0 || f.Acked != f.Bytes || s.rx[0].expect != frames {
			t.Errorf("selective %v: %+v, %d frames delivered in order", selective, f, s.rx[0].expect)
		}
		if lost == 0 || selective && f.Retx > 2*lost {
			t.Errorf("selective %v: %d frames lost, %d sent again", selective, lost, f.Retx)
		}
		if err := s.CheckConservation(); err != nil {
			t.Error(err)
		}
	}
	if retx[0] < 10*retx[1] {
		t.Errorf("go-back-N sent %d again, selective repeat %d", retx[0], retx[1])
	}
}

// A slow receiver pauses its switch and loses nothing.
func TestSlowReceiver(t *testing.T) {
	np := ReferenceNIC(nil)
	np.RxRate = 10 * Gbps
	s := oneSwitch(t, 2, ReferenceSwitch(4<<20, nil), np, link100, Options{})
	id, err := s.AddFlow(FlowSpec{Src: 0, Dst: 1, Bytes: 10_000_000, TOS: 3 << 5})
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, 20*Millisecond)
	f := s.Flow(id)
	if want := Time(10_480_000) * 800; f.Done < want || f.Done > want+Millisecond {
		t.Errorf("done at %v, the host needs %v", f.Done, want)
	}
	if tot := s.Totals(); len(tot.Dropped) > 0 || s.Queue(s.EndpointPort(1), 3).TxXoff == 0 {
		t.Errorf("dropped %v, %d XOFF", tot.Dropped, s.Queue(s.EndpointPort(1), 3).TxXoff)
	}
}
