package workload

import (
	"fmt"
	"testing"
	"time"

	"github.com/openinof/inof/model"
)

func BenchmarkReference(b *testing.B) {
	for _, r := range References {
		b.Run(r.Name, func(b *testing.B) {
			hops, cpu := uint64(0), time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				s, _, err := r.Build(model.Options{Seed: 1}, model.CX4())
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				begun := cpuTime()
				if err := s.Run(r.Until); err != nil {
					b.Fatal(err)
				}
				cpu += cpuTime() - begun
				hops += s.Totals().FrameHops
			}
			// Of processor time: other programs may share the machine.
			b.ReportMetric(float64(hops)/cpu.Seconds()/1e6, "Mhops/cpu-s")
		})
	}
}

// BenchmarkGrowth shows how speed falls as the fabric grows out of the caches: leaves of 16
// hosts, four spines, web search flows at half load.
func BenchmarkGrowth(b *testing.B) {
	for _, n := range []int{16, 64, 256, 1024} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			hops, cpu := uint64(0), time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				edge := model.LinkSpec{Rate: 100 * model.Gbps, Delay: refDelay}
				up := model.LinkSpec{Rate: 400 * model.Gbps, Delay: refDelay}
				f, err := LeafSpine(n/16, 16, 4, edge, up, refProfiles(32, model.CX4()))
				if err != nil {
					b.Fatal(err)
				}
				a := w3Arrivals(n, edge.Rate)
				a.Until, a.Seed = 200*model.Microsecond, 1
				s, _, err := start(f, model.Options{Seed: 1}, Poisson(a))
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				begun := cpuTime()
				if err := s.Run(400 * model.Microsecond); err != nil {
					b.Fatal(err)
				}
				cpu += cpuTime() - begun
				hops += s.Totals().FrameHops
			}
			// Of processor time: other programs may share the machine.
			b.ReportMetric(float64(hops)/cpu.Seconds()/1e6, "Mhops/cpu-s")
		})
	}
}

// BenchmarkCores runs W3 on one core and on two; the results are the same bit for bit.
func BenchmarkCores(b *testing.B) {
	for _, cores := range []int{1, 2} {
		b.Run(fmt.Sprintf("%d", cores), func(b *testing.B) {
			hops := uint64(0)
			for b.Loop() {
				b.StopTimer()
				s, _, err := References[2].Build(model.Options{Seed: 1}, model.CX4())
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := s.RunOn(cores, References[2].Until); err != nil {
					b.Fatal(err)
				}
				hops += s.Totals().FrameHops
			}
			b.ReportMetric(float64(hops)/b.Elapsed().Seconds()/1e6, "Mhops/s")
		})
	}
}
