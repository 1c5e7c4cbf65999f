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
	p := refProfiles(64, nil)
	p.NIC.MTU, p.NIC.AckEvery = 4096, 16
	return Clos(k, k/2, k/2, k/2, k*k/4, l, l, p)
}

// TestModelSize builds fat trees and says what they take: INOF_FATTREE=30,46 go test -run Size -v.
func TestModelSize(t *testing.T) {
	list := os.Getenv("INOF_FATTREE")
	if list == "" {
		netnstest.LeftTo(t, "INOF_FATTREE=30,46 go test ./model/workload -run Size -v")
	}
	for _, text := range strings.Split(list, ",") {
		k, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		var a, b, c runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&a)
		begun := time.Now()
		f, err := fatTree(k)
		if err != nil {
			t.Fatal(err)
		}
		described := time.Since(begun)
		runtime.GC()
		runtime.ReadMemStats(&b)
		begun = time.Now()
		s, err := f.Net.Build(model.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		built := time.Since(begun)
		runtime.GC()
		runtime.ReadMemStats(&c)
		t.Logf("k = %d: %d switches, %d hosts; described in %.1f s, %d MB; built in %.1f s, %d MB, %d MB taken from the system", k, len(f.Edge)+len(f.Mid)+len(f.Core), s.Endpoints(),
			described.Seconds(), (b.HeapAlloc-a.HeapAlloc)>>20, built.Seconds(), (c.HeapAlloc-b.HeapAlloc)>>20, c.Sys>>20)
		runtime.KeepAlive(f)
		runtime.KeepAlive(s)
	}
}
