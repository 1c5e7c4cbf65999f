package bfd

import (
	"testing"
	"time"
)

func TestSection683SlowUntilUp(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.wait(100 * time.Second)
	n := len(pu.sent)
	if n < 100 || n > 134 {
		t.Errorf("%d packets in 100 s, want 100 to 133", n)
	}
	for _, p := range pu.take() {
		if p.DesiredMinTx != 1_000_000 || p.RequiredMinRx != 50_000 || p.Poll {
			t.Fatalf("sent %+v", p)
		}
	}
	pu.mustSay(StateDown)
	if got := pu.take(); len(got) != 1 || got[0].State != StateInit || got[0].DesiredMinTx != 1_000_000 {
		t.Errorf("in Init sent %+v", got)
	}
	pu.mustSay(StateUp)
	if got := pu.take(); len(got) != 1 || got[0].State != StateUp || got[0].DesiredMinTx != 50_000 || !got[0].Poll {
		t.Errorf("in Up sent %+v, want a Poll with the fast timer", got)
	}
	pu.mustSay(StateDown)
	if got := pu.take(); len(got) != 1 || got[0].DesiredMinTx != 1_000_000 || got[0].Poll {
		t.Errorf("in Down again sent %+v", got)
	}
}

func TestSection683SlowerConfigurationStaysSlow(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(2*time.Second, 3)}, Config{})
	pu.up()
	pu.mustSay(StateUp)
	if s := pu.s(); s.desiredMinTx != 2_000_000 || s.polling {
		t.Errorf("Desired Min TX %d, polling %v", s.desiredMinTx, s.polling)
	}
}

func TestSection683LongerTransmitIntervalWaitsForTheFinal(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.reconcile(Peer{Timers: Timers{MinTx: 200 * ms, MinRx: 50 * ms, DetectMult: 3}})
	if got := pu.take(); len(got) != 1 || !got[0].Poll || got[0].DesiredMinTx != 200_000 {
		t.Fatalf("sent %+v, want a Poll", got)
	}
	for range 4 {
		pu.wait(50 * ms)
		pu.mustSay(StateUp)
	}
	if got := pu.take(); len(got) < 4 || !got[3].Poll || pu.s().interval() != span(50_000) {
		t.Errorf("%d packets in 200 ms, interval %d: the old one holds until the Final", len(got), pu.s().interval())
	}
	pu.mustSay(StateUp, final)
	if s := pu.s(); s.interval() != span(200_000) || s.polling {
		t.Errorf("after the Final the interval is %d, polling %v", s.interval(), s.polling)
	}
}

func TestSection683ShorterTransmitIntervalCountsAtOnce(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(200*ms, 3)}, Config{})
	pu.up()
	pu.mustSay(StateUp)
	pu.reconcile(Peer{Timers: Timers{MinTx: 50 * ms, MinRx: 200 * ms, DetectMult: 3}})
	if s := pu.s(); s.interval() != span(50_000) || !s.polling {
		t.Errorf("interval %d, polling %v", s.interval(), s.polling)
	}
}

func TestSection683ShorterReceiveIntervalWaitsForTheFinal(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(200*ms, 3)}, Config{})
	pu.up()
	pu.mustSay(StateUp)
	pu.reconcile(Peer{Timers: Timers{MinTx: 200 * ms, MinRx: 50 * ms, DetectMult: 3}})
	if d := pu.s().detectionTime(); d != 3*span(200_000) {
		t.Errorf("detection time %d before the Final", d)
	}
	pu.mustSay(StateUp, final)
	if d := pu.s().detectionTime(); d != 3*span(50_000) {
		t.Errorf("detection time %d after the Final", d)
	}
}

func TestSection683LongerReceiveIntervalCountsAtOnce(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.reconcile(Peer{Timers: Timers{MinTx: 50 * ms, MinRx: 200 * ms, DetectMult: 3}})
	if d := pu.s().detectionTime(); d != 3*span(200_000) {
		t.Errorf("detection time %d", d)
	}
	pu.wait(599 * ms)
	pu.want(StateUp, DiagNone)
	pu.wait(ms)
	pu.want(StateDown, DiagDetectTime)
}

// Section 6.5: only one Poll Sequence at a time; what changes meanwhile is polled
// next, since a Final may answer a packet that did not carry it yet.
func TestSection65ChangeDuringAPollSequenceWaitsForItsEnd(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.reconcile(Peer{Timers: Timers{MinTx: 200 * ms, MinRx: 50 * ms, DetectMult: 3}})
	pu.reconcile(Peer{Timers: Timers{MinTx: 400 * ms, MinRx: 50 * ms, DetectMult: 3}})
	pu.take()
	pu.mustSay(StateUp, final)
	if s := pu.s(); s.interval() != span(200_000) || !s.polling || s.desiredMinTx != 400_000 {
		t.Errorf("interval %d, polling %v for %d", s.interval(), s.polling, s.desiredMinTx)
	}
	if got := pu.take(); len(got) != 1 || !got[0].Poll {
		t.Errorf("sent %+v, want the second Poll", got)
	}
	pu.mustSay(StateUp, final)
	if s := pu.s(); s.interval() != span(400_000) || s.polling {
		t.Errorf("interval %d, polling %v", s.interval(), s.polling)
	}
}

func TestSection683PollThatIsCutShortLeavesNoOldInterval(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.reconcile(Peer{Timers: every(time.Second, 3)})
	pu.mustSay(StateDown) // in place of the Final
	pu.mustSay(StateInit)
	pu.mustSay(StateUp)
	if s := pu.s(); s.polling || s.interval() != span(1_000_000) {
		t.Errorf("polling %v, interval %d", s.polling, s.interval())
	}
}

func TestSection65FinalWithoutPollChangesNothing(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.mustSay(StateUp, final)
	if s := pu.s(); s.polling || s.state != StateUp || pu.m.Counters().Polls != 1 {
		t.Errorf("polling %v, %v", s.polling, s.state)
	}
}

func TestSection65PollIsRepeatedUntilAnswered(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.mustSay(StateDown)
	pu.mustSay(StateInit)
	pu.wait(120 * ms)
	got := pu.take()
	if len(got) < 4 {
		t.Fatalf("sent %d packets", len(got))
	}
	for _, p := range got[1:] {
		if !p.Poll {
			t.Errorf("a packet of the sequence has no P: %+v", p)
		}
	}
}

func TestSection687PollIsAnsweredAtOnceAndInEveryState(t *testing.T) {
	for _, st := range []State{StateDown, StateInit, StateUp} {
		pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
		switch st {
		case StateInit:
			pu.mustSay(StateDown)
		case StateUp:
			pu.up()
		}
		pu.take()
		say := StateUp // Down hears Up: stays Down
		if st == StateInit {
			say = StateDown
		}
		pu.mustSay(say, poll)
		got := pu.take()
		if len(got) != 1 || !got[0].Final || got[0].Poll || got[0].State != st {
			t.Errorf("%v answers a Poll by %+v", st, got)
		}
	}
}

func TestSection687FinalsAreLimited(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	for range 100 {
		pu.mustSay(StateUp, poll)
		pu.wait(100 * time.Microsecond)
	}
	finals := 0
	for _, p := range pu.take() {
		if p.Final {
			finals++
		}
	}
	if finals != 10 || pu.m.Counters().FinalsLimited != 90 {
		t.Errorf("%d Finals in 10 ms, %d held back", finals, pu.m.Counters().FinalsLimited)
	}
}

func TestSection687FinalDoesNotMoveThePeriodicPackets(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	next := pu.s().txAt
	pu.wait(5 * ms)
	pu.mustSay(StateUp, poll)
	if pu.s().txAt != next {
		t.Error("the periodic packet was moved")
	}
}
