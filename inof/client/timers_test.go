package client

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// Of different BFD timers of two reflectors the larger values count, of each by itself;
// the last word of a silent one counts too.
func TestTheLargerBFDTimersCount(t *testing.T) {
	c := New(inoftest.DevID(0), 7)
	c.SetReflectors(2, AgreeIdentical, time.Second)
	a, b := netip.MustParseAddr("192.0.2.250"), netip.MustParseAddr("192.0.2.251")
	say := func(r netip.Addr, interval time.Duration, mult uint8) *wire.Settings {
		t.Helper()
		out, err := c.Receive(r, &wire.Update{Origin: r, Epoch: 1, Seq: 1, Settings: &wire.Settings{BFD: wire.BFDSettings{Enabled: true, Interval: interval, DetectMult: mult}}}, inoftest.T0)
		if err != nil {
			t.Fatal(err)
		}
		return out.Settings
	}
	want := func(s *wire.Settings, interval time.Duration, mult uint8) {
		t.Helper()
		if s == nil || !s.BFD.Enabled || s.BFD.Interval != interval || s.BFD.DetectMult != mult {
			t.Errorf("%+v, want %v x %d", s, interval, mult)
		}
	}
	c.Up(a, inoftest.T0)
	c.Up(b, inoftest.T0)
	want(say(a, 100*time.Millisecond, 5), 100*time.Millisecond, 5)
	want(say(b, 300*time.Millisecond, 3), 300*time.Millisecond, 5)
	if s := say(a, 200*time.Millisecond, 5); s != nil {
		t.Errorf("what changes nothing is told: %+v", s)
	}
	c.Down(b, inoftest.T0)
	want(say(a, 400*time.Millisecond, 4), 400*time.Millisecond, 4)
	c.Up(b, inoftest.T0)
	want(say(b, 50*time.Millisecond, 9), 400*time.Millisecond, 9)
}
