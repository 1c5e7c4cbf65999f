package telemetry

import (
	"strconv"
	"time"

	"github.com/openinof/inof/fabric"
)

var markingModes = []string{string(fabric.MarkingStatic), string(fabric.MarkingDynamic), string(fabric.MarkingNN), string(fabric.MarkingBBR)}

// marking is how queues mark for congestion, and who chooses that. What is marked, how long queues
// are and how often they are paused is told of the priority.
var marking = group[fabric.Marking]{
	path: "/inof/ai-ecn/queue[interface id]/state", source: "the model; SONiC: CONFIG_DB, whose thresholds are STATIC", reader: ReadDrivers, keys: keysOf("interface", "id:"+TypeUint8),
	rows: func(s *Snapshot, give func(time.Time, *fabric.Marking, ...string)) {
		for i := range s.Health {
			h := &s.Health[i]
			if !h.Has(fabric.FieldMarking) {
				continue
			}
			for q := range fabric.Priorities {
				if m := &h.Marking[q]; m.Mode != "" {
					give(h.At, m, h.Port, strconv.Itoa(q))
				}
			}
		}
	},
	leaves: []leaf[fabric.Marking]{
		{Leaf{Path: "mode", Type: TypeEnum, Values: markingModes, Class: Event, Doc: "who chooses the thresholds: STATIC the configuration, DYNAMIC the degree of incast, NN a trained network, BBR a search"},
			func(m *fabric.Marking) any { return word(markingModes, string(m.Mode)) }},
		{Leaf{Path: "low-threshold", Type: TypeUint64, Class: Gauge, Unit: "bytes", Doc: "waiting, below which nothing is marked"}, func(m *fabric.Marking) any { return m.Low }},
		{Leaf{Path: "high-threshold", Type: TypeUint64, Class: Gauge, Unit: "bytes", Doc: "waiting, beyond which all is marked"}, func(m *fabric.Marking) any { return m.High }},
		{Leaf{Path: "probability", Type: TypeDecimal, Class: Gauge, Unit: "ratio", Doc: "of being marked at the upper threshold, 0..1"}, func(m *fabric.Marking) any { return m.Probability }},
	},
}
