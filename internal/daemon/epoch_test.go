package daemon

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/internal/config"
)

// Whatever the clock does between starts, each epoch is greater than those before.
func TestEpochsOnlyGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := uint64(0)
		for range rapid.IntRange(1, 8).Draw(t, "starts") {
			now := time.Unix(0, rapid.Int64Range(math.MinInt64, math.MaxInt64/2).Draw(t, "clock"))
			epoch := nextEpoch(now, last, randomEpoch())
			if epoch <= last {
				t.Fatalf("clock %v: epoch %d after %d", now, epoch, last)
			}
			if last != 0 && epoch>>16 == last>>16 {
				t.Fatalf("clock %v: the notices of epoch %d begin with the number of those of %d", now, epoch, last)
			}
			last = epoch
		}
	})
}

func TestNextEpoch(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ns := uint64(at.UnixNano())
	for _, c := range []struct {
		name         string
		now          time.Time
		last         uint64
		random       uint16
		least, most  uint64
		epochOfClock bool
	}{
		{"the first start", at, 0, 0, ns &^ 0xffff, ns | 0xffff, true},
		{"a later start", at, ns - 1e9, 0xffff, ns &^ 0xffff, ns | 0xffff, true},
		{"at once", at, ns&^0xffff | 5, 0, ns&^0xffff | 6, ns + 2*epochStep, false},
		{"the clock was set back an hour", at, ns + 3600e9, 7, ns + 3600e9 + 1, ns + 3600e9 + 2*epochStep, false},
		{"no clock", time.Unix(0, 0), 0, 0, 1, 0xffff, true},
		{"a clock before 1970", time.Unix(-5, 0), 0, 0, 1, 0xffff, true},
		{"the last epoch there is", at, maxEpoch, 0, maxEpoch, maxEpoch, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := nextEpoch(c.now, c.last, c.random)
			if got < c.least || got > c.most || got == 0 {
				t.Errorf("%d, want %d..%d", got, c.least, c.most)
			}
			if c.epochOfClock && uint16(got) != c.random|1 {
				t.Errorf("%#x does not end with the random bits %#x", got, c.random)
			}
		})
	}
}

// TestDaemonKeepsItsEpoch starts the whole daemon three times with a clock that goes back,
// the second of them killed.
func TestDaemonKeepsItsEpoch(t *testing.T) {
	dir := t.TempDir()
	last := uint64(0)
	for i := range 3 {
		cfg, err := config.Parse("x", []byte("device: {id: 10.0.0.1, roles: [reflector]}\nsession: {auth: none}\nstate-directory: "+dir+"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(-24 * time.Hour * time.Duration(i))
		d, err := New(cfg, Env{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		if st := keptOf(t, cfg); d.epoch <= last || st.Epoch != d.epoch {
			t.Errorf("epoch %d after %d, kept is %d", d.epoch, last, st.Epoch)
		}
		last = d.epoch
		d.keeper.Abandon()
		d.lock.release()
	}
}
