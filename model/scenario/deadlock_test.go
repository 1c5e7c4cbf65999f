package scenario

import (
	"testing"

	"github.com/openinof/inof/model"
)

// A deadlock stays when everybody has stopped sending: no frame moves any more, and many are held.
// With the watchdog, or with hooked traffic in a class of its own, all of them come out.
func TestADeadlockOutlivesItsSenders(t *testing.T) {
	for _, c := range []struct {
		name string
		held bool
	}{{"ring-deadlock", true}, {"hook-deadlock", true}, {"ring-recovery", false}, {"hook-recovery", false}, {"hook-prevention", false}} {
		f, err := Load("../../scenarios/" + c.name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		b, err := f.build()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.begin(); err != nil {
			t.Fatal(err)
		}
		at := f.Duration
		run := func(more model.Time) model.Totals {
			t.Helper()
			at += more
			if err := b.sim.Run(at); err != nil {
				t.Fatal(err)
			}
			return b.sim.Totals()
		}
		run(0)
		for i := range b.sim.Flows() {
			b.sim.CloseQP(model.FlowID(i))
		}
		soon, late := run(5*model.Millisecond), run(50*model.Millisecond)
		still := late.Live > 1000 && late.Live == soon.Live && late.Delivered["data"] == soon.Delivered["data"]
		if still != c.held || !c.held && late.Live != 0 {
			t.Errorf("%s: 5 ms after the last sender stopped %d frames are held, 55 ms after it %d", c.name, soon.Live, late.Live)
		}
		if err := b.sim.CheckConservation(); err != nil {
			t.Error(err)
		}
	}
}
