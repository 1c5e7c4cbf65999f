package device

import (
	"testing"
	"time"

	"github.com/openinof/inof/internal/keep"
)

// keptIn gives what a simulated machine would give to the next process.
func keptIn(t *testing.T, m *keep.Memory) State {
	t.Helper()
	return stateOf(t, m.Look())
}

func stateOf(t *testing.T, f keep.Found) State {
	t.Helper()
	st, bad := StateOf(f)
	for _, p := range bad {
		t.Error(&p)
	}
	for _, p := range f.Problems {
		t.Error(&p)
	}
	if f.None {
		st.Incomplete = false
	}
	return st
}

// FuzzRows feeds rows that are sound and mean nothing: table, lengths of key and value, both.
func FuzzRows(f *testing.F) {
	tables := []keep.Table{tableDevice, tablePort, tableNeighbour, tableHost, tableSubject, tableTold, tablePath, tableReflector, tableKnown, tableNotice, tableEarly, "event", "other"}
	f.Add([]byte("\x00\x09\x08held-back\x7f\xff\xff\xff\xff\xff\xff\xff\x01\x04\x0feth1{\"losses\": 7}\x06\x04\x08\x0a\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		found := keep.Found{Whole: true}
		for len(b) >= 3 && len(b) >= 3+int(b[1])+int(b[2]) {
			k, v := 3+int(b[1]), 3+int(b[1])+int(b[2])
			found.Rows = append(found.Rows, keep.Row{Table: tables[int(b[0])%len(tables)], Key: b[3:k], Value: b[k:v]})
			b = b[v:]
		}
		st, bad := StateOf(found)
		if st.Incomplete != (len(bad) > 0) {
			t.Errorf("incomplete %v, %v", st.Incomplete, bad)
		}
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		c, err := New(Config{Self: bareSelf, Access: true, Epoch: 2, Keep: &keep.Memory{}}, nowhere{}, now)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Restore(st, now) // whatever it says: no panic, no endless timer
		c.Start(now)
		c.Tick(now)
	})
}

func TestADeviceThatForgotItsHostsGoesOnHoldingBackAfterAnotherRestart(t *testing.T) {
	b := newBareCore(t, false)
	b.start(false, State{Incomplete: true})
	until := b.client.HeldBack()
	if until != b.now.Add(HoldBack) {
		t.Fatalf("holds back until %v", until)
	}
	b.restart(false)
	if got := b.client.HeldBack(); !got.Equal(until) {
		t.Errorf("after a restart until %v, want %v", got, until)
	}
	b.now = until
	b.Tick(b.now)
	b.restart(false)
	if got := b.client.HeldBack(); !got.IsZero() {
		t.Errorf("in the end until %v", got)
	}
}

// Clocks that are set while a device is away do not end what it holds back: that some of its hosts
// may be missing.
func TestAClockThatIsSetDoesNotEndWhatIsHeldBack(t *testing.T) {
	for _, step := range []time.Duration{40 * 365 * 24 * time.Hour, -40 * 365 * 24 * time.Hour} {
		b := newBareCore(t, false)
		b.start(false, State{Incomplete: true})
		b.now = b.now.Add(step)
		b.restart(false)
		if got, want := b.client.HeldBack(), b.now.Add(HoldBack); !got.Equal(want) {
			t.Errorf("the clock is set by %v: holds back until %v, want %v", step, got, want)
		}
	}
}
