package fabric

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func lldpFrame(dst MAC, payload ...byte) []byte {
	return append(AppendEthernet(nil, dst, MAC{2, 0, 0, 0, 0, 1}, EtherTypeLLDP), payload...)
}

func runFake(t *testing.T, f *Fake) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// wantEvents compares kind, name and whether the port is up.
func wantEvents(t *testing.T, f *Fake, want ...Event) {
	t.Helper()
	for i, w := range want {
		ev := <-f.Events()
		if ev.Kind != w.Kind || ev.Port.Name != w.Port.Name || ev.Port.Carrier != w.Port.Carrier || ev.Port.AdminUp != w.Port.AdminUp {
			t.Fatalf("event %d is %v %+v, want %v %+v", i, ev.Kind, ev.Port, w.Kind, w.Port)
		}
	}
	synctest.Wait()
	select {
	case ev := <-f.Events():
		t.Fatalf("one event too many: %v %+v", ev.Kind, ev.Port)
	default:
	}
}

func up(name string) Port   { return Port{Name: name, AdminUp: true, Carrier: true} }
func dark(name string) Port { return Port{Name: name, AdminUp: true} }
func shut(name string) Port { return Port{Name: name} }

func TestFakeCableBetweenTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewFake(FakeConfig{Name: "a"}, up("a0")), NewFake(FakeConfig{Name: "b"}, up("b0"))
		if err := Connect(a, "a0", b, "b0"); err != nil {
			t.Fatal(err)
		}
		defer runFake(t, a)()
		defer runFake(t, b)()
		wantEvents(t, a, Event{Kind: PortAdded, Port: up("a0")})
		wantEvents(t, b, Event{Kind: PortAdded, Port: up("b0")})
		<-a.Ready()

		if err := a.Send("a0", lldpFrame(MACNearestBridge, 1, 2, 3)); err != nil {
			t.Fatal(err)
		}
		got := <-b.Frames()
		want := Frame{Port: "b0", Src: MAC{2, 0, 0, 0, 0, 1}, Dst: MACNearestBridge, EtherType: EtherTypeLLDP,
			Payload: []byte{1, 2, 3}, At: time.Now()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("frame (-want +got):\n%s", diff)
		}

		for _, step := range []struct {
			name string
			do   func() error
			a, b Port
		}{
			{"a shuts", func() error { return a.SetAdmin("a0", false) }, shut("a0"), dark("b0")},
			{"a opens", func() error { return a.SetAdmin("a0", true) }, up("a0"), up("b0")},
			{"cable pulled at b", func() error { return b.SetCarrier("b0", false) }, dark("a0"), dark("b0")},
			{"cable plugged at b", func() error { return b.SetCarrier("b0", true) }, up("a0"), up("b0")},
		} {
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			wantEvents(t, a, Event{Kind: PortChanged, Port: step.a})
			wantEvents(t, b, Event{Kind: PortChanged, Port: step.b})
		}
		b.Unplug("b0")
		wantEvents(t, b, Event{Kind: PortRemoved, Port: up("b0")})
		wantEvents(t, a, Event{Kind: PortChanged, Port: dark("a0")})
		if err := a.Send("a0", lldpFrame(MACNearestBridge)); !errors.Is(err, ErrPortDown) {
			t.Errorf("Send without a far end: %v, want ErrPortDown", err)
		}
	})
}

func TestFakeConnectErrors(t *testing.T) {
	a, b := NewFake(FakeConfig{}, up("a0"), up("a1")), NewFake(FakeConfig{}, up("b0"))
	if err := Connect(a, "a0", b, "nope"); !errors.Is(err, ErrNoPort) {
		t.Errorf("to a port that does not exist: %v", err)
	}
	if err := Connect(a, "a0", b, "b0"); err != nil {
		t.Errorf("after a failed attempt: %v", err)
	}
	if err := Connect(a, "a1", b, "b0"); err == nil {
		t.Error("a second cable in one port gave no error")
	}
}

func TestFakeRunAgainBeginsWithThePorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFake(FakeConfig{}, up("p0"))
		stop := runFake(t, f)
		wantEvents(t, f, Event{Kind: PortAdded, Port: up("p0")})
		stop()
		f.Plug(dark("p1"))
		_ = f.SetCarrier("p0", false)
		_ = f.Inject("p0", lldpFrame(MACNearestBridge, 1))
		defer runFake(t, f)()
		wantEvents(t, f, Event{Kind: PortAdded, Port: dark("p0")}, Event{Kind: PortAdded, Port: dark("p1")})
		select {
		case fr := <-f.Frames():
			t.Errorf("frame from the time between: %+v", fr)
		default:
		}
	})
}

func TestFakeCountsWhatItDoesNotPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFake(FakeConfig{QueueFrames: 2}, up("p0"))
		defer runFake(t, f)()
		wantEvents(t, f, Event{Kind: PortAdded, Port: up("p0")})
		for _, frame := range [][]byte{
			make([]byte, 13),
			lldpFrame(MACNTS, 1),
			lldpFrame(MACNearestBridge, make([]byte, MaxControlPayload+1)...),
			lldpFrame(MACNearestBridge, 1), lldpFrame(MACNearestBridge, 2), lldpFrame(MACNearestBridge, 3),
		} {
			if err := f.Inject("p0", frame); err != nil {
				t.Fatal(err)
			}
		}
		want := FakeStats{Received: 2, Filtered: 1, Overlong: 1, Short: 1, Dropped: 1}
		if diff := cmp.Diff(want, f.Stats()); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		if err := f.Send("p0", lldpFrame(MACNearestBridge, 7)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]byte{lldpFrame(MACNearestBridge, 7)}, f.Sent("p0")); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
	})
}

func TestFakeInjectedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Unix(1000, 0)
		f := NewFake(FakeConfig{Now: func() time.Time { return at }}, up("p0"))
		defer runFake(t, f)()
		if ev := <-f.Events(); !ev.At.Equal(at) {
			t.Errorf("event at %v, want %v", ev.At, at)
		}
	})
}
