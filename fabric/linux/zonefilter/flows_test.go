package zonefilter

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/openinof/inof/hardzone"
)

// Frames of the same pairs again and again, between changes of rows: the program remembers what
// the tables said, and must not remember it longer than they say it.
func TestWhatIsRememberedEndsWithTheRowsThatSaidIt(t *testing.T) {
	ports := []string{"p1", "p2"}
	for _, way := range []hardzone.Attach{hardzone.AttachNative, hardzone.AttachTC} {
		t.Run(string(way), func(t *testing.T) {
			cfg := hardzone.Default()
			cfg.Unlearned = hardzone.UnlearnedDrop
			f := open(t, cfg)
			must(t, f.Configure(cfg, nil))
			run := map[string]func([]byte) bool{"p1": runner(t, f, "p1", way), "p2": runner(t, f, "p2", way)}
			addr := func(n uint32) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(n % 3), byte(n)}) }
			at, may, last := make(map[uint32]string), make(map[hardzone.PairKey]bool), uint32(24)
			put := func(n uint32, port string) {
				at[n] = port
				must(t, f.Apply([]hardzone.Step{{Op: hardzone.PutHost, Host: hardzone.Host{Addr: addr(n), Number: n, Ports: []string{port}}}}))
			}
			suspended := false
			again := func() {
				for k := range may {
					must(t, f.Apply([]hardzone.Step{{Op: hardzone.DeletePair, Pair: hardzone.Pair{Key: k}}}))
				}
				clear(may)
				for n := range last {
					put(n+1, ports[n%2])
				}
				suspended = false
				must(t, f.Suspend(suspended))
			}
			rapid.Check(t, func(t *rapid.T) {
				again()
				host := rapid.Uint32Range(1, last)
				for range 20 {
					a, b := host.Draw(t, "a"), host.Draw(t, "b")
					k := hardzone.KeyOf(a, b)
					switch rapid.IntRange(0, 9).Draw(t, "change") {
					case 0, 1, 2:
						may[k] = a != b
						if a != b {
							must(t, f.Apply([]hardzone.Step{{Op: hardzone.PutPair, Pair: hardzone.Pair{Key: k}}}))
						}
					case 3:
						may[k] = false
						must(t, f.Apply([]hardzone.Step{{Op: hardzone.DeletePair, Pair: hardzone.Pair{Key: k}}}))
					case 4:
						delete(at, a)
						must(t, f.Apply([]hardzone.Step{{Op: hardzone.DeleteHost, Host: hardzone.Host{Addr: addr(a), Number: a}}}))
					case 5, 6:
						put(a, rapid.SampledFrom(ports).Draw(t, "port"))
					case 7:
						suspended = !suspended
						must(t, f.Suspend(suspended))
					}
					for range 4 {
						p := packet{port: rapid.SampledFrom(ports).Draw(t, "in"), src: addr(a), dst: addr(b), protocol: 6, sport: 50000, dport: 4420}
						want := suspended || at[a] == p.port && at[b] != "" && (a == b || may[k])
						for range 2 { // the second one from memory
							if passes := run[p.port](p.bytes(t)); passes != want {
								t.Fatalf("%+v passes: %t; %d is at %q, %d at %q, they may talk: %t", p, passes, a, at[a], b, at[b], may[k])
							}
						}
					}
				}
			})
		})
	}
}

// A row that is not ours may have let frames pass; with it goes what is remembered of it.
func TestWhatAnAuditRemovesIsNotRemembered(t *testing.T) {
	f := open(t, hardzone.Default())
	fill(t, f, hardzone.Default())
	run := runner(t, f, "p1", hardzone.AttachNative)
	denied := packet{port: "p1", src: hA, dst: hC, protocol: 6, sport: 50000, dport: 4420}.bytes(t)
	k, word, bit := tileOf(pairKey(hardzone.KeyOf(1, 3)))
	v := f.rows.tiles.want[k]
	v.Bits[word] |= bit
	must(t, f.tables[tableTiles].Put(k, &v))
	if !run(denied) {
		t.Fatal("a foreign row opens nothing: this test shows nothing")
	}
	if out, err := f.Audit(); err != nil || out.Wrong != 1 {
		t.Fatal(out, err)
	}
	if run(denied) {
		t.Error("the row is gone, and its frames pass")
	}
}

// The counters of a pair's zone, and of its port, count what passes from memory too.
func TestWhatPassesFromMemoryIsCounted(t *testing.T) {
	f := open(t, hardzone.Default())
	fill(t, f, hardzone.Default())
	run := runner(t, f, "p1", hardzone.AttachNative)
	for range 100 {
		run(packet{port: "p1", src: hA, dst: hB, protocol: 6, sport: 50000, dport: 4420}.bytes(t))
	}
	var zone, passed uint64
	var zones []zoneCountsValue
	must(t, f.tables[tableZoneCounts].Lookup(uint32(1), &zones))
	for _, v := range zones {
		zone += v.Passed
	}
	n, err := f.number("p1")
	must(t, err)
	var counts []countsValue
	must(t, f.tables[tablePortCounts].Lookup(uint32(n), &counts))
	for _, v := range counts {
		passed += v[0]
	}
	if zone != 100 || passed != 100 {
		t.Errorf("of 100 frames the zone counts %d, the port %d", zone, passed)
	}
}
