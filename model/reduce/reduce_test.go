package reduce

import (
	"math"
	"slices"
	"testing"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/workload"
)

// bench passes on what concerns one job.
type bench struct {
	t *testing.T
	j *Job
}

func (b bench) FlowDone(*model.Sim, model.FlowID)              {}
func (b bench) Divided() bool                                  { return b.j.Divided() }
func (b bench) Timer(s *model.Sim, tag uint64)                 { b.ok(b.j.Timer(s, tag)) }
func (b bench) Control(s *model.Sim, p model.PortID, f []byte) { b.ok(b.j.Control(s, p, f)) }
func (b bench) Delivered(s *model.Sim, _ model.FlowID, tag uint64) {
	b.ok(b.j.Delivered(s, tag))
}

func (b bench) ok(err error) {
	if err != nil {
		b.t.Fatal(err)
	}
}

// run does a job on 4 leaves of some hosts with 4 spines; links of 100G and 1 us lose frames.
func run(t *testing.T, hosts int, loss float64, until model.Time, change func(*Config)) (*model.Sim, *workload.Fabric, *Job) {
	t.Helper()
	l := model.LinkSpec{Rate: 100 * model.Gbps, Delay: model.Microsecond, Loss: loss}
	f, err := workload.LeafSpine(4, hosts, 4, l, l, workload.Profiles{Switch: model.ReferenceSwitch(32<<20, nil), NIC: model.ReferenceNIC(nil)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Net.Build(model.Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Bytes: 64 << 10, Slots: 128, Resend: 100 * model.Microsecond, Retries: 10, Queue: 3, TOS: workload.DataTOS, Tag: 1, Seed: 9}
	for i := range f.Hosts {
		cfg.Ranks = append(cfg.Ranks, model.EndpointID(i))
	}
	change(&cfg)
	j, err := New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.SetHandler(bench{t, j})
	j.Start()
	if err := s.RunWhile(until, func() bool { return !j.Done() }); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckConservation(); err != nil {
		t.Error(err)
	}
	return s, f, j
}

// Without loss a reduction of 16 hosts takes 2d(delay + frame/C) + S/(E C), E = 976/1048, and round
// the hosts 2(n-1)(path + S/(n E C)).
func TestModelReductionTakesWhatTheFormSays(t *testing.T) {
	for _, size := range []int64{16, 4 << 10, 64 << 10, 1 << 20} {
		_, _, j := run(t, 4, 0, 10*model.Millisecond, func(c *Config) { c.Bytes = size })
		first := float64(min(size, 4*chunkInts) + headBytes + fcs)
		frames := (size + 4*chunkInts - 1) / (4 * chunkInts)
		rest := float64(size + frames*(headBytes+fcs)) // what a host sends
		want := 4*(1e3+first*8/100) + (rest-first)*8/100
		st := j.Stats()
		if got := st.Took.Seconds() * 1e9; !st.Done || st.Wrong > 0 || math.Abs(got/want-1) > 0.02 {
			t.Errorf("%d bytes: %.0f ns, the form gives %.0f; %+v", size, got, want, st)
		}
		_, _, r := run(t, 4, 0, 10*model.Millisecond, func(c *Config) { c.Bytes, c.Ring = size, true })
		t.Logf("%d bytes: %.1f us in the network, %.1f us round the hosts", size, st.Took.Seconds()*1e6, r.Stats().Took.Seconds()*1e6)
		if r.Stats().Took <= st.Took*3/2 {
			t.Errorf("%d bytes: round the hosts %v, in the network %v", size, r.Stats().Took, st.Took)
		}
	}
}

// Sums are exact whatever is lost on the way, and every frame that a link carries upwards stands
// for all the hosts below it.
func TestSumsAreExactWhateverIsLost(t *testing.T) {
	for _, loss := range []float64{0, 0.0001, 0.001, 0.01} {
		for _, op := range []Op{Sum, Max, Min} {
			s, f, j := run(t, 4, loss, 100*model.Millisecond, func(c *Config) { c.Op = op })
			st := j.Stats()
			if !st.Done || st.Wrong > 0 || len(st.Stalled) > 0 || (loss == 0) != (st.Resends == 0) && loss != 0.0001 {
				t.Errorf("loss %g: %+v", loss, st)
			}
			if loss > 0 {
				continue
			}
			for _, leaf := range f.Edge {
				up, down := uint64(0), uint64(0)
				for k := range s.Ports(leaf) {
					p := s.PortOf(leaf, k)
					if n := s.Queue(p, 3).TxFrames; s.IsSwitch(s.PortNode(s.Peer(p))) {
						up += n
					} else {
						down += n
					}
				}
				if up*4 != down || up != uint64(st.Chunks) {
					t.Errorf("a leaf sent %d frames up and %d down, want %d and four times that", up, down, st.Chunks)
				}
			}
		}
	}
}

// How many ranks there are changes nothing but what is sent below them.
func TestRoundsDoNotGrowWithRanks(t *testing.T) {
	var took []model.Time
	for _, hosts := range []int{2, 4, 16} {
		_, _, j := run(t, hosts, 0, 10*model.Millisecond, func(*Config) {})
		took = append(took, j.Stats().Took)
	}
	if slices.Max(took) != slices.Min(took) {
		t.Errorf("8, 16 and 64 ranks took %v", took)
	}
}

// A rank whose cable is cut stalls its job, which says who it waits for.
func TestADeadRankIsNamed(t *testing.T) {
	l := model.LinkSpec{Rate: 100 * model.Gbps, Delay: model.Microsecond}
	f, err := workload.LeafSpine(2, 2, 2, l, l, workload.Profiles{Switch: model.ReferenceSwitch(32<<20, nil), NIC: model.ReferenceNIC(nil)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Net.Build(model.Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	j, err := New(s, Config{Ranks: []model.EndpointID{0, 1, 2, 3}, Bytes: 1 << 20, Slots: 16, Resend: 100 * model.Microsecond, Retries: 10, Queue: 3, Tag: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.SetHandler(bench{t, j})
	j.Start()
	if err := s.Run(20 * model.Microsecond); err != nil {
		t.Fatal(err)
	}
	s.SetLink(s.LinkOf(s.EndpointPort(3)), false)
	if err := s.Run(3 * model.Millisecond); err != nil {
		t.Fatal(err)
	}
	if st := j.Stats(); st.Done || !slices.Equal(st.Stalled, []string{"h3"}) {
		t.Errorf("%+v", st)
	}
}

// What comes from a fabric is not trusted.
func FuzzFrame(f *testing.F) {
	f.Add((&frame{job: 1, chunk: 7, child: 2, ranks: 3, vals: []int32{1, -2}}).bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := parse(b); err == nil && (len(p.vals) < 1 || len(p.vals) > chunkInts) {
			t.Errorf("%d numbers", len(p.vals))
		}
	})
}
