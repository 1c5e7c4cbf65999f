package storage

import (
	"testing"

	"github.com/openinof/inof/model"
)

// handler passes everything to one load.
type handler struct {
	t *testing.T
	l *Load
}

func (h *handler) FlowDone(*model.Sim, model.FlowID)                {}
func (h *handler) Control(*model.Sim, model.PortID, []byte)         {}
func (h *handler) Divided() bool                                    { return h.l.Divided() }
func (h *handler) Timer(s *model.Sim, tag uint64)                   { h.check(h.l.Timer(s, tag)) }
func (h *handler) Delivered(s *model.Sim, _ model.FlowID, t uint64) { h.check(h.l.Delivered(s, t)) }

func (h *handler) check(err error) {
	if err != nil {
		h.t.Error(err)
	}
}

// rig is two planes, each one switch, with two initiators and one target on both.
func rig(t *testing.T, cfg Config) (*model.Sim, *Load, []model.LinkID) {
	t.Helper()
	return rigWith(t, cfg, func(*model.NICProfile) {})
}

func rigWith(t *testing.T, cfg Config, change func(*model.NICProfile)) (*model.Sim, *Load, []model.LinkID) {
	t.Helper()
	net := &model.Network{}
	nic := model.ReferenceNIC(nil)
	nic.MTU, nic.RTO = 4096, model.Millisecond
	change(&nic)
	var hosts []model.NodeID
	for _, name := range []string{"i0", "i1", "t0"} {
		hosts = append(hosts, net.AddHost(name, nic))
	}
	var links []model.LinkID
	for range 2 {
		sw := net.AddSwitch("plane", model.ReferenceSwitch(16<<20, nil))
		for _, h := range hosts {
			id, err := net.Connect(h, sw, model.LinkSpec{Rate: 25 * model.Gbps, Delay: model.Microsecond})
			if err != nil {
				t.Fatal(err)
			}
			links = append(links, id)
		}
	}
	s, err := net.Build(model.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Initiators, cfg.Targets, cfg.TOS, cfg.Tag = hosts[:2], hosts[2:], 24<<2, 9
	l, err := New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.SetHandler(&handler{t, l})
	if err := l.Start(); err != nil {
		t.Fatal(err)
	}
	return s, l, links
}

func run(t *testing.T, s *model.Sim, to model.Time) {
	t.Helper()
	if err := s.Run(to); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckConservation(); err != nil {
		t.Fatal(err)
	}
}

var mixed = Config{Depth: 8, Blocks: []Block{{4096, 3}, {65_537, 1}}, ReadPercent: 70, Service: 50 * model.Microsecond, KeepAlive: 20 * model.Millisecond, Reconnect: 30 * model.Millisecond}

// With a depth of one the latency of a read is its command, service and data.
func TestReadLatency(t *testing.T) {
	s, l, _ := rig(t, Config{Depth: 1, Blocks: []Block{{8192, 1}}, ReadPercent: 100, Service: 100 * model.Microsecond, KeepAlive: model.Second})
	run(t, s, 10*model.Millisecond)
	// Four links of 1 us, 120 bytes twice, then 8264 bytes in three frames (two full)
	// store-and-forward, at 320 ps a byte.
	data := model.Time(8192+72+3*48+4096+48) * 320
	want := 100*model.Microsecond + 4*model.Microsecond + 2*120*320 + data
	if st := l.Stats(); st.Mean < want-5*model.Microsecond || st.Mean > want+5*model.Microsecond || st.Done < 180 {
		t.Errorf("%+v, want a latency of %v", st, want)
	}
}

// The load is served at the speed of the target's links when it is deep.
func TestLoadFillsLinks(t *testing.T) {
	cfg := mixed
	cfg.Depth, cfg.ReadPercent, cfg.Blocks = 32, 100, []Block{{131_072, 1}}
	s, l, _ := rig(t, cfg)
	run(t, s, 20*model.Millisecond)
	gbps := float64(l.Stats().Bytes) * 8 / 0.02 / 1e9
	if gbps < 45 || gbps > 50 {
		t.Errorf("%.1f Gb/s over two links of 25", gbps)
	}
}

// Without notices I/O on a dead path waits for the keep-alive; with one it moves on
// at once. Every I/O is done in the end, on the other path.
func TestFailover(t *testing.T) {
	for _, notice := range []bool{false, true} {
		s, l, links := rig(t, mixed)
		run(t, s, 10*model.Millisecond)
		s.SetLink(links[2], false) // the target's link of plane 0
		if notice {
			run(t, s, 10500*model.Microsecond)
			for i := range model.NodeID(2) {
				if n, err := l.PathDown(i, s.EndpointOf(2, 0)); err != nil || n != 1 {
					t.Fatal(n, err)
				}
			}
		}
		run(t, s, 12*model.Millisecond)
		before := l.Stats().Done
		run(t, s, 20*model.Millisecond)
		rate := l.Stats().Done - before
		run(t, s, 60*model.Millisecond)
		st := l.Stats()
		if up, all := l.Paths(); up != 2 || all != 4 || st.Retried == 0 {
			t.Errorf("notice %v: %d of %d paths up, %+v", notice, up, all, st)
		}
		ev := l.Events()
		if notice {
			if ev[0].Why != "notice" || st.Worst > 3*model.Millisecond || rate < 500 {
				t.Errorf("with a notice: %+v, worst %v, %d I/Os in 8 ms", ev[0], st.Worst, rate)
			}
		} else if ev[0].Why != "keep-alive" || ev[0].At < 30*model.Millisecond || ev[0].At > 32*model.Millisecond || st.Worst < 19*model.Millisecond || rate > 50 {
			t.Errorf("without: %+v, worst %v, %d I/Os in 8 ms", ev[0], st.Worst, rate)
		}
		s.SetLink(links[2], true)
		if notice {
			for i := range model.NodeID(2) {
				if _, err := l.PathUp(i, s.EndpointOf(2, 0)); err != nil {
					t.Fatal(err)
				}
			}
		}
		run(t, s, 130*model.Millisecond)
		if up, _ := l.Paths(); up != 4 {
			t.Errorf("notice %v: %d paths up after the link came back", notice, up)
		}
	}
}

// Messages survive loss with either way of repeating: every I/O is done once.
func TestLoadOnLossyLinks(t *testing.T) {
	for _, selective := range []bool{false, true} {
		s, l, links := rigWith(t, mixed, func(n *model.NICProfile) { n.Selective = selective; n.NackGap = 20 * model.Microsecond })
		for _, id := range links {
			s.SetLoss(id, 0.003)
		}
		run(t, s, 50*model.Millisecond)
		st := l.Stats()
		if up, all := l.Paths(); st.Done < 3000 || st.Retried > 0 || up != all {
			t.Errorf("selective %v: %+v, %d of %d paths up", selective, st, up, all)
		}
		if s.Totals().Dropped["crc"] < 20 {
			t.Errorf("lost only %v", s.Totals().Dropped)
		}
	}
}

func TestBadConfigs(t *testing.T) {
	net := &model.Network{}
	sw := net.AddSwitch("s", model.ReferenceSwitch(1<<20, nil))
	h := net.AddHost("h", model.ReferenceNIC(nil))
	if _, err := net.Connect(h, sw, model.LinkSpec{Rate: model.Gbps, Delay: 1}); err != nil {
		t.Fatal(err)
	}
	s, err := net.Build(model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []func(*Config){
		func(c *Config) { c.Depth = 0 }, func(c *Config) { c.Blocks = nil }, func(c *Config) { c.Blocks = []Block{{0, 1}} },
		func(c *Config) { c.ReadPercent = 101 }, func(c *Config) { c.KeepAlive = 0 }, func(c *Config) { c.Targets = nil },
		func(c *Config) { c.Targets = c.Initiators },
	} {
		c := mixed
		c.Initiators, c.Targets = []model.NodeID{h}, []model.NodeID{h}
		f(&c)
		if _, err := New(s, c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}
