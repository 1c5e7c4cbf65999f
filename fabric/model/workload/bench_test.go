package workload

import (
	"testing"

	"github.com/openinof/inof/fabric/model"
)

func BenchmarkReference(b *testing.B) {
	for _, r := range References {
		b.Run(r.Name, func(b *testing.B) {
			hops := uint64(0)
			for b.Loop() {
				b.StopTimer()
				s, _, err := r.Build(model.Options{Seed: 1}, model.CX4())
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := s.Run(r.Until); err != nil {
					b.Fatal(err)
				}
				hops += s.Totals().FrameHops
			}
			b.ReportMetric(float64(hops)/b.Elapsed().Seconds()/1e6, "Mhops/s")
		})
	}
}
