package device

import (
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
)

// A host may have seen its link go where the switch was told of nothing but the changes it counts.
func TestAHostIsToldAgainAfterABlinkThatOnlyTheCounterTells(t *testing.T) {
	m := newMeshCore(t)
	m.sync(wire.Settings{})
	up := func(changes uint64) []string {
		m.told = nil
		m.c.Port(fabric.Event{Kind: fabric.PortChanged, At: m.now, Changes: changes,
			Port: fabric.Port{Name: "eth1", Index: 1, AdminUp: true, Carrier: true}}, m.now)
		m.pass(time.Second)
		return m.told
	}
	if told := up(1); len(told) > 0 {
		t.Errorf("told without a change of carrier: %q", told)
	}
	if told, want := up(3), []string{"eth1: " + t1 + " active none"}; !slices.Equal(told, want) {
		t.Errorf("told after a blink %q, want %q", told, want)
	}
}
