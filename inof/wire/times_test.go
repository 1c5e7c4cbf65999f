package wire_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// Golden bytes of the times of an Update (docs/protocol.md): the last two trail, and
// are there only when one of them is known.
func TestTimesOnTheWire(t *testing.T) {
	const (
		head  = "01 000005 04 c0000201 02 000010 0000000000000001 0000000000000002"
		three = "0000000000000001 0000000000000002 0000000000000003"
	)
	ns := func(n int64) time.Time { return time.Unix(0, n).UTC() }
	u := &wire.Update{Origin: netip.AddrFrom4([4]byte{192, 0, 2, 1}), Epoch: 1, Seq: 2, FaultAt: ns(1), SentAt: ns(2), ReflectedAt: ns(3)}
	five := *u
	five.DecidedAt, five.ReflectorAt = ns(4), ns(5)
	four := *u
	four.DecidedAt = ns(4)
	local := *u
	local.ReceivedAt = ns(6) // of this end alone
	for _, c := range []struct {
		name string
		u    *wire.Update
		back *wire.Update
		body string
	}{
		{"three", u, u, head + "03 000018" + three},
		{"five", &five, &five, head + "03 000028" + three + "0000000000000004 0000000000000005"},
		{"four", &four, &four, head + "03 000028" + three + "0000000000000004 0000000000000000"},
		{"received here", &local, u, head + "03 000018" + three},
	} {
		want := inoftest.Message(t, wire.TypeUpdate, c.body)
		if diff := cmp.Diff(want, inoftest.FrameOf(t, c.u)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		m, err := wire.Decode(want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wire.Message(c.back), m, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if _, err := wire.Decode(inoftest.Message(t, wire.TypeUpdate, head+"03 00001c"+three+"00000004")); err == nil {
		t.Error("half of a fourth time was taken")
	}
}
