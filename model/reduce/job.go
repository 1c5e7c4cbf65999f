package reduce

import (
	"errors"
	"fmt"
	"slices"

	"github.com/openinof/inof/model"
)

// Config is a job.
type Config struct {
	Ranks   []model.EndpointID
	Ring    bool  // round the hosts, not in the switches
	Bytes   int64 // of the vector of each rank; whole numbers of 4 bytes
	Op      Op
	Slots   int        // of each switch: chunks of a rank on their way
	Resend  model.Time // a host that has no result for this long sends again
	Retries int        // after so many the job is reported as stalled
	Begin   model.Time
	Queue   int // the class of its frames
	TOS     uint8
	Tag     uint8 // of its timers and messages
	Seed    uint64
}

// ErrConfig is wrapped by errors of New.
var ErrConfig = errors.New("reduction")

// Stats is how a job went.
type Stats struct {
	Done       bool       `json:"done"`
	Took       model.Time `json:"took_ps"` // from its begin until the last rank has all; 0 = not yet
	Chunks     int        `json:"chunks"`
	Wrong      uint64     `json:"wrong"`   // numbers of results that are not what they must be
	Resends    uint64     `json:"resends"` // frames that hosts sent again
	Duplicates uint64     `json:"duplicates"`
	Partial    uint64     `json:"partial"`  // chunks that a switch has in part, now
	Complete   uint64     `json:"complete"` // chunks that switches completed
	PeakSlots  int        `json:"peak_slots"`
	Stalled    []string   `json:"stalled,omitempty"` // ranks that were waited for in vain
	Root       string     `json:"root,omitempty"`
}

// Job is a job at work: a part of a model.Handler, whose owner passes on what is its.
type Job struct {
	cfg    Config
	sim    *model.Sim
	chunks int
	last   int // numbers in the last chunk
	ranks  []rank
	nodes  []node                  // of the tree; the first is its root
	at     map[model.PortID]portal // who gets what arrives at a port
	ring   ring
	st     Stats // what a rank or a switch has by itself is not in it
}

type portal struct {
	node  int // of the tree; -1: a rank
	child int // number of the child behind the port, or of the rank
}

// rank is a host of the job. What changes at a host or a switch belongs to it alone, so that parts
// of a fabric may be simulated apart.
type rank struct {
	port model.PortID
	kid  int // its number there
	next int // the next chunk to send
	have int // chunks with a result
	slot []waits
	done model.Time // when it had all; 0 = not yet

	wrong, resends, duplicates uint64
}

// waits is a chunk on its way.
type waits struct {
	chunk int // -1: none
	since model.Time
	tries int
}

// node is a switch of the tree.
type node struct {
	id     model.NodeID
	parent int // -1: the root
	kid    int // its number among the parent's children
	up     model.PortID
	kids   []model.PortID
	below  []int // ranks under each child
	slots  [2][]slot
	used   int

	duplicates, complete uint64
}

// slot is a chunk in a switch.
type slot struct {
	chunk int // -1: none
	seen  uint64
	ranks uint16
	vals  []int32
	done  bool // vals are the result
}

// New prepares a job on a built fabric.
func New(s *model.Sim, cfg Config) (*Job, error) {
	j := &Job{cfg: cfg, sim: s, at: map[model.PortID]portal{}}
	switch {
	case len(cfg.Ranks) < 2 || len(cfg.Ranks) > 65535:
		return nil, fmt.Errorf("%w: %d ranks, want 2..65535", ErrConfig, len(cfg.Ranks))
	case cfg.Bytes < 4 || cfg.Bytes%4 != 0 || cfg.Bytes > 1<<32:
		return nil, fmt.Errorf("%w: vectors of %d bytes, want a multiple of 4 up to 4 GB", ErrConfig, cfg.Bytes)
	case cfg.Slots < 1 || cfg.Slots > 65535 || cfg.Resend <= 0 || cfg.Retries < 1 || cfg.Queue < 0 || cfg.Queue >= model.NumQueues:
		return nil, fmt.Errorf("%w: %d slots, again after %v, %d times, queue %d", ErrConfig, cfg.Slots, cfg.Resend, cfg.Retries, cfg.Queue)
	}
	words := int(cfg.Bytes / 4)
	j.chunks = (words + chunkInts - 1) / chunkInts
	j.last = words - (j.chunks-1)*chunkInts
	j.st.Chunks = j.chunks
	seen := map[model.NodeID]bool{}
	for _, ep := range cfg.Ranks {
		if n := s.EndpointNode(ep); seen[n] {
			return nil, fmt.Errorf("%w: %s has two ranks", ErrConfig, s.NodeName(n))
		} else {
			seen[n] = true
		}
		j.ranks = append(j.ranks, rank{port: s.EndpointPort(ep), slot: make([]waits, cfg.Slots)})
	}
	if cfg.Ring {
		return j, j.newRing()
	}
	return j, j.plant()
}

// Start plans the job's begin.
func (j *Job) Start() { j.sim.At(max(j.cfg.Begin, j.sim.Now()), j.tag(0)) }

// tag gives a timer's: 0 begins, n looks after rank n-1.
func (j *Job) tag(n int) uint64 { return uint64(j.cfg.Tag)<<56 | uint64(n) }

// value gives a number of a rank's vector.
func (j *Job) value(rank, word int) int32 {
	r := model.RNG(j.cfg.Seed + uint64(rank)<<32 + uint64(word))
	return int32(r.Uint64())
}

// vector gives a chunk of a rank.
func (j *Job) vector(rank, chunk int) []int32 {
	n := chunkInts
	if chunk == j.chunks-1 {
		n = j.last
	}
	out := make([]int32, n)
	for i := range out {
		out[i] = j.value(rank, chunk*chunkInts+i)
	}
	return out
}

// Timer takes a timer of this job.
func (j *Job) Timer(s *model.Sim, tag uint64) error {
	n := int(tag & 0xffffffff)
	switch {
	case n == 0 && j.cfg.Ring:
		return j.startRing()
	case n == 0:
		for k := range j.ranks {
			for i := range j.ranks[k].slot {
				j.ranks[k].slot[i].chunk = -1
			}
			if err := j.send(s, k); err != nil {
				return err
			}
			j.sim.At(j.sim.Now()+j.cfg.Resend/2, j.tag(k+1))
		}
		return nil
	}
	return j.again(n - 1)
}

// send sends what chunks of a rank have a slot.
func (j *Job) send(s *model.Sim, k int) error {
	r := &j.ranks[k]
	for ; r.next < j.chunks && r.slot[r.next%j.cfg.Slots].chunk < 0; r.next++ {
		r.slot[r.next%j.cfg.Slots] = waits{chunk: r.next, since: s.Now()}
		if err := j.put(s, k, r.next); err != nil {
			return err
		}
	}
	return nil
}

func (j *Job) put(s *model.Sim, k, chunk int) error {
	r := &j.ranks[k]
	f := frame{job: uint16(j.cfg.Tag), op: j.cfg.Op, chunk: uint32(chunk), child: uint16(r.kid), ranks: 1, vals: j.vector(k, chunk)}
	return s.SendControl(r.port, j.cfg.Queue, f.bytes())
}

// again sends what has waited too long for its result.
func (j *Job) again(k int) error {
	r := &j.ranks[k]
	if r.have == j.chunks {
		return nil
	}
	for i := range r.slot {
		w := &r.slot[i]
		if w.chunk < 0 || j.sim.Now()-w.since < j.cfg.Resend {
			continue
		}
		if w.tries++; w.tries == j.cfg.Retries && len(j.st.Stalled) == 0 {
			j.blame(0, w.chunk)
		}
		w.since = j.sim.Now()
		r.resends++
		if err := j.put(j.sim, k, w.chunk); err != nil {
			return err
		}
	}
	j.sim.At(j.sim.Now()+j.cfg.Resend/2, j.tag(k+1))
	return nil
}

// Control takes a frame of this job that arrived at a port.
func (j *Job) Control(s *model.Sim, p model.PortID, b []byte) error {
	f, err := parse(b)
	if err != nil {
		return err
	}
	to, ok := j.at[p]
	switch {
	case !ok || f.chunk >= uint32(j.chunks):
		return nil // it has lost its way
	case to.node >= 0 && f.kind == kindUp:
		return j.combine(s, to.node, to.child, &f)
	case to.node >= 0:
		return j.result(s, to.node, &f)
	}
	return j.received(s, to.child, &f)
}

// received gives a rank the result of a chunk.
func (j *Job) received(s *model.Sim, k int, f *frame) error {
	r := &j.ranks[k]
	w := &r.slot[int(f.chunk)%j.cfg.Slots]
	if w.chunk != int(f.chunk) {
		r.duplicates++
		return nil
	}
	for i, v := range f.vals {
		want := j.value(0, w.chunk*chunkInts+i)
		for n := 1; n < len(j.ranks); n++ {
			want = j.cfg.Op.apply(want, j.value(n, w.chunk*chunkInts+i))
		}
		if v != want {
			r.wrong++
		}
	}
	w.chunk = -1
	if r.have++; r.have == j.chunks {
		r.done = s.Now()
	}
	return j.send(s, k)
}

// Divided reports whether ranks and switches do their part of the job by themselves between two
// timers: they do.
func (j *Job) Divided() bool { return true }

// Done reports whether all ranks have all results.
func (j *Job) Done() bool {
	return !slices.ContainsFunc(j.ranks, func(r rank) bool { return r.done == 0 })
}

// Stats gives how it stands.
func (j *Job) Stats() Stats {
	st := j.st
	st.Done = j.Done()
	for i := range j.ranks {
		r := &j.ranks[i]
		st.Wrong += r.wrong
		st.Resends += r.resends
		st.Duplicates += r.duplicates
		if st.Done {
			st.Took = max(st.Took, r.done-j.cfg.Begin)
		}
	}
	for i := range j.nodes {
		n := &j.nodes[i]
		st.Duplicates += n.duplicates
		st.Complete += n.complete
		st.PeakSlots = max(st.PeakSlots, n.used)
		for v := range n.slots {
			for k := range n.slots[v] {
				if e := &n.slots[v][k]; e.chunk >= 0 && !e.done {
					st.Partial++
				}
			}
		}
	}
	return st
}
