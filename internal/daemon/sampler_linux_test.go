package daemon

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux"
	"github.com/openinof/inof/internal/netnstest"
)

// manyPorts makes a namespace with pairs of ports p0, p1, ... in it.
func manyPorts(b *testing.B, n int) (path string) {
	s := netnstest.New(b)
	for i := range n {
		s.Veth(fmt.Sprintf("p%d", i), s, fmt.Sprintf("q%d", i))
	}
	return s.Path()
}

// BenchmarkSampler128 is what reading 128 ports costs while every cause is enabled:
// driver counters each 100 ms, link statistics each second, modules each ten. One
// operation is a second; the metric is CPU time of the process and of the kernel for
// it, as a part of a core. The readings are judged, too.
func BenchmarkSampler128(b *testing.B) {
	const ports = 128
	dp, err := linux.New(linux.Config{Access: []string{"p*"}, NetNS: manyPorts(b, ports), CarrierPoll: time.Hour,
		Counters: []fabric.CounterName{{Driver: "veth", Field: fabric.FieldTxFrames, Name: "rx_queue_#_xdp_packets"}}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- dp.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()
	on := errdown.Reaction{Response: errdown.RespondNotify}
	m := errdown.NewMonitor(errdown.Config{
		CRC: errdown.CRCConfig{Reaction: on}, PFCStorm: errdown.PFCStormConfig{Reaction: on},
		LowPower:     errdown.LowPowerConfig{Reaction: on},
		StormControl: errdown.StormControlConfig{Multicast: 1_000_000, Reaction: on},
	})
	s := newSampler(dp, time.Now)
	for n := 0; n < ports; {
		ev := <-dp.Events()
		m.Port(ev, time.Now())
		if ev.Kind == fabric.PortAdded {
			n++
		}
		if ev.Port.Up() {
			s.set(ev.Port.Name, m.Needs(ev.Port.Name))
		}
	}
	go s.run(ctx)
	for s.counters().Rounds < 15 { // the first ones look up names, and the carrier is looked at more often after a change
		<-s.out
	}
	used, rounds := cpuUsed(), s.counters()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for b.Loop() {
		for passed := false; !passed; {
			select {
			case list := <-s.out:
				for i := range list {
					m.Sample(list[i].port, list[i].health, time.Now())
				}
			case <-dp.Events():
			case <-second.C:
				passed = true
			}
		}
	}
	used = cpuUsed() - used
	b.ReportMetric(float64(used)/float64(b.N)/float64(time.Second)*100, "percent-of-a-core")
	b.ReportMetric(float64(s.counters().Reads-rounds.Reads)/float64(b.N), "reads/s")
	b.ReportMetric(float64(s.counters().CounterRoundNS)/1000, "us/round")
	b.ReportMetric(float64(s.counters().Rounds-rounds.Rounds)/float64(b.N), "rounds/s")
}

func cpuUsed() time.Duration {
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
