package model_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/workload"
)

// Counters agree with each other at any moment: what is guaranteed, in the service pool and
// in the headroom of all classes adds up to the switch's use, within its pools; a port's totals
// are those of its queues; what one end sent, the other received, lost, or has still to
// receive.
func TestCountersAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, f := drawFabric(t)
		for i := 1; i < len(f.Hosts); i++ { // enough to need the headroom
			if _, err := s.AddFlow(model.FlowSpec{Src: model.EndpointID(i), Dst: 0, Bytes: model.Forever, TOS: workload.DataTOS}); err != nil {
				t.Fatal(err)
			}
		}
		for step := range 10 {
			if err := s.Run(model.Time(step+1) * 40 * model.Microsecond); err != nil {
				t.Fatal(err)
			}
			if err := s.CheckConservation(); err != nil {
				t.Fatal(err)
			}
			for _, n := range f.Edge {
				checkSwitchCounters(t, s, n)
			}
			var marks, crc, lost uint64
			for n := range s.Nodes() {
				for k := range s.Ports(model.NodeID(n)) {
					c := checkPortCounters(t, s, s.PortOf(model.NodeID(n), k))
					marks, crc, lost = marks+c.Marks, crc+c.RxCRC, lost+c.TxErrors
				}
			}
			tot := s.Totals()
			if marks != tot.Marks || crc != tot.Dropped["crc"] || lost != crc {
				t.Fatalf("%d marks, %d CRC errors, %d lost on wires; the fabric says %d, %d", marks, crc, lost, tot.Marks, tot.Dropped["crc"])
			}
		}
	})
}

func checkSwitchCounters(t *rapid.T, s *model.Sim, n model.NodeID) {
	c := s.Switch(n)
	var service, headroom int64
	for k := range s.Ports(n) {
		for q := range model.NumQueues {
			st := s.Queue(s.PortOf(n, k), q)
			service, headroom = service+st.Service, headroom+st.Headroom
			if st.Guaranteed < 0 || st.Guaranteed > 4096 || st.Service < 0 || st.Service > 0 && st.Guaranteed == 0 && c.Lossless>>q&1 != 0 ||
				st.PeakIngress < st.Guaranteed+st.Service || st.PeakHeadroom < st.Headroom || st.Peak < st.Bytes {
				t.Fatalf("%s port %d queue %d: %+v", s.NodeName(n), k, q, st)
			}
		}
	}
	if service != c.ServiceUsed || headroom != c.HeadroomUsed || c.ServiceUsed > c.ServicePeak || c.HeadroomUsed > c.HeadroomPeak ||
		c.ServicePeak > c.Service || c.Service+c.Headroom > c.Buffer {
		t.Fatalf("%s: %+v; its classes hold %d of the service pool and %d of headroom", s.NodeName(n), c, service, headroom)
	}
}

func checkPortCounters(t *rapid.T, s *model.Sim, p model.PortID) model.PortCounters {
	c, far := s.PortCounters(p), s.PortCounters(s.Peer(p))
	var sum model.PortCounters
	for q := range model.NumQueues {
		st := s.Queue(p, q)
		sum.TxFrames, sum.TxBytes, sum.TxDrops, sum.Marks = sum.TxFrames+st.TxFrames, sum.TxBytes+st.TxBytes, sum.TxDrops+st.Drops, sum.Marks+st.Marks
	}
	if c.TxFrames < sum.TxFrames || c.TxBytes-sum.TxBytes != 64*(c.TxFrames-sum.TxFrames) || c.TxDrops != sum.TxDrops || c.Marks != sum.Marks {
		t.Fatalf("%s: %+v, its queues %+v", s.PortName(p), c, sum)
	}
	if onWire := c.TxFrames - far.RxFrames - c.TxErrors; onWire > 1<<20 || c.TxBytes < far.RxBytes {
		t.Fatalf("%s sent %+v, its peer received %+v", s.PortName(p), c, far)
	}
	return c
}
