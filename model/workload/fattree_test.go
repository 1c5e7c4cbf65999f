package workload

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/model"
)

// fatTree is k pods of k/2 access and k/2 aggregation switches with k/2 hosts each.
func fatTree(k int) (*Fabric, error) {
	l := model.LinkSpec{Rate: 100 * model.Gbps, Delay: model.Microsecond}
	p := refProfiles(64, model.CX4())
	p.NIC.MTU, p.NIC.AckEvery = 4096, 16
	return Clos(k, k/2, k/2, k/2, k*k/4, l, l, p)
}

// blocks is half load of storage: each host sends I/Os of 256 KiB to others until a time.
func blocks(hosts int, until model.Time) Arrivals {
	a := w3Arrivals(hosts, 100*model.Gbps)
	a.Sizes, a.Until = OneSize(256<<10), until
	return a
}

// TestModelSize builds fat trees, lets storage traffic run on them for a while, and says what both
// take: INOF_FATTREE=30,90 INOF_FATTREE_RUN=40us go test ./model/workload -run Size -v.
func TestModelSize(t *testing.T) {
	list := os.Getenv("INOF_FATTREE")
	if list == "" {
		netnstest.LeftTo(t, "INOF_FATTREE=30,90 INOF_FATTREE_RUN=40us go test ./model/workload -run Size -v")
	}
	span := model.Time(0)
	if text := os.Getenv("INOF_FATTREE_RUN"); text != "" {
		var err error
		if span, err = model.ParseTime(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range strings.Split(list, ",") {
		k, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		resetPeak()
		begun, cpu := time.Now(), cpuTime()
		f, err := fatTree(k)
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.Net.Build(model.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("k = %d: %d switches, %d hosts; built in %.1f s, %.1f s of processor time, %d MB at most", k, len(f.Edge)+len(f.Mid)+len(f.Core), s.Endpoints(),
			time.Since(begun).Seconds(), (cpuTime() - cpu).Seconds(), peakMemory()>>20)
		if span > 0 {
			storageOn(t, s, span)
		}
		runtime.KeepAlive(f)
	}
}

// storageOn runs storage traffic at half load on two cores and says what it takes.
func storageOn(t *testing.T, s *model.Sim, span model.Time) {
	begun, cpu := time.Now(), cpuTime()
	flows := Poisson(blocks(s.Endpoints(), span))
	s.ExpectFlows(len(flows))
	for _, fl := range flows {
		if _, err := s.AddFlow(fl); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d flows listed in %.1f s, %.1f s of processor time", s.Flows(), time.Since(begun).Seconds(), (cpuTime() - cpu).Seconds())
	begun, cpu = time.Now(), cpuTime()
	steps := int(max(1, span/(16*model.Microsecond))) // shorter ones are not worth cutting the fabric for
	for i := range steps {
		if err := s.RunOn(2, span*model.Time(i+1)/model.Time(steps)); err != nil {
			t.Fatal(err)
		}
		hops, spent := s.Totals().FrameHops, (cpuTime() - cpu).Seconds()
		t.Logf("%v: %.1f M frame-hops in %.1f s, %.1f s of processor time, %.2f M a second of it; %d MB at most", s.Now(), float64(hops)/1e6,
			time.Since(begun).Seconds(), spent, float64(hops)/spent/1e6, peakMemory()>>20)
	}
}
