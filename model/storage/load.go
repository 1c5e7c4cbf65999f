package storage

import (
	"errors"
	"fmt"

	"github.com/openinof/inof/model"
)

// Config is one storage load.
type Config struct {
	Initiators, Targets []model.NodeID
	Depth               int        // I/Os outstanding of each initiator at each target
	Blocks              []Block    // sizes, drawn by weight
	ReadPercent         int        // 0..100
	Service             model.Time // of a target for each I/O
	KeepAlive           model.Time // a path on which I/O waits for this long is down
	Reconnect           model.Time // a path that went down is tried again after this long; 0 = never
	Begin               model.Time // of the load
	TOS                 uint8
	Seed                uint64
	Tag                 uint8 // tells the timers and messages of several loads apart
}

// Block is a size of I/O and how often it is drawn.
type Block struct {
	Bytes  int64
	Weight int
}

// capsule is the size of a command or completion on the wire's payload: a 64-byte
// submission queue entry with its header, as NVMe over RDMA has it.
const capsule = 72

// ErrConfig is wrapped by errors of New.
var ErrConfig = errors.New("storage load")

// Steps of an I/O; each is the delivery of one message, or a timer.
const (
	stepCommand uint64 = iota // the capsule reached the target
	stepPull                  // write: the target's read request reached the initiator
	stepData                  // write: the data reached the target
	stepReply                 // data of a read, or the completion of a write, reached the initiator
	stepService               // timer: the target has done its part
	stepAlive                 // timer: look at the paths
	stepReconnect
	stepProbe // a probe reached the target
	stepEcho  // and came back
	stepBegin // timer: the load begins
	stepAsk   // a keep-alive command after a notice reached the target
	stepAlright
	stepGiveUp // timer: it should have been answered by now
)

// Tags are: load in the upper 8 bits, step in 8, generation in 16, number in 32.
func (l *Load) tag(step uint64, gen uint16, n int32) uint64 {
	return uint64(l.cfg.Tag)<<56 | step<<48 | uint64(gen)<<32 | uint64(uint32(n))
}

// Load is a storage load at work. It is a part of a model.Handler: the owner passes
// Delivered and Timer on to the load whose Owns says yes.
type Load struct {
	cfg     Config
	sim     *model.Sim
	weights int
	pairs   []pair
	paths   []path
	ios     []io
	retried uint64
	last    model.Time // when an I/O was completed last, as far as is gathered
	pauses  []Pause
	log     []Event
	downs   int        // paths that are down
	settled model.Time // targets may have done with what was issued again elsewhere
}

// pair is one initiator at one target. But for what is said it belongs to the initiator.
type pair struct {
	first, n int32 // its paths
	turn     int32
	idle     []int32 // I/Os that no path can take
	rng      model.RNG
	done     uint64
	bytes    uint64
	latency  model.Time // sum
	worst    model.Time
	busy     []Pause // times in which I/Os were completed without a pause, since all were gathered
}

// path is a pair of ports with a queue pair each way.
type path struct {
	pair     int32
	src, dst model.EndpointID
	to, back model.FlowID
	up       bool
	told     bool       // down because of a notice: only a notice brings it up
	heard    model.Time // when the initiator got a message last
	asked    model.Time // when a keep-alive command was sent after a notice
	waiting  int32      // I/Os outstanding on it
	gen      uint16     // of its queue pairs
}

// io is one outstanding I/O.
type io struct {
	pair, path int32
	bytes      int64
	read       bool
	gen        uint16 // grows when it is issued again: messages of before are stale
	begun      model.Time
	retried    bool
}

// Event is something that happened to a path.
type Event struct {
	At        model.Time
	Initiator model.NodeID
	Target    model.NodeID
	Path      int
	Up        bool
	Why       string // keep-alive, notice, reconnect
}

// New prepares a load on a built fabric; Start begins it.
func New(s *model.Sim, cfg Config) (*Load, error) {
	l := &Load{cfg: cfg, sim: s}
	for _, b := range cfg.Blocks {
		if b.Bytes <= 0 || b.Bytes > 1<<30 || b.Weight <= 0 {
			return nil, fmt.Errorf("%w: block of %d bytes with weight %d", ErrConfig, b.Bytes, b.Weight)
		}
		l.weights += b.Weight
	}
	if cfg.Depth < 1 || cfg.Depth > 65_536 || l.weights == 0 || cfg.ReadPercent < 0 || cfg.ReadPercent > 100 || cfg.Service < 0 || cfg.KeepAlive <= 0 || cfg.Reconnect < 0 || cfg.Begin < 0 {
		return nil, fmt.Errorf("%w: depth %d, %d blocks, %d %% reads, service %v, keep-alive %v", ErrConfig, cfg.Depth, len(cfg.Blocks), cfg.ReadPercent, cfg.Service, cfg.KeepAlive)
	}
	for _, i := range cfg.Initiators {
		for _, t := range cfg.Targets {
			if err := l.addPair(i, t); err != nil {
				return nil, err
			}
		}
	}
	if len(l.pairs) == 0 {
		return nil, fmt.Errorf("%w: no initiator or no target", ErrConfig)
	}
	return l, nil
}

func (l *Load) addPair(i, t model.NodeID) error {
	n := min(l.sim.Ports(i), l.sim.Ports(t))
	if n == 0 {
		return fmt.Errorf("%w: %s or %s has no port", ErrConfig, l.sim.NodeName(i), l.sim.NodeName(t))
	}
	id := int32(len(l.pairs))
	l.pairs = append(l.pairs, pair{first: int32(len(l.paths)), n: int32(n), rng: model.RNG(l.cfg.Seed + uint64(id)<<20)})
	for k := range n {
		p := path{pair: id, src: l.sim.EndpointOf(i, k), dst: l.sim.EndpointOf(t, k), up: true}
		l.paths = append(l.paths, p)
		if err := l.open(int32(len(l.paths) - 1)); err != nil {
			return err
		}
	}
	return nil
}

// open gives a path fresh queue pairs.
func (l *Load) open(n int32) error {
	p := &l.paths[n]
	p.gen++
	var err error
	if p.to, err = l.sim.OpenQP(model.FlowSpec{Src: p.src, Dst: p.dst, TOS: l.cfg.TOS}); err != nil {
		return err
	}
	p.back, err = l.sim.OpenQP(model.FlowSpec{Src: p.dst, Dst: p.src, TOS: l.cfg.TOS})
	return err
}

// Start begins the load at its time.
func (l *Load) Start() error {
	if l.cfg.Begin > l.sim.Now() {
		l.sim.At(l.cfg.Begin, l.tag(stepBegin, 0, 0))
		return nil
	}
	return l.begin()
}

// begin issues the first I/Os.
func (l *Load) begin() error {
	l.last = l.sim.Now()
	for id := range l.pairs {
		for range l.cfg.Depth {
			l.ios = append(l.ios, io{pair: int32(id)})
			if err := l.fresh(l.sim, int32(len(l.ios)-1)); err != nil {
				return err
			}
		}
	}
	l.sim.At(l.sim.Now()+l.cfg.KeepAlive/aliveLooks, l.tag(stepAlive, 0, 0))
	return nil
}

// aliveLooks is how often paths are looked at in a keep-alive time.
const aliveLooks = 20

// Begin is when the load begins.
func (l *Load) Begin() model.Time { return l.cfg.Begin }

// Divided reports whether each host does its part of the load by itself: not while an initiator
// looks for a way back to a target, and not as long as a target may serve what was issued again.
func (l *Load) Divided() bool { return l.downs == 0 && l.sim.Now() >= l.settled }

// Owns reports whether a tag belongs to this load.
func (l *Load) Owns(tag uint64) bool { return uint8(tag>>56) == l.cfg.Tag }

// fresh draws a new I/O in slot n and issues it.
func (l *Load) fresh(s *model.Sim, n int32) error {
	o := &l.ios[n]
	rng := &l.pairs[o.pair].rng
	w := rng.Intn(l.weights)
	for _, b := range l.cfg.Blocks {
		if w -= b.Weight; w < 0 {
			o.bytes = b.Bytes
			break
		}
	}
	o.read = rng.Intn(100) < l.cfg.ReadPercent
	o.begun, o.retried = s.Now(), false
	return l.issue(s, n)
}

// issue sends the command of an I/O on the next path that is up.
func (l *Load) issue(s *model.Sim, n int32) error {
	o := &l.ios[n]
	o.gen++
	pr := &l.pairs[o.pair]
	for range pr.n {
		k := pr.first + pr.turn%pr.n
		pr.turn++
		if p := &l.paths[k]; p.up {
			o.path = k
			if p.waiting == 0 {
				p.heard = s.Now()
			}
			p.waiting++
			return s.Post(p.to, capsule, l.tag(stepCommand, o.gen, n))
		}
	}
	o.path = -1
	pr.idle = append(pr.idle, n)
	return nil
}
