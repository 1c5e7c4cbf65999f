package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	Carrier Kind = "carrier" // a host's cable is pulled for a while
	Flap    Kind = "flap"    // a host's cable is pulled and plugged many times in a row
	Kill    Kind = "kill"    // kill -9 of a daemon or a host agent, started again after a while
	Term    Kind = "term"    // SIGTERM of the same; an agent withdraws its registration
	Stop    Kind = "stop"    // SIGSTOP of the same, SIGCONT after a while
	Drop    Kind = "drop"    // packets between an access switch and a reflector are lost, some or all, one way or both
	Cut     Kind = "cut"     // TCP sessions between the two are reset
	Path    Kind = "path"    // nothing gets from one access switch to another, or only one way, for longer than BFD waits
	CRC     Kind = "crc"     // damaged frames arrive at an access port until its switch shuts it; later it is opened
	Hole    Kind = "hole"    // packets longer than some size do not pass between an access switch and a reflector, one way or both
	Files   Kind = "files"   // a daemon can open no more files and sockets for a while
	Disk    Kind = "disk"    // the disk with the state of an access switch is full for a while
	Clock   Kind = "clock"   // the clock that a switch's daemon reads is set, and set right after a while
	Zone    Kind = "zone"    // an operator changes zones at both reflectors
)

// Kinds lists all kinds, as Plan draws them.
var Kinds = []Kind{Carrier, Flap, Kill, Term, Stop, Drop, Cut, Path, CRC, Hole, Files, Disk, Clock, Zone}

// KindNames lists all kinds for people.
func KindNames() string {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// ParseKinds reads a comma-separated list; an empty one means all.
func ParseKinds(s string) ([]Kind, error) {
	if strings.TrimSpace(s) == "" {
		return slices.Clone(Kinds), nil
	}
	var out []Kind
	for word := range strings.SplitSeq(s, ",") {
		k := Kind(strings.TrimSpace(word))
		if !slices.Contains(Kinds, k) {
			return nil, fmt.Errorf("%q is not a kind of fault; allowed: %v", word, Kinds)
		}
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out, nil
}

// Fault is one planned fault. Fields that its kind does not use are zero.
type Fault struct {
	At     time.Duration // since the round began
	For    time.Duration // until it is healed; between two changes of a flap; how long a port stays shut, 0: until it opens by itself
	Kind   Kind
	Node   string        // of a process; the reflector of a link; an access switch at one end of a path
	Peer   string        // the access switch at the other end of the path
	Proc   string        // name of the process
	Port   string        // access port of Node, or port of a reflector
	Times  int           // how often a cable flaps
	Loss   int           // percent of packets lost
	Size   int           // the longest packet that passes a hole, in bytes from the IP header on
	Step   time.Duration // by which a clock is set
	Way    string        // in, out or both, as the reflector sees it, or Node of a path
	Zone   string        // to be changed
	Member int           // index of the address that joins, or leaves when it is in; -1: the zone is removed and made anew
}

func (f Fault) String() string {
	s := fmt.Sprintf("%s %s", f.Kind, f.target())
	switch f.Kind {
	case Flap:
		return fmt.Sprintf("%s %d times, %s apart", s, f.Times, f.For)
	case Cut:
		return s
	case Zone:
		if f.Member < 0 {
			return s + " removed and made anew"
		}
		return fmt.Sprintf("%s toggle address %d", s, f.Member)
	case Path:
		return fmt.Sprintf("%s %s for %s", s, f.Way, f.For)
	case CRC:
		if f.For == 0 {
			return s + ", the port opens by itself"
		}
		return fmt.Sprintf("%s, the port is opened by hand after %s", s, f.For)
	case Drop:
		return fmt.Sprintf("%s %d%% %s for %s", s, f.Loss, f.Way, f.For)
	case Clock:
		return fmt.Sprintf("%s set by %s for %s", s, f.Step, f.For)
	case Hole:
		return fmt.Sprintf("%s of packets over %d bytes %s for %s", s, f.Size, f.Way, f.For)
	}
	return fmt.Sprintf("%s for %s", s, f.For)
}

// MarshalJSON gives the fault as its String, which is what logs show, and its time.
func (f Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		At    float64 `json:"at_s"`
		Kind  Kind    `json:"kind"`
		Fault string  `json:"fault"`
	}{f.At.Seconds(), f.Kind, f.String()})
}

// target names what a fault is done to; two faults of one target never overlap.
func (f Fault) target() string {
	switch f.Kind {
	case Carrier, Flap, CRC, Drop, Cut, Hole:
		return f.Node + ":" + f.Port
	case Path:
		return f.Node + "--" + f.Peer
	case Zone:
		return "zone " + f.Zone
	case Clock:
		return f.Node + "/clock"
	}
	return f.Node + "/" + f.Proc
}

// lasts is how long the fault holds its target, about.
func (f Fault) lasts() time.Duration {
	switch {
	case f.Kind == Flap:
		return time.Duration(2*f.Times) * f.For
	case f.Kind == CRC && f.For == 0:
		return crcRecovery
	case f.Kind == CRC:
		return crcWindow/3 + f.For // it must be found first
	}
	return f.For
}

// targets is what faults may be done to.
type targets struct {
	access  []link      // access ports with a host
	inner   []link      // ports of reflectors to access switches
	paths   [][2]string // pairs of access switches
	daemons []process   // of switches
	disks   []process   // those of them whose disks may be full
	agents  []process   // of hosts
	zones   []string    // that may be changed
	members int         // addresses that may join them
}

// link is a port of a switch.
type link struct{ node, port string }

// process is a daemon or an agent.
type process struct{ node, name string }

func (p process) String() string { return p.node + "/" + p.name }

// gap is the mean time between two faults.
const gap = 350 * time.Millisecond

// planRound draws the faults of one round: the same seed, round and targets give the same.
// The kinds are dealt like cards, so that each comes once before one comes again: a short
// round has them all, too. A kind whose target is busy goes back under the others.
func planRound(seed uint64, round int, length time.Duration, kinds []Kind, t targets) []Fault {
	rnd := rand.New(rand.NewPCG(seed, uint64(round)))
	busy := make(map[string]time.Duration)
	var cards []Kind
	var out []Fault
	for at := between(rnd, 0, gap); at < length; at += time.Duration(rnd.ExpFloat64() * float64(gap)) {
		if len(cards) == 0 {
			cards = slices.Clone(kinds)
			rnd.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
		}
		k := cards[0]
		cards = cards[1:]
		f, ok := t.draw(rnd, k)
		if !ok {
			continue
		}
		if busy[f.target()] > at {
			cards = append(cards, k)
			continue
		}
		f.At = at.Round(time.Millisecond)
		busy[f.target()] = at + f.lasts()
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return out
}

// draw draws one fault of a kind; false when there is nothing to do it to.
func (t targets) draw(rnd *rand.Rand, k Kind) (Fault, bool) {
	f := Fault{Kind: k}
	switch k {
	case Carrier, Flap, CRC:
		if len(t.access) == 0 {
			return f, false
		}
		l := t.access[rnd.IntN(len(t.access))]
		f.Node, f.Port = l.node, l.port
		f.For = between(rnd, 5*time.Millisecond, 3*time.Second)
		switch k {
		case Flap:
			f.Times, f.For = 2+rnd.IntN(15), between(rnd, time.Millisecond, 80*time.Millisecond)
		case CRC:
			f.For = between(rnd, time.Millisecond, 5*time.Second)
			if rnd.IntN(12) == 0 { // seldom: the round waits for it
				f.For = 0
			}
		}
	case Kill, Term, Stop:
		ps := t.daemons
		if rnd.IntN(3) == 0 && len(t.agents) > 0 {
			ps = t.agents
		}
		if len(ps) == 0 {
			return f, false
		}
		p := ps[rnd.IntN(len(ps))]
		f.Node, f.Proc = p.node, p.name
		f.For = between(rnd, time.Millisecond, 2*time.Second)
		if k == Stop {
			f.For = between(rnd, 50*time.Millisecond, 5*time.Second)
		}
	case Files:
		if len(t.daemons) == 0 {
			return f, false
		}
		p := t.daemons[rnd.IntN(len(t.daemons))]
		f.Node, f.Proc = p.node, p.name
		f.For = between(rnd, 100*time.Millisecond, 6*time.Second)
	case Clock:
		if len(t.daemons) == 0 {
			return f, false
		}
		p := t.daemons[rnd.IntN(len(t.daemons))]
		f.Node, f.Proc = p.node, p.name
		f.For = between(rnd, 50*time.Millisecond, 6*time.Second)
		f.Step = []time.Duration{time.Second, time.Minute, time.Hour, 40 * 365 * 24 * time.Hour}[rnd.IntN(4)]
		if rnd.IntN(2) == 0 {
			f.Step = -f.Step
		}
	case Disk:
		if len(t.disks) == 0 {
			return f, false
		}
		p := t.disks[rnd.IntN(len(t.disks))]
		f.Node, f.Proc = p.node, p.name
		f.For = between(rnd, 100*time.Millisecond, 6*time.Second)
	case Drop, Cut, Hole:
		if len(t.inner) == 0 {
			return f, false
		}
		l := t.inner[rnd.IntN(len(t.inner))]
		f.Node, f.Port = l.node, l.port
		f.For = cutFor
		switch k {
		case Hole: // what BFD sends has 80 bytes
			f.For = between(rnd, 300*time.Millisecond, 6*time.Second)
			f.Size = []int{120, 200, 400, 1000}[rnd.IntN(4)]
			f.Way = []string{"in", "out", "both"}[rnd.IntN(3)]
		case Drop:
			f.For = between(rnd, 300*time.Millisecond, 6*time.Second)
			f.Loss = []int{10, 30, 60, 100, 100}[rnd.IntN(5)]
			f.Way = []string{"in", "out", "both", "both"}[rnd.IntN(4)]
		}
	case Path:
		if len(t.paths) == 0 {
			return f, false
		}
		p := t.paths[rnd.IntN(len(t.paths))]
		f.Node, f.Peer = p[0], p[1]
		f.Way = []string{"in", "out", "both"}[rnd.IntN(3)]
		f.For = between(rnd, bfdTime+500*time.Millisecond, bfdTime+4*time.Second)
	case Zone:
		if len(t.zones) == 0 || t.members == 0 {
			return f, false
		}
		f.Zone, f.Member = t.zones[rnd.IntN(len(t.zones))], rnd.IntN(t.members)
		if rnd.IntN(6) == 0 {
			f.Member = -1
		}
	}
	return f, true
}

// cutFor is how long segments are answered by resets: long enough to meet a keepalive.
const cutFor = 1300 * time.Millisecond

// between draws a time, short ones more often than long ones.
func between(rnd *rand.Rand, lo, hi time.Duration) time.Duration {
	x := rnd.Float64()
	return (lo + time.Duration(x*x*float64(hi-lo))).Round(time.Millisecond)
}
