package workload

import (
	"fmt"
	"runtime"
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

// BenchmarkGrowth shows how speed falls as the fabric grows out of the caches: W3, in its pods of
// 64 hosts, from 5 pods on, for 100 us.
func BenchmarkGrowth(b *testing.B) {
	for _, pods := range []int{5, 20, 80} {
		b.Run(fmt.Sprintf("%d", 64*pods), func(b *testing.B) {
			hops, cpu := uint64(0), time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				s, err := grown(pods, 100*model.Microsecond, model.Options{Seed: 1})
				if err != nil {
					b.Fatal(err)
				}
				runtime.GC()
				b.StartTimer()
				begun := cpuTime()
				if err := s.RunOn(1, 200*model.Microsecond); err != nil {
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

// grown is W3 with another number of pods and arrivals until a time.
func grown(pods int, until model.Time, o model.Options) (*model.Sim, error) {
	edge := model.LinkSpec{Rate: 100 * model.Gbps, Delay: refDelay}
	up := model.LinkSpec{Rate: 400 * model.Gbps, Delay: refDelay}
	f, err := Clos(pods, 4, 16, 4, 16, edge, up, refProfiles(32, model.CX4()))
	if err != nil {
		return nil, err
	}
	a := w3Arrivals(64*pods, edge.Rate)
	a.Until = until
	s, _, err := start(f, o, Poisson(a))
	return s, err
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
