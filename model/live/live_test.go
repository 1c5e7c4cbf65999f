package live

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/workload"
)

// rig is two switches with a host each, live, under fake time.
func rig(t *testing.T) (*Fabric, *workload.Fabric) {
	t.Helper()
	p := workload.Profiles{Switch: model.ReferenceSwitch(8<<20, nil), NIC: model.ReferenceNIC(nil)}
	l := model.LinkSpec{Rate: 10 * model.Gbps, Delay: model.Microsecond}
	wf, err := workload.TwoSites(1, l, l, p)
	if err != nil {
		t.Fatal(err)
	}
	s, err := wf.Net.Build(model.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := New(s, nil)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go f.Run(ctx)
	for n := range s.Nodes() {
		go f.Device(model.NodeID(n)).Run(ctx)
	}
	return f, wf
}

func event(t *testing.T, d *Device) fabric.Event {
	t.Helper()
	select {
	case e := <-d.Events():
		return e
	case <-time.After(time.Second):
		t.Fatalf("%s: no event", d)
		return fabric.Event{}
	}
}

func TestDataplaneOnTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, wf := rig(t)
		a, b := f.Device(wf.Edge[0]), f.Device(wf.Edge[1])
		for _, d := range []*Device{a, b} {
			for range 2 {
				if e := event(t, d); e.Kind != fabric.PortAdded || !e.Port.Up() || e.Port.Index < 1 {
					t.Fatalf("%s: %+v", d, e)
				}
			}
			<-d.Ready()
		}
		// A frame from a reaches b, whole and with its port.
		frame := fabric.AppendEthernet(nil, fabric.MACNearestBridge, fabric.MAC{2, 0, 0, 0, 0, 9}, fabric.EtherTypeLLDP)
		frame = append(frame, "hello"...)
		sent := time.Now()
		if err := a.Send("p1", frame); err != nil {
			t.Fatal(err)
		}
		got := <-b.Frames()
		if got.Port != "p1" || got.EtherType != fabric.EtherTypeLLDP || got.Dst != fabric.MACNearestBridge || got.Src != (fabric.MAC{2, 0, 0, 0, 0, 9}) || string(got.Payload) != "hello" {
			t.Errorf("%+v", got)
		}
		if d := got.At.Sub(sent); d > 100*time.Microsecond {
			t.Errorf("took %v", d)
		}
		// A cut is told to both, and frames are lost.
		link := wf.Links[2]
		if err := f.SetLink(link, false); err != nil {
			t.Fatal(err)
		}
		for _, d := range []*Device{a, b} {
			if e := event(t, d); e.Kind != fabric.PortChanged || e.Port.Carrier || !e.Port.AdminUp || e.Port.Name != "p1" {
				t.Errorf("%s: %+v", d, e)
			}
		}
		if err := a.Send("p1", frame); err != nil {
			t.Errorf("sending on a dead port: %v", err)
		}
		if err := f.SetLink(link, true); err != nil {
			t.Fatal(err)
		}
		event(t, a)
		event(t, b)
		// An administrator's shutdown shows at the peer as loss of carrier.
		if err := a.SetAdmin("p1", false); err != nil {
			t.Fatal(err)
		}
		if e := event(t, a); e.Port.AdminUp || e.Port.Carrier {
			t.Errorf("%+v", e)
		}
		if e := event(t, b); !e.Port.AdminUp || e.Port.Carrier {
			t.Errorf("%+v", e)
		}
		if err := a.SetAdmin("p1", true); err != nil {
			t.Fatal(err)
		}
		event(t, a)
		event(t, b)
		// Data goes on below and is counted.
		err := f.Do(func(s *model.Sim) error {
			_, err := s.AddFlow(model.FlowSpec{Src: 0, Dst: 1, Bytes: 1_000_000, TOS: workload.DataTOS})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		c, err := b.Counters("p1")
		if err != nil || c.RxFrames != 1001 || c.TxFrames != 1000 || c.CarrierChanges != 4 {
			t.Errorf("%+v, %v", c, err)
		}
		if _, err := a.Counters("eth9"); !errors.Is(err, fabric.ErrNoPort) {
			t.Errorf("got %v", err)
		}
		if err := a.Send("eth9", frame); !errors.Is(err, fabric.ErrNoPort) {
			t.Errorf("got %v", err)
		}
		if err := a.Send("p1", frame[:5]); err == nil {
			t.Error("a torso of a frame was sent")
		}
		if len(b.Frames()) != 0 {
			t.Error("a frame came over the dead link")
		}
	})
}

// A port tells how its queues mark and who chooses that: the configuration, or what tunes it.
func TestAPortTellsWhoChoosesItsThresholds(t *testing.T) {
	for want, tuner := range map[fabric.MarkingMode]model.TunerSettings{
		fabric.MarkingStatic:  nil,
		fabric.MarkingDynamic: &model.DynamicECN{Every: model.Microsecond, Elephant: 1, Base: 2, Least: 1, Most: 3, Percent: 1, PerRate: model.Gbps},
		fabric.MarkingBBR:     &model.AIECN{Mode: "heuristic", Elephant: 1, Every: model.Microsecond, First: 2, Least: 1, Most: 3, Percent: 1, PerRate: model.Gbps},
		fabric.MarkingNN:      &model.AIECN{Mode: "inference", Elephant: 1, Every: model.Microsecond, First: 2, Least: 1, Most: 3, Percent: 1, PerRate: model.Gbps},
	} {
		sw := model.ReferenceSwitch(8<<20, nil)
		sw.ECN = model.ECN{Mode: model.ECNDequeue, KMin: 20_000, KMax: 80_000, PMax: 0.25}
		if tuner != nil {
			sw.Tuners = append(sw.Tuners, tuner)
		}
		l := model.LinkSpec{Rate: 10 * model.Gbps, Delay: model.Microsecond}
		wf, err := workload.TwoSites(1, l, l, workload.Profiles{Switch: sw, NIC: model.ReferenceNIC(nil)})
		if err != nil {
			t.Fatal(err)
		}
		s, err := wf.Net.Build(model.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		h := PortHealth(s, s.PortOf(wf.Edge[0], 0), fabric.AllFields)
		marks := 0
		for _, m := range h.Marking {
			if m.Mode == "" {
				continue
			}
			if marks++; m != (fabric.Marking{Mode: want, Low: 20_000, High: 80_000, Probability: 0.25}) {
				t.Errorf("%s: %+v", want, m)
			}
		}
		if !h.Has(fabric.FieldMarking) || marks == 0 {
			t.Errorf("%s: no queue marks", want)
		}
	}
}
