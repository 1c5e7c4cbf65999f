package errdown

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

var t0 = time.Unix(1_800_000_000, 0).UTC()

func at(d time.Duration) time.Time { return t0.Add(d) }

// rig feeds a Monitor and keeps short forms of what it said.
type rig struct {
	t     *testing.T
	m     *Monitor
	now   time.Time
	index int
}

func newRig(t *testing.T, cfg Config) *rig { return &rig{t: t, m: NewMonitor(cfg), now: t0, index: 1} }

func (r *rig) after(d time.Duration) *rig { r.now = r.now.Add(d); return r }

func (r *rig) event(kind fabric.EventKind, admin, carrier bool) []string {
	p := fabric.Port{Name: "e1", Index: r.index, AdminUp: admin, Carrier: admin && carrier}
	return short(r.m.Port(fabric.Event{Kind: kind, Port: p, At: r.now}, r.now))
}

func (r *rig) up() []string   { return r.event(fabric.PortChanged, true, true) }
func (r *rig) down() []string { return r.event(fabric.PortChanged, true, false) }
func (r *rig) add() []string  { return r.event(fabric.PortAdded, true, true) }

func (r *rig) sample(changes uint64) []string {
	return short(r.m.Sample("e1", counted(changes), r.now))
}

func counted(changes uint64) fabric.Health {
	return fabric.Health{Valid: fabric.FieldCounters, Counters: fabric.Counters{CarrierChanges: changes}}
}

func (r *rig) tick() []string { return short(r.m.Tick(r.now)) }

func (r *rig) status() PortStatus {
	s, _ := r.m.PortStatus("e1", r.now)
	return s
}

func short(changes []Change) []string {
	var out []string
	for _, c := range changes {
		s := "+" + c.Cause.String()
		if !c.Faulty {
			s = "-" + c.Cause.String()
		}
		if c.Initial {
			s += " initial"
		}
		if c.Action != ActionNone {
			s += " " + c.Action.String()
		}
		out = append(out, s)
	}
	return out
}

func want(t *testing.T, got []string, expected ...string) {
	t.Helper()
	if !slices.Equal(got, expected) {
		t.Fatalf("changes %q, want %q", got, expected)
	}
}

func TestLinkDownTripsAndRecoversAtOnce(t *testing.T) {
	r := newRig(t, Config{})
	want(t, r.add())
	got := r.after(time.Second).m.Port(fabric.Event{Kind: fabric.PortChanged, Port: fabric.Port{Name: "e1", Index: 1, AdminUp: true}, At: at(900 * time.Millisecond)}, r.now)
	expected := []Change{{Port: "e1", Cause: LinkDown, Faulty: true, Since: at(900 * time.Millisecond), At: at(900 * time.Millisecond), Flaps: 1}}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Fatal(diff)
	}
	want(t, r.down())
	got = r.after(time.Second).m.Port(fabric.Event{Kind: fabric.PortChanged, Port: fabric.Port{Name: "e1", Index: 1, AdminUp: true, Carrier: true}}, r.now)
	expected = []Change{{Port: "e1", Cause: LinkDown, Since: at(900 * time.Millisecond), At: at(2 * time.Second), Flaps: 2}}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Fatal(diff)
	}
	if _, faulty := r.m.Worst("e1"); faulty || !r.m.Next().IsZero() {
		t.Fatal("not well after the carrier came back")
	}
}

func TestPortWithoutCarrierIsFaultyFromTheStart(t *testing.T) {
	r := newRig(t, Config{})
	want(t, r.event(fabric.PortAdded, true, false), "+link-down initial")
	want(t, r.up(), "-link-down")
	if f := r.status().Flaps; f != 1 {
		t.Fatalf("%d changes counted, want 1", f)
	}
}

func TestOperatorShuttingIsLinkDownAndNoFlap(t *testing.T) {
	r := newRig(t, Config{})
	r.add()
	want(t, r.event(fabric.PortChanged, false, false), "+link-down")
	want(t, r.event(fabric.PortChanged, true, false))
	want(t, r.up(), "-link-down")
	// Coming up after the operator opened the port is a change on an open port.
	if f := r.status().Flaps; f != 1 {
		t.Fatalf("%d changes counted, want 1", f)
	}
}

func TestRemovedPortIsLinkDown(t *testing.T) {
	r := newRig(t, Config{})
	r.add()
	want(t, r.event(fabric.PortRemoved, true, true), "+link-down")
	if s := r.status(); s.Present || s.Reason != snsd.ReasonLinkDown {
		t.Fatalf("status %+v", s)
	}
	r.index++
	want(t, r.add(), "-link-down")
	if s := r.status(); s.Flaps != 0 {
		t.Fatalf("a plugged module counted as %d flaps", s.Flaps)
	}

	other := newRig(t, Config{})
	want(t, other.event(fabric.PortRemoved, true, true), "+link-down initial")
	other.m.Forget("e1")
	if len(other.m.Status(t0)) != 0 {
		t.Fatal("a removed port was not forgotten")
	}
	r.m.Forget("e1")
	if len(r.m.Status(t0)) != 1 {
		t.Fatal("a present port was forgotten")
	}
}

func TestHoldUpDelaysRecoveryAndBeginsAnewOnLoss(t *testing.T) {
	r := newRig(t, Config{LinkDown: LinkDownConfig{HoldUp: 2 * time.Second}})
	r.add()
	want(t, r.down(), "+link-down")
	want(t, r.after(time.Second).up())
	if got := r.m.Next(); !got.Equal(at(3 * time.Second)) {
		t.Fatalf("next is %v", got)
	}
	want(t, r.after(time.Second).down())
	if !r.m.Next().IsZero() {
		t.Fatal("recovery still pending without carrier")
	}
	want(t, r.after(time.Second).up())
	want(t, r.after(1999*time.Millisecond).tick())
	if left := r.status().Causes[0].TimeLeft; left != time.Millisecond {
		t.Fatalf("time left %v", left)
	}
	want(t, r.after(time.Millisecond).tick(), "-link-down")
}

func flapConfig(resp Response, recovery time.Duration) Config {
	return Config{LinkFlap: LinkFlapConfig{Response: resp, Recovery: recovery}}
}

// flap changes the carrier n times, 1 s apart, ending in the last call's changes.
func (r *rig) flap(n int) (last []string) {
	for i := range n {
		r.after(time.Second)
		if i%2 == 0 {
			last = r.down()
		} else {
			last = r.up()
		}
	}
	return last
}

func TestFlapsAreAlwaysCountedAndTripOnlyWhenEnabled(t *testing.T) {
	r := newRig(t, Config{})
	r.add()
	want(t, r.flap(20), "-link-down")
	if s := r.status(); s.Flaps != 20 || s.FlapsInWindow != 10 || !s.LastFlap.Equal(r.now) || len(s.Causes) != 0 {
		t.Fatalf("status %+v", s)
	}
}

func TestFlapTripsAtTheFifthChangeInTheWindow(t *testing.T) {
	r := newRig(t, flapConfig(RespondNotify, 0))
	r.add()
	r.flap(4)
	r.after(7 * time.Second) // the first change leaves the window at the same moment
	want(t, r.down(), "+link-down")
	want(t, r.after(100*time.Millisecond).up(), "+link-flap", "-link-down")
	if c, faulty := r.m.Worst("e1"); !faulty || c != LinkFlap {
		t.Fatalf("worst is %v %v", c, faulty)
	}
	want(t, r.after(time.Hour).tick())
	changes, err := r.m.Recover("e1", r.now)
	if err != nil {
		t.Fatal(err)
	}
	want(t, short(changes), "-link-flap")
	want(t, r.down(), "+link-down")
}

func TestErrorDownShutsOpensAndIgnoresItsOwnCarrierLoss(t *testing.T) {
	r := newRig(t, flapConfig(RespondShut, 30*time.Second))
	r.add()
	r.flap(4)
	r.after(time.Second)
	want(t, r.down(), "+link-down", "+link-flap shut")
	want(t, r.after(time.Millisecond).event(fabric.PortChanged, false, false))
	s := r.status()
	if c, _ := r.m.Worst("e1"); c != LinkDown || !s.Shut || s.Flaps != 5 || len(s.Causes) != 2 ||
		s.Causes[1].Recovery != 30*time.Second || s.Causes[1].TimeLeft != 30*time.Second-time.Millisecond {
		t.Fatalf("status %+v", s)
	}
	want(t, r.after(30*time.Second).tick(), "-link-flap open")
	want(t, r.after(time.Millisecond).event(fabric.PortChanged, true, false))
	want(t, r.after(time.Second).up(), "-link-down")
	if s := r.status(); s.Flaps != 5 || s.FlapsInWindow != 0 {
		t.Fatalf("own shutting was counted: %+v", s)
	}
}

func TestShutPortPassesThroughLinkDownWhenOpened(t *testing.T) {
	r := newRig(t, flapConfig(RespondShut, 30*time.Second))
	r.event(fabric.PortAdded, true, false)
	r.flap(1)
	r.up()
	r.down()
	r.up()
	r.down()
	want(t, r.up(), "+link-flap shut", "-link-down")
	want(t, r.event(fabric.PortChanged, false, false))
	want(t, r.after(30*time.Second).tick(), "+link-down", "-link-flap open")
	want(t, r.event(fabric.PortChanged, true, false))
	want(t, r.up(), "-link-down")
}

func TestOperatorOpeningAShutPortIsARecovery(t *testing.T) {
	r := newRig(t, flapConfig(RespondShut, 0))
	r.event(fabric.PortAdded, true, false)
	r.up()
	r.down()
	r.up()
	r.down()
	want(t, r.up(), "+link-flap shut", "-link-down")
	want(t, r.down()) // still under way before the port was shut
	want(t, r.event(fabric.PortChanged, false, false))
	want(t, r.event(fabric.PortChanged, true, false), "+link-down", "-link-flap")
	want(t, r.up(), "-link-down")
	if s := r.status(); s.Shut || s.Flaps != 5 {
		t.Fatalf("status %+v", s)
	}
}

func TestRemovalEndsErrorDown(t *testing.T) {
	r := newRig(t, flapConfig(RespondShut, 0))
	r.add()
	r.flap(4)
	r.down()
	r.event(fabric.PortChanged, false, false)
	want(t, r.event(fabric.PortRemoved, false, false), "-link-flap")
	want(t, r.add(), "-link-down")
}

func TestRecoverNamesWhatIsWrong(t *testing.T) {
	r := newRig(t, Config{})
	for _, c := range []struct {
		do   func()
		want error
	}{
		{func() {}, ErrNoPort},
		{func() { r.add() }, ErrNoFault},
		{func() { r.down() }, ErrNotByHand},
	} {
		c.do()
		if _, err := r.m.Recover("e1", t0); !errors.Is(err, c.want) {
			t.Errorf("error %v, want %v", err, c.want)
		}
	}
}

func TestCounterTellsOfFlapsTooShortForEvents(t *testing.T) {
	r := newRig(t, flapConfig(RespondNotify, 0))
	r.add()
	want(t, r.sample(100))
	want(t, r.sample(106)) // perhaps events are still on their way
	want(t, r.sample(106), "+link-flap")
	if s := r.status(); s.Flaps != 6 {
		t.Fatalf("%d changes counted, want 6", s.Flaps)
	}
	if c := r.m.Counters(); c.Flaps != 6 || c.FlapsMissed != 6 {
		t.Fatalf("counters %+v", c)
	}
}

func TestCounterAndEventsCountOneChangeOnce(t *testing.T) {
	r := newRig(t, Config{})
	r.add()
	r.sample(7)
	r.down()
	r.sample(8) // read after the event
	r.sample(9) // read before the next one
	r.up()
	r.sample(9)
	r.down()
	r.sample(9) // read long ago
	r.sample(10)
	if s := r.status(); s.Flaps != 3 {
		t.Fatalf("%d changes counted, want 3", s.Flaps)
	}
}

func TestCounterJumpsAreNoFlaps(t *testing.T) {
	r := newRig(t, flapConfig(RespondShut, 0))
	r.add()
	for _, c := range []uint64{50, 0, 3_000_000_000, 1<<64 - 1, 4, 4, 4} {
		want(t, r.sample(c))
	}
	if s, c := r.status(), r.m.Counters(); s.Flaps != 0 || c.SampleJumps != 4 {
		t.Fatalf("status %+v, counters %+v", s, c)
	}
	r.m.Sample("nowhere", fabric.Health{}, t0)
	if c := r.m.Counters(); c.SamplesUnknown != 1 {
		t.Fatalf("counters %+v", c)
	}
}

func TestBadEventsAreRejected(t *testing.T) {
	m := NewMonitor(Config{})
	long := string(make([]byte, fabric.MaxPortName+1))
	for _, ev := range []fabric.Event{{}, {Kind: fabric.PortAdded}, {Kind: 9, Port: fabric.Port{Name: "e1"}}, {Kind: fabric.PortAdded, Port: fabric.Port{Name: long}}} {
		if out := m.Port(ev, t0); out != nil {
			t.Errorf("%+v gave %v", ev, out)
		}
	}
	if c := m.Counters(); c.EventsRejected != 4 || c.Events != 0 {
		t.Fatalf("counters %+v", c)
	}
}

func TestErrorDownSurvivesARestart(t *testing.T) {
	r := newRig(t, flapConfig(RespondShut, time.Minute))
	r.add()
	r.flap(5)
	r.event(fabric.PortChanged, false, false)
	b, err := json.Marshal(r.m.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	var saved []Saved
	if err := json.Unmarshal(b, &saved); err != nil {
		t.Fatal(err)
	}
	r.m = NewMonitor(flapConfig(RespondShut, time.Minute))
	want(t, short(r.m.Restore(saved, r.now)), "+link-flap initial")
	want(t, r.event(fabric.PortAdded, false, false))
	if s := r.status(); s.Flaps != 5 || !s.Shut {
		t.Fatalf("status %+v", s)
	}
	want(t, r.after(time.Minute).tick(), "+link-down", "-link-flap open")
	want(t, r.up(), "-link-down")

	// The port was opened while we were away.
	r.m = NewMonitor(flapConfig(RespondShut, time.Minute))
	r.m.Restore(saved, r.now)
	want(t, r.event(fabric.PortAdded, true, true), "-link-flap")
}

// A port that was shut is opened when its time is over, also if the clock was set back while the
// process was away.
func TestAClockThatIsSetBackLeavesNoPortShut(t *testing.T) {
	r := newRig(t, flapConfig(RespondShut, time.Minute))
	r.add()
	r.flap(5)
	r.event(fabric.PortChanged, false, false)
	saved := r.m.Snapshot()
	r.now = r.now.Add(-40 * 365 * 24 * time.Hour)
	r.m = NewMonitor(flapConfig(RespondShut, time.Minute))
	want(t, short(r.m.Restore(saved, r.now)), "+link-flap initial")
	want(t, r.event(fabric.PortAdded, false, false))
	want(t, r.after(time.Minute).tick(), "+link-down", "-link-flap open")
}

func TestConfigurationTakesEffectOnRunningFaults(t *testing.T) {
	r := newRig(t, flapConfig(RespondShut, 0))
	r.add()
	r.flap(5)
	r.event(fabric.PortChanged, false, false)
	want(t, short(r.m.SetConfig(flapConfig(RespondShut, 30*time.Second), r.now)))
	if next := r.m.Next(); !next.Equal(at(35 * time.Second)) {
		t.Fatalf("next is %v", next)
	}
	want(t, short(r.m.SetConfig(Config{}, r.now)), "-link-flap open")
}

func TestConfigRanges(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Fatal(err)
	}
	bad := Config{LinkDown: LinkDownConfig{-1}, LinkFlap: LinkFlapConfig{Changes: 1, Window: 1, Response: 9, Recovery: 29 * time.Second}}
	err := bad.Validate()
	if n := len(err.(interface{ Unwrap() []error }).Unwrap()); n != 5 || !errors.Is(err, ErrConfig) {
		t.Fatalf("%d errors: %v", n, err)
	}
	if err := bad.withDefaults().Validate(); err != nil {
		t.Fatalf("after bringing into range: %v", err)
	}
}

func TestNamesOfEnumsComeBack(t *testing.T) {
	for c := range reasons {
		var back Cause
		if back.UnmarshalText([]byte(c)) != nil || back != c || c.Reason() == 0 {
			t.Errorf("cause %v came back as %v", c, back)
		}
	}
	for v := RespondNone; v <= RespondShut; v++ {
		var back Response
		if b, _ := v.MarshalText(); back.UnmarshalText(b) != nil || back != v {
			t.Errorf("response %v came back as %v", v, back)
		}
	}
}

// restarted has another Monitor take over what this one would keep.
func (r *rig) restarted(cfg Config) []string {
	r.t.Helper()
	b, err := json.Marshal(r.m.Snapshot())
	var saved []Saved
	if err == nil {
		err = json.Unmarshal(b, &saved)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.m = NewMonitor(cfg)
	return short(r.m.Restore(saved, r.now))
}

// A process may end after it has told of a fault and before the port is shut, or
// between a recovery and the opening: the next one does what is left to do.
func TestWhatWasLeftToDoAtAPortIsDoneAfterARestart(t *testing.T) {
	cfg := flapConfig(RespondShut, time.Minute)
	r := newRig(t, cfg)
	r.add()
	r.flap(5)
	want(t, r.restarted(cfg), "+link-flap initial")
	want(t, r.add(), "+link-flap initial shut")
	if s := r.m.Saved("e1"); !s.Shut || !s.Unseen {
		t.Errorf("kept: %+v", s)
	}
	want(t, r.event(fabric.PortChanged, false, false))
	want(t, r.restarted(cfg), "+link-flap initial")
	want(t, r.event(fabric.PortAdded, false, false))
	want(t, r.after(time.Minute).tick(), "+link-down", "-link-flap open")
	want(t, r.restarted(cfg))
	want(t, r.event(fabric.PortAdded, false, false), "+link-down initial open")
	want(t, r.up(), "-link-down")
	if s := r.m.Saved("e1"); s.Shut || s.Opening || s.Flaps != 5 {
		t.Errorf("kept: %+v", s)
	}
	want(t, r.restarted(cfg))
	want(t, r.event(fabric.PortAdded, false, false), "+link-down initial") // an operator shut it: that stays
}

// A port that was opened before the process ended is not opened again.
func TestAPortThatWasOpenedIsLeftAlone(t *testing.T) {
	cfg := flapConfig(RespondShut, time.Minute)
	r := newRig(t, cfg)
	r.add()
	r.flap(5)
	r.event(fabric.PortChanged, false, false)
	r.after(time.Minute).tick()
	want(t, r.restarted(cfg))
	want(t, r.event(fabric.PortAdded, true, true))
	if s := r.m.Saved("e1"); s.Opening {
		t.Errorf("kept: %+v", s)
	}
}
