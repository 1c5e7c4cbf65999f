package apart

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric/linux/zonefilter"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/zone"
)

// changes is how many changes are measured.
const changes = 500

// updates measures the opening and closing of one pair.
func updates(f *zonefilter.Filter, number map[netip.Addr]uint32) (Spread, error) {
	a, b := ends(0)
	k := hardzone.KeyOf(number[a], number[b])
	var took []float64
	for i := range changes {
		s := hardzone.Step{Op: hardzone.DeletePair, Pair: hardzone.Pair{Key: k}}
		if i%2 == 1 {
			s.Op = hardzone.PutPair
		}
		began := time.Now()
		if err := f.Apply([]hardzone.Step{s}); err != nil {
			return Spread{}, err
		}
		took = append(took, float64(time.Since(began).Nanoseconds())/1e3)
	}
	return spread(took), nil
}

// zoneChanges measures a host that joins a zone of 32 others here and leaves it: from the
// change of the zone to all rows in the kernel.
func zoneChanges(f *zonefilter.Filter) (Spread, error) {
	const others = 32
	self := netip.MustParseAddr("10.255.255.1")
	d := zone.NewDirectory(self)
	z := zone.Zone{Name: "z"}
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 200, 0, byte(i + 1)}) }
	for i := range others + 1 {
		d.PutHost(zone.Host{HostKey: zone.HostKey{Addr: addr(i), Device: self, Port: portName}})
		if i < others {
			z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: addr(i)})
		}
	}
	d.PutZone(z)
	cfg := hardzone.Default()
	cfg.CloseAfter = 0
	p := hardzone.New(d, cfg)
	p.Adopt(nil, []hardzone.PairKey{{Low: 1 << 30, High: 1<<30 + 1}}, time.Time{}) // numbers beyond those of the policy
	p.NoteAll()
	work := func() error {
		for now := time.Now(); p.Waiting() > 0 || p.Closing() > 0; {
			if err := f.Apply(p.Work(32, now)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := work(); err != nil {
		return Spread{}, err
	}
	larger := zone.Zone{Name: z.Name, Members: append(z.Members[:others:others], zone.Member{Kind: zone.MemberAddr, First: addr(others)})}
	var took []float64
	for i := range changes {
		next := larger
		if i%2 == 1 {
			next = z
		}
		began := time.Now()
		for _, c := range d.PutZone(next) {
			p.Note(c.Addr)
		}
		if err := work(); err != nil {
			return Spread{}, err
		}
		took = append(took, float64(time.Since(began).Nanoseconds())/1e3)
		seen, err := f.Look(addr(0), addr(others))
		if err != nil || seen.Open != (i%2 == 0) {
			return Spread{}, fmt.Errorf("change %d of the zone is not in force: %+v %w", i, seen, err)
		}
	}
	return spread(took), nil
}
