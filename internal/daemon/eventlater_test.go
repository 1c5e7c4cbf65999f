package daemon

import (
	"testing"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
)

// Events of an input are logged, which wakes others, in order and only after what hosts and
// clients wait for; those of a request are there when it is answered.
func TestEventsAreLoggedAfterWhatFollowsFromAnInput(t *testing.T) {
	log := api.NewEventLog(10, time.Now())
	d, err := NewDevice(slowSender{}, log, time.Now, func(device.Actions) (*device.Core, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	latest := func() string { e, _ := log.Latest(); return e.Text }
	d.Event(api.Event{Text: "a"})
	d.Event(api.Event{Text: "b"})
	if latest() != "" {
		t.Errorf("%q was logged before the input is through", latest())
	}
	d.logEvents()
	if latest() != "b" {
		t.Errorf("the last of two events is %q", latest())
	}
	d.answer(func(time.Time) {
		d.Event(api.Event{Text: "c"})
		if latest() != "c" {
			t.Error("a request is answered without its event")
		}
	})
	if d.Event(api.Event{Text: "d"}); latest() != "c" {
		t.Error("logged before the input is through")
	}
}
