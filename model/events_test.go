package model

import "testing"

// Every kind of event has its line: a name of its own, what is done, and whose it is. Only what the
// whole fabric is asked for belongs to nobody, and is never given to a shard.
func TestEveryEventHasItsOwner(t *testing.T) {
	names := map[string]bool{}
	for kind, e := range events {
		if e.name == "" || names[e.name] || e.handle == nil {
			t.Errorf("event %d: name %q, handled %v", kind, e.name, e.handle != nil)
		}
		names[e.name] = true
		if (e.port == nil) != (kind == evTimer) {
			t.Errorf("event %s: has an owner: %v", e.name, e.port != nil)
		}
	}
	if numEvents > 1<<(32-keyBits) { // a key has 32
		t.Errorf("%d kinds of events in %d bits", numEvents, 32-keyBits)
	}
}
