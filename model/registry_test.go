package model

import (
	"strings"
	"testing"
)

// Every entry of the registry can be made by its kind and by each set, says what it and its
// keys are, and belongs to a part that is documented.
func TestRegistryIsWhole(t *testing.T) {
	parts := map[Part]bool{}
	for _, p := range Parts {
		parts[p.Part] = true
		if len(Mechanisms(p.Part)) == 0 {
			t.Errorf("part %s has no mechanism", p.Part)
		}
	}
	seen := map[string]bool{}
	for _, m := range mechanisms {
		if !parts[m.Part] || m.About == "" {
			t.Errorf("%s %s: unknown part, or nothing said about it", m.Part, m.Kind)
		}
		names := append(setNames(m), m.Kind)
		for _, name := range names {
			if seen[string(m.Part)+name] {
				t.Errorf("%s %s: the name is used twice", m.Part, name)
			}
			seen[string(m.Part)+name] = true
			s, err := NewSettings(m.Part, name, "")
			if err != nil {
				t.Errorf("%s %s: %v", m.Part, name, err)
				continue
			}
			if err := s.Check(); err != nil {
				t.Errorf("%s %s: its defaults are refused: %v", m.Part, name, err)
			}
			for _, k := range Keys(s) {
				if k.About == "" {
					t.Errorf("%s %s: nothing said about %s", m.Part, name, k.Name)
				}
			}
		}
	}
}

// What is not in the registry is refused with what is; a set belongs to its kind.
func TestRegistrySaysWhatThereIs(t *testing.T) {
	for _, c := range []struct{ kind, set, want string }{
		{"cubicle", "", "there are none, dcqcn, cx4, paper"},
		{"dcqcn", "mine", "has no set \"mine\"; it has cx4, paper"},
	} {
		if _, err := NewSettings(PartCongestion, c.kind, c.set); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s/%s: %v, want %q in it", c.kind, c.set, err, c.want)
		}
	}
	if s, err := NewSettings(PartCongestion, "", "paper"); err != nil || s.(*DCQCN).Name != "paper" {
		t.Errorf("a set by its name alone: %v %v", s, err)
	}
}

// halving is a rate control made up here: each notification halves the rate, for good.
type halving struct{}

func (*halving) Check() error           { return nil }
func (*halving) Marking() ECN           { return ECN{Mode: ECNDequeue, KMin: 1000, KMax: 2000, PMax: 1} }
func (*halving) Answer() Answer         { return Answer{Echo: true} }
func (*halving) Controller() Controller { return &halves{rate: map[int]Rate{}} }

type halves struct {
	hearsNothing
	rate map[int]Rate
}

func (*halves) Hears() Hear { return HearNotified }
func (h *halves) Open(q QP) { h.rate[q.ID()] = q.Line() }
func (h *halves) Notified(q QP) {
	if r := h.rate[q.ID()] / 2; r >= Gbps {
		h.rate[q.ID()] = r
		q.SetRate(r)
	}
}

// A Controller that the engine does not know steers its flows.
func TestMadeUpController(t *testing.T) {
	cc := &halving{}
	s := oneSwitch(t, 3, ReferenceSwitch(8<<20, cc), ReferenceNIC(cc), link100, Options{})
	for i := range 2 {
		if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i), Dst: 2, Bytes: Forever, TOS: 3 << 5}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, Millisecond)
	for i := range 2 {
		if got := s.Flow(FlowID(i)).Rate; got > 50*Gbps+1000 || got < Gbps/2 {
			t.Errorf("flow %d at %v after marks", i, got)
		}
	}
}

// An event that belongs to the whole fabric is given to no shard: they stop before it.
func TestShardsStopBeforeEventsOfTheWhole(t *testing.T) {
	s := oneSwitch(t, 2, ReferenceSwitch(8<<20, nil), ReferenceNIC(nil), link100, Options{})
	s.At(Millisecond, 1)
	if at := s.firstWhole(); at != Millisecond {
		t.Errorf("a timer waits at 1 ms, found one at %v", at)
	}
	run(t, s, 2*Millisecond)
	if at := s.firstWhole(); at != never {
		t.Errorf("nothing waits, found something at %v", at)
	}
}
