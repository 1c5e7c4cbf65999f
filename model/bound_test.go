package model_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/workload"
)

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkBound sets the run of each reference workload beside a bare event queue of the same
// events: what it takes is the least that a simulator with this queue can take.
func BenchmarkBound(b *testing.B) {
	for _, r := range workload.References {
		b.Run(r.Name, func(b *testing.B) {
			const n = 2_000_000
			var whole, bare time.Duration
			events, hops := 0, uint64(0)
			for b.Loop() {
				s, _, err := r.Build(model.Options{Seed: 1}, model.CX4())
				if err != nil {
					b.Fatal(err)
				}
				rec := s.Record(r.Until, n)
				if s, _, err = r.Build(model.Options{Seed: 1}, model.CX4()); err != nil {
					b.Fatal(err)
				}
				at := processorTime()
				if err := s.RunWhile(r.Until, func() bool { return s.Events() < uint64(rec.Events()) }); err != nil {
					b.Fatal(err)
				}
				whole += processorTime() - at
				hops += s.Totals().FrameHops
				events += int(s.Events())
				at = processorTime()
				if !rec.Replay() {
					b.Fatal("the queue gives the events in another order")
				}
				bare += processorTime() - at
			}
			per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(events) }
			b.ReportMetric(per(whole), "ns/event")
			b.ReportMetric(per(bare), "ns/event-bare-queue")
			b.ReportMetric(float64(hops)/bare.Seconds()/1e6, "Mhops/cpu-s-bound")
			b.ReportMetric(float64(hops)/whole.Seconds()/1e6, "Mhops/cpu-s")
		})
	}
}
