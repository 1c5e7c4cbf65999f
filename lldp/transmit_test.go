package lldp

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/fabric"
)

// sendTimes runs a transmitter by its own Next and gives when a port sent, in
// seconds after t0.
func sendTimes(x *Transmitter, port string, until time.Time) []float64 {
	var times []float64
	for now := x.Next(); !now.IsZero() && !now.After(until); now = x.Next() {
		for _, o := range x.Due(now) {
			if o.Port == port {
				times = append(times, now.Sub(t0).Seconds())
			}
		}
	}
	return times
}

func TestTransmitsFastThenEveryInterval(t *testing.T) {
	x := NewTransmitter(TxConfig{})
	x.PortUp("swp1", "", hostMAC, t0)
	x.PortUp("swp1", "", hostMAC, t0) // told twice
	want := []float64{0, 1, 2, 3, 33, 63}
	if d := cmp.Diff(want, sendTimes(x, "swp1", at(70))); d != "" {
		t.Error(d)
	}
	x.NewNeighbour("swp1", at(70))
	x.NewNeighbour("swp1", at(70))
	x.NewNeighbour("swp2", at(70))
	if d := cmp.Diff([]float64{70, 71, 72, 73, 103}, sendTimes(x, "swp1", at(110))); d != "" {
		t.Error(d)
	}
	if c := x.Counters(); c.FramesOut != 11 || c.FastStarts != 2 {
		t.Errorf("%+v", c)
	}
}

// Changes that follow each other must not make more than txCreditMax frames at once,
// and one a second after that.
func TestTransmitCreditLimitsBursts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := NewTransmitter(TxConfig{})
		x.PortUp("swp1", "", hostMAC, t0)
		now := t0
		var sent []time.Time
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 700).Draw(t, "ms")) * time.Millisecond)
			x.SetLocal(Local{}, now)
			for range x.Due(now) {
				sent = append(sent, now)
			}
			if next := x.Next(); next.IsZero() || next.After(now.Add(31*time.Second)) {
				t.Fatalf("next %v", next)
			}
		}
		for i := creditMax; i < len(sent); i++ {
			// creditMax+n frames need n whole seconds; a second may just have begun
			if sent[i].Sub(sent[i-creditMax]) < 0 || (i >= creditMax+1 && sent[i].Sub(sent[i-creditMax-1]) < time.Second) {
				t.Fatalf("frame %d came %v after frame %d", i, sent[i].Sub(sent[i-creditMax-1]), i-creditMax-1)
			}
		}
	})
}

func TestTransmitEndsWithShutdown(t *testing.T) {
	x := NewTransmitter(TxConfig{Interval: 5 * time.Second, Hold: 3})
	mac2 := fabric.MAC{2, 0, 0, 0, 0, 2}
	for _, name := range []string{"swp3", "swp1", "swp2"} {
		x.PortUp(name, "", hostMAC, t0)
	}
	x.PortUp("swp2", "spine", mac2, t0)
	var got []string
	for _, o := range x.Due(t0) {
		p, err := Parse(o.Frame[14:])
		if err != nil || p.TTL != 15 {
			t.Errorf("%+v, %v", p, err)
		}
		got = append(got, o.Port+"="+*p.PortDesc)
	}
	if d := cmp.Diff([]string{"swp1=swp1", "swp2=spine", "swp3=swp3"}, got); d != "" {
		t.Error(d)
	}
	x.PortDown("swp3")
	if out := x.Disable("swp3"); out != nil {
		t.Error("a shutdown LLDPDU was sent into a dead link")
	}
	tab := NewTable(Limits{})
	for _, o := range x.Due(at(1)) {
		hear(t, tab, received(o.Port, o.Frame), at(1), Learned)
	}
	for _, o := range x.Stop() {
		hear(t, tab, received(o.Port, o.Frame), at(2), Removed)
	}
	if tab.Len() != 0 || !x.Next().IsZero() || x.Counters().Shutdowns != 2 {
		t.Errorf("%d neighbours left, %+v", tab.Len(), x.Counters())
	}
}

func TestTransmitCutsAndCounts(t *testing.T) {
	long := strings.Repeat("x", 300)
	x := NewTransmitter(TxConfig{Local: Local{SysName: long, SysDesc: long}, Interval: 24 * time.Hour})
	if x.TTL() != 65535 {
		t.Errorf("TTL %d", x.TTL())
	}
	if ttl := NewTransmitter(TxConfig{Interval: time.Millisecond}).TTL(); ttl != 1 {
		t.Errorf("TTL %d", ttl)
	}
	x.PortUp("swp1", long, hostMAC, t0)
	p, err := Parse(x.Due(t0)[0].Frame[14:])
	if err != nil || len(*p.SysName) != 255 || len(*p.PortDesc) != 255 || p.Chassis != MACID(ChassisMAC, hostMAC) {
		t.Errorf("%+v, %v", p, err)
	}
	x.SetLocal(Local{Mgmt: make([]netip.Addr, 1)}, at(2))
	if out := x.Due(at(2)); len(out) != 0 || x.Counters().LengthErrors != 1 {
		t.Errorf("%d frames, %+v", len(out), x.Counters())
	}
}

// A neighbour that comes amid a fast start, after its last frame, hears us at once.
func TestANeighbourAmidAFastStartHearsUsAtOnce(t *testing.T) {
	x := NewTransmitter(TxConfig{})
	begin := time.Unix(1000, 0)
	x.PortUp("swp1", "swp1", fabric.MAC{2}, begin)
	if n := len(x.Due(begin)); n != 1 {
		t.Fatalf("%d frames at the start", n)
	}
	soon := begin.Add(300 * time.Millisecond)
	if n := len(x.Due(soon)); n != 0 {
		t.Fatalf("%d frames without a reason", n)
	}
	x.NewNeighbour("swp1", soon)
	if n := len(x.Due(soon)); n != 1 {
		t.Errorf("%d frames for the new neighbour", n)
	}
}
