package live

import (
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/model"
)

// What a simulated port tells of itself. Deadlocks are told where the switch has a
// watchdog, light never.
const told = fabric.FieldsOfCounters | fabric.FieldPause | fabric.FieldPauseTime | fabric.FieldTxFrames | fabric.FieldDeadlocks |
	fabric.FieldSpeed | fabric.FieldPortECN | fabric.FieldECN | fabric.FieldBuffer | fabric.FieldBufferPeak | fabric.FieldRestored | fabric.FieldMarking

// PortHealth reads the wanted fields of a simulated port, without the time.
func PortHealth(s *model.Sim, p model.PortID, want fabric.Fields) fabric.Health {
	h := fabric.Health{Valid: want & told}
	if !s.Watchdog(s.PortNode(p)) {
		h.Valid &^= fabric.FieldDeadlocks | fabric.FieldRestored
	}
	c := s.PortCounters(p)
	h.Counters = counters(&c)
	h.RxCRC, h.ECNMarked, h.Speed = c.RxCRC, c.Marks, uint64(s.PortRate(p))
	for q := range model.NumQueues {
		st := s.Queue(p, q)
		h.RxPause[q], h.TxPause[q], h.TxFrames[q] = st.RxXoff, st.TxXoff, st.TxFrames
		h.RxPauseTime[q] = st.Paused.Duration()
		h.Deadlocks[q], h.Restored[q], h.ECNMarks[q] = st.Deadlocks, st.Recoveries, st.Marks
		h.Marking[q] = s.MarkingSet(p, q)
		h.QueueBytes[q], h.QueuePeak[q] = uint64(max(st.Bytes, 0)), uint64(max(st.Peak, 0))
		h.HeadroomBytes[q], h.HeadroomPeak[q] = uint64(max(st.Headroom, 0)), uint64(max(st.PeakHeadroom, 0))
		if st.TurnedOff {
			h.Deadlocked |= 1 << q
		}
	}
	return h
}

func counters(c *model.PortCounters) fabric.Counters {
	return fabric.Counters{RxFrames: c.RxFrames, TxFrames: c.TxFrames, RxBytes: c.RxBytes, TxBytes: c.TxBytes,
		RxErrors: c.RxCRC, RxCRC: c.RxCRC, RxDrops: c.RxDrops, TxDrops: c.TxDrops, TxErrors: c.TxErrors, CarrierChanges: c.CarrierChanges}
}

// Health implements fabric.HealthReader.
func (d *Device) Health(port string, want fabric.Fields) (fabric.Health, error) {
	k, err := d.find(port)
	if err != nil {
		return fabric.Health{}, err
	}
	var h fabric.Health
	err = d.f.Do(func(s *model.Sim) error {
		h = PortHealth(s, s.PortOf(d.node, k), want)
		h.Counters.RxDrops += d.drops[k]
		h.At = time.Now()
		return nil
	})
	return h, err
}
