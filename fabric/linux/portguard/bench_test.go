package portguard

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
)

// What the guard costs a frame of storage, without a block and with 1,000.
func BenchmarkFrame(b *testing.B) {
	s := netnstest.New(b)
	s.Veth("p1", netnstest.New(b), "h1")
	g := open(b, s, Config{})
	place(b, s, g, "p1")
	mac := make([]byte, 6)
	f := frame(mac, mac, nil, 0x0800, ip(netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), string(make([]byte, 64))))
	for _, c := range []struct {
		name   string
		blocks int
	}{{"without blocks", 0}, {"1000 blocks", 1000}} {
		host := netip.MustParseAddr("198.51.100.0")
		for range c.blocks {
			host = host.Next()
			_, err := g.Block(key("p1", "192.0.2.1", host.String()), time.Now().Add(time.Hour))
			must(b, err)
		}
		b.Run(c.name, func(b *testing.B) {
			_, took, err := g.in.Benchmark(f, b.N, nil)
			must(b, err)
			b.ReportMetric(float64(took.Nanoseconds()), "ns/frame")
		})
	}
}

// What a confirmation waits for where nothing is queued.
func BenchmarkGracePeriod(b *testing.B) {
	g := &Guard{}
	for b.Loop() {
		must(b, g.graceAfter(time.Now()))
	}
}
