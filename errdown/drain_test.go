package errdown

import (
	"errors"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

func changesOf(t *testing.T, ch []Change, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return short(ch)
}

func TestADrainedPortIsOpenUntilItIsClosed(t *testing.T) {
	r := newRig(t, Config{})
	r.add()
	ch, err := r.m.Drain("e1", r.now)
	want(t, changesOf(t, ch, err), "+drained")
	if s := r.status(); s.Shut || s.Reason != snsd.ReasonAgedOut {
		t.Errorf("status %+v", s)
	}
	if _, err := r.m.Drain("e1", r.now); !errors.Is(err, ErrIsDrained) {
		t.Errorf("a second time: %v", err)
	}
	saved := r.m.Snapshot()
	want(t, short(r.m.Close("e1", r.now)), "+drained shut")
	want(t, short(r.m.Close("e1", r.now)))
	want(t, r.event(fabric.PortChanged, false, false)) // our own doing is no link-down
	ch, err = r.m.Undrain("e1", r.after(time.Minute).now)
	want(t, changesOf(t, ch, err), "+link-down", "-drained open")
	if _, err := r.m.Undrain("e1", r.now); !errors.Is(err, ErrNoFault) {
		t.Errorf("undone a second time: %v", err)
	}
	want(t, r.event(fabric.PortChanged, true, false))
	want(t, r.up(), "-link-down")

	again := newRig(t, Config{}) // restarted while it was open
	want(t, short(again.m.Restore(saved, again.now)), "+drained initial")
	again.add()
	if _, closed, ok := again.m.Drained("e1"); closed || !ok {
		t.Errorf("restored: closed %t, drained %t", closed, ok)
	}
	want(t, short(again.m.Close("e1", again.now)), "+drained shut")
}

// Another cause that keeps the port shut is not overruled by the end of a draining.
func TestTheEndOfADrainingOpensNoPortThatIsShutForAnotherCause(t *testing.T) {
	r := newRig(t, Config{})
	r.add()
	ch, err := r.m.Shut("e1", r.now)
	want(t, changesOf(t, ch, err), "+manual shut")
	ch, err = r.m.Drain("e1", r.now)
	want(t, changesOf(t, ch, err), "+drained")
	want(t, short(r.m.Close("e1", r.now)), "+drained")
	ch, err = r.m.Undrain("e1", r.now)
	want(t, changesOf(t, ch, err), "-drained")
	if s := r.status(); !s.Shut {
		t.Error("the port was opened")
	}
}
