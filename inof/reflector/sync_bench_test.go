package reflector

import (
	"fmt"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// A full sync of everything, at the limits: what the reflector works out, and the
// encoding of it.
func BenchmarkFullSync(b *testing.B) {
	for _, tt := range []struct{ zones, members, hosts int }{{10_000, 16, 10_000}, {160_000, 2, 80_000}} {
		b.Run(fmt.Sprintf("%dzones%dhosts", tt.zones, tt.hosts), func(b *testing.B) {
			const feeders = 100
			var set zone.Set
			for i := range tt.zones {
				z := zone.Zone{Name: fmt.Sprintf("zone-%06d", i)}
				for m := range tt.members {
					z.Members = append(z.Members, inoftest.AddrMember(inoftest.ScaleHost((i*tt.members+m)%tt.hosts+1)))
				}
				set.Zones = append(set.Zones, z)
			}
			r := scaleReflector(b, feeders, tt.hosts, set)
			dev := inoftest.ScaleDev(feeders + 1)

			b.ReportAllocs()
			messages, bytes := 0, 0
			for b.Loop() {
				messages, bytes = 0, 0
				r.SetInterest(dev, true)
				for _, d := range r.Join(dev, inoftest.T0) {
					e, err := wire.Encode(d.Msg)
					if err != nil {
						b.Fatal(err)
					}
					messages, bytes = messages+1, bytes+e.Len()
				}
				r.Leave(dev, inoftest.T0)
			}
			b.ReportMetric(float64(messages), "messages")
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
}
