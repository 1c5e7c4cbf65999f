package errdown

import (
	"errors"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// meterRig is a port that is up and whose health is read every step.
type meterRig struct {
	*rig
	h fabric.Health
}

func newMeterRig(t *testing.T, cfg Config, valid fabric.Fields) *meterRig {
	r := &meterRig{rig: newRig(t, cfg), h: fabric.Health{Valid: valid}}
	want(t, r.add())
	want(t, r.read(0))
	return r
}

// read lets time pass and reads.
func (r *meterRig) read(d time.Duration) []string {
	r.after(d)
	r.h.At = r.now
	out := short(r.m.Sample("e1", r.h, r.now))
	return append(out, r.tick()...)
}

func crcConfig(resp Response) Config {
	return Config{CRC: CRCConfig{Reaction: Reaction{Response: resp}}}
}

func TestCRCErrorsTripWithinTheWindowOnly(t *testing.T) {
	for _, c := range []struct {
		name  string
		every time.Duration
		steps []uint64 // errors added in each step
		trip  int      // step at which it trips, -1 never
	}{
		{"three at once", time.Second, []uint64{0, 3}, 1},
		{"one a second", time.Second, []uint64{1, 1, 1}, 2},
		{"two", time.Second, []uint64{2, 0, 0, 0}, -1},
		{"one in five seconds", 5 * time.Second, []uint64{1, 1, 1, 1, 1, 1, 1}, -1},
		{"a third when the first has left", time.Second, []uint64{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, -1},
		{"three in thirty seconds, read late", 30 * time.Second, []uint64{3, 8}, -1},
		{"nine in thirty seconds, read late", 30 * time.Second, []uint64{9}, 0},
		{"a leap", time.Second, []uint64{5_000_000, 0, 0, 5_000_000, 0}, -1},
		{"a leap and an error", time.Second, []uint64{5_000_000, 1, 0, 0}, -1},
		{"a cable that damages everything", time.Second, []uint64{5_000_000, 5_000_000}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newMeterRig(t, crcConfig(RespondNotify), fabric.FieldCRC)
			for i, n := range c.steps {
				r.h.RxCRC += n
				got := r.read(c.every)
				if tripped := len(got) == 1 && got[0] == "+crc"; tripped != (i == c.trip) || len(got) > 1 {
					t.Fatalf("step %d: %q", i, got)
				} else if tripped {
					return
				}
			}
		})
	}
}

func TestCRCErrorsAreNotCountedWhileTheLinkComesUp(t *testing.T) {
	r := newMeterRig(t, crcConfig(RespondNotify), fabric.FieldCRC)
	want(t, r.down(), "+link-down")
	r.h.RxCRC += 500
	want(t, r.read(time.Second))
	want(t, r.up(), "-link-down")
	r.h.RxCRC += 500
	want(t, r.read(time.Second)) // the first reading of the new link
	r.h.RxCRC += 2
	want(t, r.read(time.Second))
	r.h.RxCRC++
	want(t, r.read(time.Second), "+crc")
}

func TestReadingOvertakenByAnEventIsOfThePast(t *testing.T) {
	r := newMeterRig(t, crcConfig(RespondNotify), fabric.FieldCRC)
	r.after(time.Second)
	late := r.h
	late.At = r.now
	r.after(time.Millisecond)
	r.down()
	r.up()
	want(t, short(r.m.Sample("e1", late, r.now)))
	r.h.RxCRC += 100
	want(t, r.read(time.Second))
	if c := r.m.Counters(); c.SamplesStale != 1 {
		t.Fatalf("counters %+v", c)
	}
}

func TestCRCRatePerMillion(t *testing.T) {
	cfg := crcConfig(RespondNotify)
	cfg.CRC.PerMillion = 10
	r := newMeterRig(t, cfg, fabric.FieldCRC|fabric.FieldCounters)
	for range 20 { // 5 among a million
		r.h.RxCRC += 5
		r.h.Counters.RxFrames += 1_000_000
		want(t, r.read(time.Second))
	}
	r.h.RxCRC += 200
	want(t, r.read(time.Second), "+crc")
}

func TestNotifiedCRCFaultEndsWhenAllHasBeenWellForTheHoldUpTime(t *testing.T) {
	r := newMeterRig(t, crcConfig(RespondNotify), fabric.FieldCRC)
	r.h.RxCRC += 3
	want(t, r.read(time.Second), "+crc")
	since := r.now
	for range 9 {
		want(t, r.read(time.Second))
	}
	if _, err := r.m.Recover("e1", r.now); err != nil {
		t.Fatal(err) // by hand it ends at any time
	}
	r.h.RxCRC += 4
	want(t, r.read(time.Second)) // the first reading after that only begins to count
	r.h.RxCRC += 3
	want(t, r.read(time.Second), "+crc")
	for range 11 { // the errors leave the window, the hold-up time begins
		want(t, r.read(time.Second))
	}
	r.h.RxCRC += 2 // two of three are not well
	want(t, r.read(time.Second))
	for range 19 {
		want(t, r.read(time.Second))
	}
	want(t, r.read(time.Second), "-crc")
	if r.now.Sub(since) != 43*time.Second {
		t.Fatalf("after %v", r.now.Sub(since))
	}
}

func TestCRCErrorDownShutsAndOpensAgain(t *testing.T) {
	cfg := crcConfig(RespondShut)
	cfg.CRC.Recovery = 30 * time.Second
	r := newMeterRig(t, cfg, fabric.FieldCRC)
	r.h.RxCRC += 3
	want(t, r.read(time.Second), "+crc shut")
	want(t, r.event(fabric.PortChanged, false, false))
	s := r.status()
	if s.Reason != snsd.ReasonPacketError || !s.Shut || s.Causes[0].TimeLeft != 30*time.Second {
		t.Fatalf("status %+v", s)
	}
	want(t, r.read(29*time.Second))
	want(t, r.read(time.Second), "+link-down", "-crc open")
	want(t, r.up(), "-link-down")
	want(t, r.read(time.Second))
	r.h.RxCRC += 3
	want(t, r.read(time.Second), "+crc shut") // it has not got better
}

func TestPFCStormTripsAtTheThirtiethDeadlock(t *testing.T) {
	const every = 100 * time.Millisecond
	pauseTime := func(h *fabric.Health) { h.RxPauseTime[3] += every; h.RxPause[3] += 50 }
	for _, c := range []struct {
		name  string
		valid fabric.Fields
		step  func(h *fabric.Health)
		after time.Duration // 0: never
	}{
		{"pause time", fabric.FieldPause | fabric.FieldPauseTime, pauseTime, 5900 * time.Millisecond},
		{"pause time, nothing sent", fabric.FieldsOfPFC &^ fabric.FieldDeadlocks, pauseTime, 5900 * time.Millisecond},
		{"paused, and yet frames are sent", fabric.FieldPauseTime | fabric.FieldTxFrames,
			func(h *fabric.Health) { pauseTime(h); h.TxFrames[3]++ }, 0},
		{"paused nine tenths of the time", fabric.FieldPauseTime,
			func(h *fabric.Health) { h.RxPauseTime[3] += every * 9 / 10 }, 0},
		{"more paused than time has passed", fabric.FieldPauseTime,
			func(h *fabric.Health) { h.RxPauseTime[3] += 2 * every }, 0},
		{"frames alone", fabric.FieldPause, func(h *fabric.Health) { h.RxPause[3] += 100_000 }, 0},
		{"frames, nothing sent", fabric.FieldPause | fabric.FieldTxFrames,
			func(h *fabric.Health) { h.RxPause[3] += 100 }, 5900 * time.Millisecond},
		{"few frames, nothing sent", fabric.FieldPause | fabric.FieldTxFrames, func(h *fabric.Health) { h.RxPause[3] += 99 }, 0},
		{"frames, something sent", fabric.FieldPause | fabric.FieldTxFrames,
			func(h *fabric.Health) { h.RxPause[3] += 100; h.TxFrames[3]++ }, 0},
		{"the watchdog's state", fabric.FieldDeadlocks, func(h *fabric.Health) { h.Deadlocked = 8 }, 6000 * time.Millisecond},
		{"the watchdog's count", fabric.FieldDeadlocks, func(h *fabric.Health) { h.Deadlocks[3] += 2 }, 1500 * time.Millisecond},
		{"the watchdog's count leaps", fabric.FieldDeadlocks, func(h *fabric.Health) { h.Deadlocks[3] += 1000 }, 0},
		{"all is well", fabric.FieldsOfPFC, func(h *fabric.Health) { h.TxFrames[3] += 1000; h.RxPause[3] += 10 }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newMeterRig(t, Config{PFCStorm: PFCStormConfig{Reaction: Reaction{Response: RespondNotify}}}, c.valid)
			for r.now.Sub(t0) < 10*time.Second {
				c.step(&r.h)
				if got := r.read(every); len(got) > 0 {
					want(t, got, "+pfc-storm")
					if took := r.now.Sub(t0); took != c.after {
						t.Fatalf("after %v, want %v", took, c.after)
					}
					if s := r.status(); s.Reason != snsd.ReasonPFCStorm {
						t.Fatalf("status %+v", s)
					}
					return
				}
			}
			if c.after != 0 {
				t.Fatalf("never, want after %v", c.after)
			}
		})
	}
}

func TestPFCDetectionIsRearmedByOneMomentWithout(t *testing.T) {
	cfg := Config{PFCStorm: PFCStormConfig{Detect: time.Second, Deadlocks: 1, Reaction: Reaction{Response: RespondNotify}}}
	r := newMeterRig(t, cfg, fabric.FieldPauseTime)
	for i := range 100 {
		if i%9 != 8 {
			r.h.RxPauseTime[3] += 100 * time.Millisecond
		}
		want(t, r.read(100*time.Millisecond))
	}
	for range 9 {
		r.h.RxPauseTime[3] += 100 * time.Millisecond
		r.read(100 * time.Millisecond)
	}
	if _, faulty := r.m.Worst("e1"); !faulty {
		t.Fatal("not tripped after a whole second")
	}
}

func TestPFCCyclesOfALongInterval(t *testing.T) {
	c := (&Config{}).withDefaults().PFCStorm
	for _, step := range []time.Duration{7 * time.Millisecond, 100 * time.Millisecond, 130 * time.Millisecond, time.Second} {
		q, n, end := pfcPriority{}, uint64(0), time.Duration(0)
		for ; end < 5*time.Second; end += step {
			n += q.cycles(step, &c)
		}
		if exact := uint64((end + c.Recover) / (c.Detect + c.Recover)); n != exact {
			t.Errorf("in steps of %v: %d deadlocks in %v, want %d", step, n, end, exact)
		}
	}
}

func TestLowReceivePower(t *testing.T) {
	cfg := Config{LowPower: LowPowerConfig{Reaction: Reaction{Response: RespondNotify}}}
	r := newMeterRig(t, cfg, fabric.FieldRxPower)
	for _, c := range []struct {
		power int
		want  []string
	}{
		{-3000, nil}, {-20_000, nil}, {-13_999, nil}, // one low reading
		{-14_001, nil}, {-14_001, nil}, {-14_001, nil}, {fabric.NoLight, nil}, // does not measure
		{-14_001, nil}, {-14_001, nil}, {-14_001, nil}, {-14_001, []string{"+low-receive-power"}},
		{-13_500, nil}, {-13_500, nil}, {-13_500, nil}, // within the hysteresis
		{-13_000, nil}, {-3000, []string{"-low-receive-power"}},
	} {
		r.h.RxPower = c.power
		want(t, r.read(10*time.Second), c.want...)
	}
}

func TestStormControl(t *testing.T) {
	cfg := Config{StormControl: StormControlConfig{Broadcast: 1000, Reaction: Reaction{Response: RespondNotify}}}
	r := newMeterRig(t, cfg, fabric.FieldBroadcast|fabric.FieldMulticast)
	for i, c := range []struct {
		broadcast, multicast uint64
		want                 []string
	}{
		{999, 1e9, nil}, {5000, 0, nil}, {5000, 0, nil}, {100, 0, nil}, {1 << 62, 0, nil}, // a leap
		{1000, 0, nil}, {1000, 0, nil}, {1000, 0, nil}, {1000, 0, nil}, {1000, 0, []string{"+storm-control"}},
		{600, 0, nil}, {0, 0, nil}, {700, 0, nil}, {400, 0, nil},
	} {
		r.h.RxBroadcast += c.broadcast
		r.h.RxMulticast += c.multicast
		if got := r.read(time.Second); len(got) != len(c.want) {
			t.Fatalf("step %d: %q, want %q", i, got, c.want)
		}
	}
	for range 9 {
		want(t, r.read(time.Second))
	}
	want(t, r.read(time.Second), "-storm-control")
}

func TestShutByHand(t *testing.T) {
	r := newMeterRig(t, crcConfig(RespondNotify), fabric.FieldCRC)
	changes, err := r.m.Shut("e1", r.now)
	if err != nil {
		t.Fatal(err)
	}
	want(t, short(changes), "+manual shut")
	if _, err := r.m.Shut("e1", r.now); !errors.Is(err, ErrIsShut) {
		t.Fatalf("again: %v", err)
	}
	if _, err := r.m.Shut("e2", r.now); !errors.Is(err, ErrNoPort) {
		t.Fatalf("another: %v", err)
	}
	want(t, r.event(fabric.PortChanged, false, false))
	want(t, r.after(24*time.Hour).tick())
	changes, err = r.m.Recover("e1", r.now)
	if err != nil {
		t.Fatal(err)
	}
	want(t, short(changes), "+link-down", "-manual open")
}

func TestTheMostSeriousOfSeveralCausesCounts(t *testing.T) {
	cfg := Config{
		CRC:      CRCConfig{Reaction: Reaction{Response: RespondNotify}},
		PFCStorm: PFCStormConfig{Deadlocks: 1, Reaction: Reaction{Response: RespondNotify}},
	}
	r := newMeterRig(t, cfg, fabric.FieldCRC|fabric.FieldPauseTime)
	worst := func(c Cause) {
		t.Helper()
		if got, _ := r.m.Worst("e1"); got != c {
			t.Fatalf("worst is %v, want %v", got, c)
		}
	}
	r.h.RxCRC += 3
	want(t, r.read(100*time.Millisecond), "+crc")
	worst(CRC)
	r.h.RxPauseTime[3] += 100 * time.Millisecond
	want(t, r.read(100*time.Millisecond), "+pfc-storm")
	worst(PFCStorm)
	want(t, r.down(), "+link-down")
	worst(LinkDown)
	want(t, r.after(time.Hour).up(), "-link-down")
	worst(PFCStorm)
	var got []string
	for range 60 {
		got = append(got, r.read(time.Second)...)
	}
	want(t, got, "-pfc-storm", "-crc")
}

func TestMeasuredFaultsSurviveARestart(t *testing.T) {
	r := newMeterRig(t, crcConfig(RespondNotify), fabric.FieldCRC)
	r.h.RxCRC += 3
	want(t, r.read(time.Second), "+crc")
	saved := r.m.Snapshot()
	r.m = NewMonitor(crcConfig(RespondNotify))
	want(t, short(r.m.Restore(saved, r.now)), "+crc initial")
	want(t, r.add())
	for range 11 {
		want(t, r.read(time.Second))
	}
	want(t, r.read(time.Second), "-crc")
	want(t, short(NewMonitor(Config{}).Restore([]Saved{{Port: "e1", Standing: []SavedCause{{Cause: LinkDown}, {Cause: "sunspots"}}}}, t0)))
}

func TestExceptionsForPorts(t *testing.T) {
	names, err := fabric.ParseNames([]string{"e*"})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Ports: []Exception{{Names: names, Config: crcConfig(RespondNotify)}}}
	r := newMeterRig(t, cfg, fabric.FieldCRC)
	r.m.Port(fabric.Event{Kind: fabric.PortAdded, Port: fabric.Port{Name: "f1", AdminUp: true, Carrier: true}}, r.now)
	if a, b := len(r.m.Needs("e1")), len(r.m.Needs("f1")); a != 2 || b != 1 {
		t.Fatalf("%d and %d needs", a, b)
	}
	r.h.RxCRC += 3
	want(t, r.read(time.Second), "+crc")
	want(t, short(r.m.SetConfig(Config{}, r.now)), "-crc")
}

func TestNothingNewHappensByDefault(t *testing.T) {
	r := newMeterRig(t, Config{}, fabric.AllFields)
	for range 100 {
		r.h.RxCRC += 900
		r.h.RxBroadcast += 1e6
		r.h.RxPower = -39_000
		r.h.Deadlocked = 0xff
		want(t, r.read(time.Second))
	}
	if n := r.m.Needs("e1"); len(n) != 1 || n[0] != (Need{Fields: fabric.FieldCounters, Every: time.Second}) {
		t.Fatalf("needs %v", n)
	}
}

func TestWindowStaysSmall(t *testing.T) {
	var w window
	for i := range 100_000 {
		w.add(1, 1, at(time.Duration(i)*100*time.Millisecond), 100*time.Millisecond, time.Hour)
	}
	if len(w.list) > pieces+1 {
		t.Errorf("%d pieces", len(w.list))
	}
	n, _ := w.sum(at(10_000*time.Second), time.Hour)
	if n < 35_000 || n > 36_000 {
		t.Errorf("%d within the hour", n)
	}
}

// What the dataplane's own watchdog drops is the fault at once, and of what it guards nothing is
// counted here; its end is the end, after the hold-up time.
func TestTheWatchdogsVerdictIsTheFault(t *testing.T) {
	cfg := Config{PFCStorm: PFCStormConfig{Reaction: Reaction{Response: RespondNotify}}}
	valid := fabric.FieldVerdict | fabric.FieldDeadlocks | fabric.FieldPauseTime
	r := newMeterRig(t, cfg, valid)
	r.h.Guarded = 1 << 3
	for range 100 { // held for ten seconds: the watchdog would have said so
		r.h.RxPauseTime[3] += 100 * time.Millisecond
		want(t, r.read(100*time.Millisecond))
	}
	r.h.Dropping, r.h.Deadlocked, r.h.Valid = 1<<3, 1<<3, fabric.FieldVerdict
	want(t, r.read(10*time.Millisecond), "+pfc-storm")
	r.h.Dropping, r.h.Deadlocked = 0, 0
	want(t, r.read(time.Second))
	for range 9 {
		want(t, r.read(time.Second))
	}
	want(t, r.read(time.Second), "-pfc-storm")
	// A priority that nobody guards is counted as ever.
	r.h.Valid = valid
	want(t, r.read(time.Second))
	var got []string
	for i := 0; i < 100 && len(got) == 0; i++ {
		r.h.RxPauseTime[4] += 100 * time.Millisecond
		got = r.read(100 * time.Millisecond)
	}
	want(t, got, "+pfc-storm")
}

// The event says what was measured where that is no checksum.
func TestACauseSaysWhatItMeasured(t *testing.T) {
	r := newMeterRig(t, crcConfig(RespondNotify), fabric.FieldCRC)
	r.h.RxCRCOf = "input errors"
	r.h.RxCRC += 50
	r.after(time.Second)
	r.h.At = r.now
	if out := r.m.Sample("e1", r.h, r.now); len(out) != 1 || out[0].Of != "input errors" {
		t.Errorf("%+v", out)
	}
}
