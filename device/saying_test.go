package device

import (
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
)

// said is a device that notes when it acts, and when operators are told.
type said struct {
	*timed
	did []string
}

func (s *said) SendFrame(port string, f []byte) {
	s.did = append(s.did, "frame")
	s.timed.SendFrame(port, f)
}

func (s *said) ToReflectors([]wire.Delivery) { s.did = append(s.did, "message") }

func (s *said) Event(e api.Event) { s.did = append(s.did, e.Kind) }

func newSaid(t *testing.T) *said {
	s := &said{timed: newTimed(t)}
	s.Core.out, s.Core.stopwatch = s, s.timed
	s.Pump(s.now)
	s.did = nil
	return s
}

func TestFramesLeaveBeforeOperatorsAreTold(t *testing.T) {
	s := newSaid(t)
	s.hear(s.fault(0, 0))
	if want := []string{"frame", "fault"}; !slices.Equal(s.did, want) {
		t.Errorf("another device's fault: %q, want %q", s.did, want)
	}
}

func TestAnUpdateLeavesBeforeOperatorsAreTold(t *testing.T) {
	s := newSaid(t)
	s.now = s.now.Add(time.Second)
	s.Port(fabric.Event{Kind: fabric.PortChanged, Port: fabric.Port{Name: "eth1", Index: 1, AdminUp: true}, At: s.now}, s.now)
	if want := []string{"message"}; !slices.Equal(s.did, want) {
		t.Errorf("a lost carrier: %q at once, want %q", s.did, want)
	}
	s.Pump(s.now)
	if want := []string{"message", "fault", "port"}; !slices.Equal(s.did, want) {
		t.Errorf("a lost carrier: %q in the end, want %q", s.did, want)
	}
	s.did = nil
	s.Complain(s.now, "send", "eth1", wire.Malformed("x", "y"))
	s.Say()
	s.Say()
	if want := []string{"error"}; !slices.Equal(s.did, want) {
		t.Errorf("told once: %q, want %q", s.did, want)
	}
}
