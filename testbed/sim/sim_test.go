// With it rand.Seed does what it says, see TestClusterSeeds.
//
//go:debug randseednop=0

package sim

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/netnstest"
)

var (
	seed       = flag.Uint64("sim.seed", 0, "run this seed only")
	seeds      = flag.Int("sim.seeds", 0, "how many seeds to run, from -sim.first on; 0: as many as a few seconds allow")
	first      = flag.Uint64("sim.first", 1, "first seed")
	trace      = flag.Bool("sim.trace", false, "print every event (with -sim.seed)")
	devices    = flag.Int("sim.devices", 0, "access switches; 0: as the seed says")
	reflectors = flag.Int("sim.reflectors", 0, "reflectors; 0: as the seed says")
	hosts      = flag.Int("sim.hosts", 0, "hosts; 0: as the seed says")
	zones      = flag.Int("sim.zones", 0, "zones; 0: as the seed says")
	scale      = flag.Bool("sim.scale", false, "run TestScale")
	rounds     = flag.Int("sim.rounds", 0, "rounds of chaos; 0: as the seed says")
)

func config(seed uint64) Config {
	return Config{Seed: seed, Devices: *devices, Reflectors: *reflectors, Hosts: *hosts, Zones: *zones, Rounds: *rounds}
}

// TestScale runs with -sim.scale; sizes are those of the other flags, by default
// 1,000 devices, 4,000 hosts, 500 zones.
func TestScale(t *testing.T) {
	if !*scale {
		netnstest.LeftTo(t, "make sim")
	}
	cfg := config(1)
	cfg.Devices, cfg.Hosts, cfg.Zones = cmp.Or(cfg.Devices, 1000), cmp.Or(cfg.Hosts, 4000), cmp.Or(cfg.Zones, 500)
	steps, err := Scale(cfg)
	for _, s := range steps {
		t.Log(s)
	}
	if err != nil {
		t.Error(err)
	}
}

const (
	budget     = 10 * time.Second
	pairBudget = 4 * time.Second
)

func TestSeeds(t *testing.T) {
	if *seed != 0 {
		cfg := config(*seed)
		if *trace {
			cfg.Trace = os.Stdout
		}
		res, err := Run(cfg)
		t.Logf("%+v", res)
		if err != nil {
			t.Error(err)
		}
		return
	}
	for s := range namedSeeds {
		if _, err := Run(config(s)); err != nil {
			t.Error(err)
		}
	}
	began := time.Now()
	sum := newTotal()
	n := 0
	for s := *first; *seeds == 0 && time.Since(began) < budget || n < *seeds; s++ {
		res, err := Run(config(s))
		if err != nil {
			t.Error(err)
		}
		n++
		sum.add(res)
	}
	t.Log(sum)
}

// total is what several runs come to.
type total struct {
	Result
	runs  int
	began time.Time
}

func newTotal() *total { return &total{Result{Excused: map[Excuse]uint64{}}, 0, time.Now()} }

func (s *total) add(r Result) {
	s.runs++
	s.Virtual += r.Virtual
	s.Events += r.Events
	s.Faults += r.Faults
	s.Notices += r.Notices
	s.Checks += r.Checks
	for e, k := range r.Excused {
		s.Excused[e] += k
	}
}

func (s *total) String() string {
	return fmt.Sprintf("%d seeds in %v: %v of virtual time, %d events, %d faults, %d notices, %d pairs compared, excused %v",
		s.runs, time.Since(s.began).Round(time.Millisecond), s.Virtual.Round(time.Second), s.Events, s.Faults, s.Notices, s.Checks, s.Excused)
}

// namedSeeds are runs with one reflector that found something wrong: what it was.
var namedSeeds = map[uint64]string{
	123:  "a host that was told everything after a restart was told it again, since another port of its was down",
	1172: "a host was told everything after a restart since another port moved, on which it had been once",
	1596: "the same",
	1740: "the same",
	2385: "the same",
	1204: "a host that had left its switch had its address again there",
	1225: "a host was forgotten with its address, and told of a new service before the old one was taken back",
	1941: "the same, and a subject that went meanwhile stayed active at the host",
	2781: "the same",
	2674: "a host came back to another switch than the one that had lost its disk, and whose word still stood",
	595:  "a switch restarted while it waited for the sync of a reflector that had lost its state, and then believed half of it",
	1771: "a reflector named nobody the holder, and a switch took another than its zones were for, into the default zone",
	2153: "a machine was moved twice, and what it asked for on its third port was lost: the first one seemed up",
	2790: "a reflector awaited a device that had left with nothing, after each of two restarts, and its word was late",
	2117: "a port that lost its carrier while another claim had its host's address counted as one that is up, and the host was not told again",
	2997: "a host had asked before it registered when its switch went down: that its link failed meanwhile was forgotten, and it was not told again",
	4229: "the judge took a switch for knowing what it had told, which had not come to its disk when its power was cut",
	1620: "a rival left an address before it was placed, and the first was kept out of the default zone",
}

// pairSeeds are runs of two reflectors that found something wrong: what it was.
var pairSeeds = map[uint64]string{
	202:  "what a host was told was forgotten when another claim had its address for a while",
	605:  "the same",
	355:  "a host that one reflector had moved into a zone was taken for one of the default zone, since the other one still said it",
	614:  "the same",
	1034: "the same",
	1320: "the same",
	1681: "the same",
	779:  "a switch that had restarted ended its first sync while a reflector repeated itself, and took hosts for gone from the default zone",
	1533: "a host came into the default zone by one reflector, while the other one, whose sync was under way, had only said it before its restart",
	3829: "an answer from before auto-join was switched off let a host into the default zone when it was on again",
	3837: "a host whose zone a reflector without auto-join took from the switch came into the other one's default zone unasked",
	840:  "an early query's host was told everything again, since a reflector that came back still had its address on the switch it had left",
	5964: "an address asked before it registered, another machine registered it there while the first had it elsewhere, and it was given up as never registered",
	5972: "of a machine whose agent was started with another role a new address was told of hosts of its own role",
}

// TestPairSeeds has two reflectors: the named seeds, and as many as a few seconds allow.
func TestPairSeeds(t *testing.T) {
	run := func(seed uint64) {
		if _, err := Run(Config{Seed: seed, Reflectors: 2}); err != nil {
			t.Error(err)
		}
	}
	for s := range pairSeeds {
		run(s)
	}
	began := time.Now()
	for s := uint64(1); time.Since(began) < pairBudget; s++ {
		run(s)
	}
}

// clusterSeeds is how many runs with a cluster are a part of every test.
const clusterSeeds = 5

// TestClusterSeeds has reflectors that are the members of a cluster.
func TestClusterSeeds(t *testing.T) {
	run := func(s uint64) (res Result) {
		cfg := config(s)
		cfg.Cluster = true
		var told bytes.Buffer // the next run of this seed may be another one
		cfg.Trace = &told
		var err error
		cfg.Wait = synctest.Wait
		cryptotest.SetGlobalRandom(t, s) // members' names, and nonces
		//lint:ignore SA1019 it is where Raft takes its time-outs from
		rand.Seed(int64(s))
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		synctest.Test(t, func(*testing.T) { res, err = Run(cfg) })
		if *trace {
			fmt.Print(told.String())
		}
		if err != nil {
			name := filepath.Join(os.TempDir(), fmt.Sprintf("sim-cluster-%d.trace", s))
			t.Errorf("%v\nits trace: %s (%v)", err, name, os.WriteFile(name, told.Bytes(), 0o600))
		}
		return res
	}
	if *seed != 0 {
		t.Logf("%+v", run(*seed))
		return
	}
	sum := newTotal()
	for s := range uint64(cmp.Or(*seeds, clusterSeeds)) {
		sum.add(run(*first + s))
	}
	t.Log(sum)
}

// laterSeeds are as many runs as take two or three seconds.
const laterSeeds = 24

// Upgrades roll without a notice, and so does the way back: devices of version 2 and of a later one
// that adds what the protocol lets it add are one fabric, whichever each of them is after a restart.
func TestHalfOfAFabricMaySpeakALaterVersion(t *testing.T) {
	sum := newTotal()
	for s := range uint64(cmp.Or(*seeds, laterSeeds)) {
		res, err := Run(Config{Seed: *first + s, Reflectors: int(1 + s%2), Later: true})
		if err != nil {
			t.Error(err)
		}
		sum.add(res)
	}
	t.Log(sum)
}

// hostileBudget is how long runs with a bad client and a bad host go on.
const hostileBudget = 6 * time.Second

// One bad client and one bad host, whose devices are bound to addresses, are noticed by nobody
// but operators.
func TestHostileSeeds(t *testing.T) {
	if *seed != 0 {
		cfg := config(*seed)
		cfg.Hostile = true
		if *trace {
			cfg.Trace = os.Stdout
		}
		if _, err := Run(cfg); err != nil {
			t.Error(err)
		}
		return
	}
	began, n := time.Now(), 0
	for s := *first; *seeds == 0 && time.Since(began) < hostileBudget || n < *seeds; s++ {
		n++
		if _, err := Run(Config{Seed: s, Reflectors: int(1 + s%2), Hostile: true}); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d seeds", n)
}

// Equal seeds give equal runs, or a failure could not be replayed.
func TestSeedsAreReproducible(t *testing.T) {
	for s := uint64(1); s <= 8; s++ {
		cfg := Config{Seed: s, Reflectors: int(1 + s%2)}
		cfg.Hash = true
		one, err := Run(cfg)
		if err != nil {
			t.Error(err)
		}
		two, _ := Run(cfg)
		if one.Hash != two.Hash || one.Events != two.Events {
			t.Errorf("seed %d: %d events with trace %x, then %d with %x", s, one.Events, one.Hash, two.Events, two.Hash)
		}
	}
}
