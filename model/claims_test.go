package model

import (
	"math"
	"testing"
)

// onlooker is a stage that a test gives the frames that pass a switch.
type onlooker struct {
	passive
	arrive func(sw Switch, f Frame)
	leave  func(sw Switch, f Frame)
}

func (*onlooker) Check() error                  { return nil }
func (o *onlooker) Stage(Switch) (Stage, error) { return o, nil }
func (o *onlooker) Tapped() bool                { return o.leave != nil }

func (o *onlooker) Arrive(sw Switch, f Frame, _, _ PortID) int {
	if o.arrive != nil {
		o.arrive(sw, f)
	}
	return PassOn
}

func (o *onlooker) Leave(sw Switch, f Frame, _, _ PortID, _ int, _ int64) { o.leave(sw, f) }

// A queue grows to a few frames above the threshold and stays there. Marked as they leave, frames
// tell of it at once; marked as they come, after the queue before them is sent: q/C later.
func TestMarksAtDequeueAreEarlierByTheQueue(t *testing.T) {
	const threshold, payload = 200_000, 1000
	const frame = 1048
	var first [2]Time
	for i, mode := range []ECNMode{ECNDequeue, ECNEnqueue} {
		sp := ReferenceSwitch(8<<20, nil)
		sp.ECN = ECN{Mode: mode, KMin: threshold, KMax: threshold + 1, PMax: 1}
		sp.Stages = []StageSettings{&onlooker{leave: func(sw Switch, f Frame) {
			if f.CE() && first[i] == 0 {
				first[i] = sw.Now()
			}
		}}}
		s := oneSwitch(t, 3, sp, ReferenceNIC(nil), link100, Options{})
		for src, bytes := range []int64{Forever, (threshold/frame + 5) * payload} {
			if _, err := s.AddFlow(FlowSpec{Src: EndpointID(src), Dst: 2, Bytes: bytes, TOS: 3<<5 | 2}); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, 200*Microsecond)
	}
	const perByte = 80 * Nanosecond / 1000 // at 100G
	if got, want := first[1]-first[0], threshold*perByte; first[0] == 0 || got < want-frame*perByte || got > want+frame*perByte {
		t.Errorf("first marks leave at %v and %v, %v apart; want the time of the queue, %v", first[0], first[1], got, want)
	}
}

// A switch notifies the sender of a flow at most each 50 us, and lets no notification of the
// receiver pass for as long after its own, however far the receiver is: of flows that it knows from
// their first frame on no two are closer.
func TestFastNotificationsOfAFlowAreApart(t *testing.T) {
	const every = 50 * Microsecond
	for _, far := range []Time{Microsecond, 10 * Microsecond} {
		cc := Paper()
		stage := &fastCNP{par: settingsOf(t, PartStage, "fast-cnp").(*FastCNP), flows: map[FlowID]*cnpFlow{}}
		stage.par.Known = true
		own, any, early, all := map[FlowID]Time{}, map[FlowID]Time{}, 0, 0
		told := func(f FlowID, now Time) {
			if at, ok := any[f]; ok && now-at < every {
				early++
			}
			any[f] = now
			all++
		}
		look := &onlooker{arrive: func(sw Switch, f Frame) { // what the stage before it let pass
			if !f.IsCNP() {
				return
			}
			if at, ok := own[f.Flow()]; ok && sw.Now()-at < every {
				t.Errorf("receiver at %v: a notification passes %v after the switch's", far, sw.Now()-at)
			}
			told(f.Flow(), sw.Now())
		}, leave: func(sw Switch, f Frame) {
			if e := stage.flows[f.Flow()]; !f.IsData() || e == nil || e.sent != sw.Now() {
				return
			}
			if at, ok := own[f.Flow()]; ok && sw.Now()-at < every {
				t.Errorf("receiver at %v: the switch notifies %v after its last", far, sw.Now()-at)
			}
			own[f.Flow()] = sw.Now()
			told(f.Flow(), sw.Now())
		}}
		sp := ReferenceSwitch(32<<20, cc)
		sp.ECN = ECN{Mode: ECNDequeue, KMin: 100_000, KMax: 400_000, PMax: 0.2}
		sp.Stages = []StageSettings{madeStage{stage}, look}
		n := &Network{}
		sw := n.AddSwitch("s", sp)
		for i := range 17 {
			l := link100
			if i == 16 {
				l.Delay = far
			}
			if _, err := n.Connect(n.AddHost("h", ReferenceNIC(cc)), sw, l); err != nil {
				t.Fatal(err)
			}
		}
		s, err := n.Build(Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 16 {
			if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i), Dst: 16, Bytes: Forever, TOS: 3 << 5}); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, 10*Millisecond)
		if stage.made < 200 || uint64(all) < stage.made {
			t.Errorf("receiver at %v: %d notifications seen, %v", far, all, s.StageCounters())
		}
		if early > 0 {
			t.Errorf("receiver at %v: %d of %d notifications come sooner than %v after another of their flow", far, early, all, every)
		}
	}
}

// madeStage is settings that give a stage which a test has already.
type madeStage struct{ st Stage }

func (madeStage) Check() error                  { return nil }
func (m madeStage) Stage(Switch) (Stage, error) { return m.st, nil }

// A burst that stays below twice the lower threshold and is over within 50 us is no reason for a
// notification, whenever it comes between two looks at the queue; one of four times as much is.
func TestShortBurstsAreNotNotified(t *testing.T) {
	for _, c := range []struct {
		bytes int64 // of each of two senders; half of it arrives faster than it can leave
		told  bool
	}{{185_000, false}, {800_000, true}} {
		sent := uint64(0)
		for phase := Time(0); phase < 50*Microsecond; phase += 2 * Microsecond {
			set := settingsOf(t, PartStage, "npcc").(*NPCC)
			set.Known = true
			sp := ReferenceSwitch(32<<20, nil)
			sp.Stages = []StageSettings{set}
			s := oneSwitch(t, 3, sp, ReferenceNIC(nil), link100, Options{})
			for i := range 2 {
				if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i), Dst: 2, Bytes: c.bytes, TOS: 3 << 5, Start: phase}); err != nil {
					t.Fatal(err)
				}
			}
			run(t, s, Millisecond)
			sent += s.StageCounters()["npcc.sent"]
			if peak := s.Queue(s.PortOf(0, 2), 3).Peak; (peak >= 2*int64(set.Low)) != c.told {
				t.Fatalf("a burst of twice %d bytes gives a queue of %d", c.bytes, peak)
			}
		}
		if (sent > 0) != c.told {
			t.Errorf("%d notifications for bursts of twice %d bytes", sent, c.bytes)
		}
	}
}

// Elephants only: the lower threshold is 640 KB x min(1, 8/flows), the upper one four times as
// much, in proportion to the port's rate, and never above the greatest allowed.
func TestDynamicThresholdsFollowTheLaw(t *testing.T) {
	for _, c := range []struct {
		flows int
		base  Size
		rate  Rate // of the receiver's port
		low   int64
	}{{3, 640_000, 100 * Gbps, 640_000}, {8, 640_000, 100 * Gbps, 640_000}, {16, 640_000, 100 * Gbps, 320_000}, {32, 640_000, 100 * Gbps, 160_000},
		{3, 640_000, 50 * Gbps, 320_000}, {3, 4_000_000, 100 * Gbps, 1_500_000}} {
		set := settingsOf(t, PartTuner, "dynamic-ecn").(*DynamicECN)
		set.Base = c.base
		cc := CX4()
		sp := ReferenceSwitch(8<<20, cc)
		sp.ECN = ECN{Mode: ECNDequeue, KMin: 640_000, KMax: 2_560_000, PMax: 0.2, PerRate: 100 * Gbps}
		sp.Tuners = []TunerSettings{set}
		n := &Network{}
		sw := n.AddSwitch("s", sp)
		for i := range 17 {
			l := link100
			if i == 16 {
				l.Rate = c.rate
			}
			if _, err := n.Connect(n.AddHost("h", ReferenceNIC(cc)), sw, l); err != nil {
				t.Fatal(err)
			}
		}
		s, err := n.Build(Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.flows {
			if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i % 16), Dst: 16, Bytes: Forever, TOS: 3 << 5}); err != nil {
				t.Fatal(err)
			}
		}
		most := int64(set.Most) * int64(c.rate/Gbps) / 100
		for k := range 60 {
			run(t, s, Time(k+1)*set.Every+1)
			low, high, ok := s.Marking(s.PortOf(0, 16), 3)
			if !ok || low > most || high > 4*most || high < 4*low-4 || high > 4*low+4 {
				t.Fatalf("%+v: marks from %d to %d at %v", c, low, high, s.Now())
			}
			if k >= 20 && low != c.low { // all flows have sent the 100 KB of an elephant
				t.Fatalf("%+v: marks from %d at %v", c, low, s.Now())
			}
		}
	}
}

// n flows on n equal ways are all on ways of their own as rarely, and use as many ways, as chance
// has it: n!/n^n and 1 - (1 - 1/n)^n.
func TestFlowsMeetOnEqualWaysByChance(t *testing.T) {
	const seeds = 10_000
	for _, n := range []int{4, 8} {
		net := &Network{}
		sp := ReferenceSwitch(8<<20, nil)
		near, far := net.AddSwitch("near", sp), net.AddSwitch("far", sp)
		for range n {
			mid := net.AddSwitch("mid", sp)
			for _, leaf := range []NodeID{near, far} {
				if _, err := net.Connect(mid, leaf, link100); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, leaf := range []NodeID{near, far} {
			if _, err := net.Connect(net.AddHost("h", ReferenceNIC(nil)), leaf, link100); err != nil {
				t.Fatal(err)
			}
		}
		apart, used := 0, 0
		for seed := range uint64(seeds) {
			s, err := net.Build(Options{Seed: seed + 1})
			if err != nil {
				t.Fatal(err)
			}
			ways := map[int]bool{}
			for range n {
				id, err := s.AddFlow(FlowSpec{Src: 0, Dst: 1, Bytes: 1000, TOS: 3 << 5})
				if err != nil {
					t.Fatal(err)
				}
				ways[s.ECMPChoice(near, s.qps[id].hash, s.ECMPWays(near, 1))] = true
			}
			used += len(ways)
			if len(ways) == n {
				apart++
			}
		}
		gotApart, gotUsed := float64(apart)/seeds, float64(used)/seeds/float64(n)
		wantApart, wantUsed := 1.0, 1-math.Pow(1-1/float64(n), float64(n))
		for k := range n {
			wantApart *= float64(k+1) / float64(n)
		}
		t.Logf("%d flows: apart %.2f %%, by chance %.2f; ways used %.1f %%, by chance %.1f", n, 100*gotApart, 100*wantApart, 100*gotUsed, 100*wantUsed)
		// Four standard deviations, and never a percentage point.
		if tol := min(0.01, 4*math.Sqrt(wantApart*(1-wantApart)/seeds)); math.Abs(gotApart-wantApart) > tol {
			t.Errorf("%d flows are apart in %.4f, want %.4f", n, gotApart, wantApart)
		}
		if math.Abs(gotUsed-wantUsed) > 0.01 {
			t.Errorf("%d flows use %.4f of the ways, want %.4f", n, gotUsed, wantUsed)
		}
	}
}

// A queue that may hold a times what is free rests at aB/(1+a); another, which may hold what is
// free, then takes half of the rest.
func TestDynamicLimitsRestWhereTheFormSays(t *testing.T) {
	const buffer, frame = 8 << 20, 1048
	for _, index := range []uint8{10, 7, 5} {
		sp := ReferenceSwitch(buffer, nil)
		sp.MMU, sp.Lossless = MMUCells, 0
		sp.Cells = CellMMU{Cell: 1, LimitAlpha: 7}
		s := oneSwitch(t, 4, sp, ReferenceNIC(nil), link100, Options{})
		Switch{s, 0}.SetAlphas(1, index, index)
		for i := range 2 { // both queues stand still
			s.Storm(EndpointID(2+i), 2<<i, 100*Microsecond, Second)
			if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i), Dst: EndpointID(2 + i), Bytes: Forever, TOS: uint8(1+i) << 5, Start: 10*Microsecond + Time(i)*3*Millisecond}); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, 6*Millisecond)
		a := math.Pow(2, float64(index)-7)
		elephants := a * buffer / (1 + a)
		for i, want := range []float64{elephants, (buffer - elephants) / 2} {
			st := s.Queue(s.PortOf(0, 2+i), 1+i)
			t.Logf("alpha %g: queue %d rests at %d bytes, the form says %.0f", a, 1+i, st.Bytes, want)
			if math.Abs(float64(st.Bytes)-want) > 2*frame || st.Drops == 0 {
				t.Errorf("alpha %g: queue %d holds %d bytes after %d drops, want %.0f", a, 1+i, st.Bytes, st.Drops, want)
			}
		}
	}
}
