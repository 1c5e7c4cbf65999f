package sim

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/client"
)

// Config is what a run is made of. Everything follows from it: equal Configs give
// equal runs. Zero sizes are chosen from the seed.
type Config struct {
	Seed       uint64
	Devices    int // access switches
	Reflectors int
	Hosts      int
	Zones      int
	Rounds     int // of chaos and rest
	Trace      io.Writer
	Hash       bool   // make Result.Hash, which slows the run down
	Hostile    bool   // a bad client and a bad host strike too
	Cluster    bool   // the reflectors are members of a cluster: only in a bubble of testing/synctest
	Wait       func() // with Cluster: until the members' goroutines of this moment have done what they can
	Later      bool   // half of the devices speak a later version, without authentication
	NoSave     bool   // only reflectors have a disk
	NoWatch    bool   // notices are counted, not checked one by one
}

// Result is what a run came to.
type Result struct {
	Seed       uint64
	Devices    int
	Reflectors int
	Hosts      int
	Virtual    time.Duration
	Events     uint64
	Faults     uint64 // things that were broken or changed
	Notices    uint64 // new ones that devices put on the wire
	Checks     uint64 // pairs compared with the truth
	Excused    map[Excuse]uint64
	Hash       uint64 // of the trace
}

// Failure is what a run found wrong.
type Failure struct {
	Config Config
	At     time.Duration
	What   []string
}

func (f *Failure) Error() string {
	text := fmt.Sprintf("seed %d fails at %v of virtual time:", f.Config.Seed, f.At)
	for i, w := range f.What {
		if i == maxShown {
			text += fmt.Sprintf("\n  and %d more", len(f.What)-i)
			break
		}
		text += "\n  " + w
	}
	test := "TestSeeds"
	if f.Config.Hostile {
		test = "TestHostileSeeds"
	}
	if f.Config.Cluster {
		test = "TestClusterSeeds"
	}
	return text + "\nreplay: go test ./testbed/sim -run " + test + " -sim.trace -sim.seed " + f.Config.args()
}

func (c *Config) args() string {
	s := fmt.Sprint(c.Seed)
	for _, o := range []struct {
		name string
		n    int
	}{{"devices", c.Devices}, {"reflectors", c.Reflectors}, {"hosts", c.Hosts}, {"zones", c.Zones}, {"rounds", c.Rounds}} {
		if o.n != 0 {
			s += fmt.Sprintf(" -sim.%s %d", o.name, o.n)
		}
	}
	return s
}

const maxShown = 12

// Excuse is why a pair was not compared: a limit of the protocol or of the host
// agent, not of the run.
type Excuse string

const (
	// UnsavedTold: a switch told a host something, lost its disk, and cannot know after
	// its restart that it did.
	UnsavedTold Excuse = "told by a switch that lost its state"
	// HeldBack: a switch lost its state and takes nothing back that it had said before,
	// until it has had the time to hear its hosts.
	HeldBack Excuse = "said by a switch that lost its state"
	// LostQuery: a host forgot what it was told without a link that went down for its switch (its
	// agent started anew, or another port still counts as its own), and its zone query, which it
	// sends once, did not arrive, or was forgotten in a crash.
	LostQuery Excuse = "zone query lost"
	// GivenUp: the switch gave the host up (it aged out, or lost its address to
	// another) while the host lived on with what it had been told.
	GivenUp Excuse = "host given up while it lived"
	// Contested: two hosts claim one address, and one was told in the other's place;
	// or the address passed to a host whose zones the switch does not know yet.
	Contested Excuse = "contested address"
	// MixedDefault: one host came to the default zone while the switch still knew the
	// other as a host of the default zone, which it was until its reflector was lost. With
	// every reflector heard there is no such excuse.
	MixedDefault Excuse = "default zone of before a reflector was lost"
)

// world is one run.
type world struct {
	clock
	dice
	disks dice // for what disks do: it changes nothing about the rest of a run
	cfg   Config
	fails []string

	reflectors []*device
	bad        bad
	strikes    []fault
	named      int       // complaints that name the hostile device
	devices    []*device // access switches; one of them may be a reflector too
	all        []*device // each device once
	hosts      []*host
	links      []*cable

	quorum *quorum // nil: the reflectors are in no cluster
	zones  history
	agree  client.Agreement
	lossy  float64 // share of frames on access links that are lost or doubled
	rough  bool    // faults may strike
	hush   string  // while not empty, no new notice may be told: why
	faults uint64

	notices  uint64
	checks   uint64
	excused  map[Excuse]uint64
	wire     map[pairKey]*spoken // by device, host and subject
	claims   map[netip.Addr][]claim
	asked    map[netip.Addr][]claim // as whom a switch may take who asks for the zones of an address
	conns    uint64
	hash     uint64
	lastAddr int
	changed  time.Duration   // last moment at which the truth became another one
	rests    []time.Duration // when the fabric was at rest, and right
	zoned    time.Duration   // when zones that reflectors have became others
	fates    map[netip.Addr]*fate
	unasked  time.Duration // when every holder of a contested address that has left was asked
}

func newWorld(cfg Config) *world {
	return &world{
		cfg: cfg, strikes: strikes, dice: dice{rand.New(rand.NewPCG(cfg.Seed, 0x1f0f))}, disks: dice{rand.New(rand.NewPCG(cfg.Seed, 0xd15c))},
		excused: map[Excuse]uint64{}, wire: map[pairKey]*spoken{}, claims: map[netip.Addr][]claim{}, asked: map[netip.Addr][]claim{},
		fates: map[netip.Addr]*fate{},
	}
}

// failf notes a violation; the run ends after the event under way.
func (w *world) failf(format string, args ...any) {
	what := fmt.Sprintf("%v: ", w.now) + fmt.Sprintf(format, args...)
	w.tracef("VIOLATION %s", what)
	w.fails = append(w.fails, what)
}

func (w *world) tracing() bool { return w.cfg.Trace != nil || w.cfg.Hash }

func (w *world) tracef(format string, args ...any) {
	if !w.tracing() {
		return
	}
	line := fmt.Sprintf("%14v ", w.now) + fmt.Sprintf(format, args...)
	if w.cfg.Trace != nil {
		fmt.Fprintln(w.cfg.Trace, line)
	}
	h := fnv.New64a()
	fmt.Fprint(h, w.hash, line)
	w.hash = h.Sum64()
}

func (w *world) after(d time.Duration, fn func()) { w.at(w.now+d, fn) }

// run lets virtual time pass; false when something was found wrong.
func (w *world) run(d time.Duration) bool {
	end := w.now + d
	next := w.next
	if w.quorum != nil {
		next = w.quorum.next
	}
	for len(w.fails) == 0 && next(end) {
	}
	return len(w.fails) == 0
}

// dice are one source of chance.
type dice struct{ rng *rand.Rand }

// between gives a random duration.
func (w dice) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)+1))
}

// short gives one that is most often small: a delay of some kind.
func (w dice) short(most time.Duration) time.Duration {
	f := w.rng.Float64()
	return time.Duration(f * f * f * float64(most))
}

func (w dice) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

func pick[T any](w *world, from []T) T { return from[w.rng.IntN(len(from))] }

func (w *world) device(id netip.Addr) *device {
	i := slices.IndexFunc(w.all, func(d *device) bool { return d.id == id })
	return w.all[i]
}
