package model

import "testing"

// oneSwitch is n hosts on a switch; host ports are numbered as the hosts.
func oneSwitch(t testing.TB, n int, sp SwitchProfile, np NICProfile, l LinkSpec, o Options) *Sim {
	t.Helper()
	net := &Network{}
	sw := net.AddSwitch("s", sp)
	for range n {
		h := net.AddHost("h", np)
		if _, err := net.Connect(h, sw, l); err != nil {
			t.Fatal(err)
		}
	}
	s, err := net.Build(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var link100 = LinkSpec{Rate: 100 * Gbps, Delay: Microsecond}

// inject puts a frame of a class and size into an egress queue without accounting.
func inject(s *Sim, port PortID, q int32, size uint16) {
	pk := s.pool.get()
	s.pool.pkts[pk] = packet{size: size, tos: uint8(q) << 5}
	pt := &s.ports[port]
	s.push(pt, &s.queues[int32(port)*NumQueues+q], q, pk, &s.pool.pkts[pk])
}

// TestWDRRTrace follows the three rounds of the guides: q7 gains 400 and q6 300 bytes
// a round; frames of 900 and 600 in q7, 400, 300 and 500 in q6.
func TestWDRRTrace(t *testing.T) {
	sp := ReferenceSwitch(1<<20, nil)
	sp.Sched.WDRR = 1<<7 | 1<<6
	sp.Sched.Quantum[7], sp.Sched.Quantum[6] = 400, 300
	s := oneSwitch(t, 1, sp, ReferenceNIC(nil), link100, Options{})
	p := s.PortOf(0, 0)
	for _, n := range []uint16{900, 600, 64} {
		inject(s, p, 7, n)
	}
	for _, n := range []uint16{400, 300, 500, 64} {
		inject(s, p, 6, n)
	}
	pt := &s.ports[p]
	want := []struct{ q, size, d7, d6 int32 }{
		{7, 900, -500, 0}, {6, 400, -500, -100}, // round 1
		{6, 300, -100, -100},                       // round 2: q7 is skipped
		{7, 600, -300, -100}, {6, 500, -300, -300}, // round 3
	}
	for i, w := range want {
		q := s.pick(int32(p), pt, pt.ready)
		qu := &s.queues[int32(p)*NumQueues+q]
		size := int32(s.pool.pkts[qu.head].size)
		qu.head = s.pool.pkts[qu.head].next
		d7, d6 := s.queues[int32(p)*NumQueues+7].deficit, s.queues[int32(p)*NumQueues+6].deficit
		if q != w.q || size != w.size || d7 != w.d7 || d6 != w.d6 {
			t.Fatalf("step %d: q%d sent %d, deficits %d/%d; want q%d %d, %d/%d", i, q, size, d7, d6, w.q, w.size, w.d7, w.d6)
		}
	}
}

// TestWDRRShares: weights 40/30/20/10 twice give 20/15/10/5 % twice, within one frame.
func TestWDRRShares(t *testing.T) {
	sp := ReferenceSwitch(1<<20, nil)
	sp.Sched.WDRR = 0xff
	weights := [NumQueues]int32{10, 20, 30, 40, 10, 20, 30, 40}
	for q := range weights {
		sp.Sched.Quantum[q] = weights[q] * 64
	}
	s := oneSwitch(t, 1, sp, ReferenceNIC(nil), link100, Options{})
	p := s.PortOf(0, 0)
	pt := &s.ports[p]
	sizes := [NumQueues]uint16{64, 1500, 700, 1048, 9000, 256, 512, 4200}
	for q := range weights {
		inject(s, p, int32(q), sizes[q])
	}
	var sent [NumQueues]int64
	total := int64(0)
	for total < 200e6 {
		q := s.pick(int32(p), pt, 0xff)
		sent[q] += int64(sizes[q])
		total += int64(sizes[q])
	}
	for q := range weights {
		want := total * int64(weights[q]) / 200
		// A round moves every queue by its quantum; a share is exact to a frame of
		// its own and one of the largest.
		if d := sent[q] - want; d > 9000+int64(sizes[q]) || d < -9000-int64(sizes[q]) {
			t.Errorf("queue %d sent %d bytes, its share is %d", q, sent[q], want)
		}
	}
}

func TestStrictPriorityStarves(t *testing.T) {
	sp := ReferenceSwitch(1<<20, nil)
	sp.Sched.WDRR = 1<<3 | 1<<4
	sp.Sched.Low = 1
	s := oneSwitch(t, 1, sp, ReferenceNIC(nil), link100, Options{})
	pt := &s.ports[0]
	for q := range int32(NumQueues) {
		inject(s, 0, q, 100)
	}
	for _, c := range []struct {
		mask uint8
		want int32
	}{{0xff, 7}, {0x7f, 6}, {0x3f, 5}, {0x07, 2}, {0x03, 1}, {0x09, 3}, {0x11, 4}} {
		if q := s.pick(0, pt, c.mask); q != c.want {
			t.Errorf("mask %#x: queue %d, want %d", c.mask, q, c.want)
		}
	}
}

func TestDefaultDSCPMap(t *testing.T) {
	m := DefaultDSCP()
	for d := range m {
		if m[d] != uint8(d/8) {
			t.Errorf("DSCP %d maps to queue %d", d, m[d])
		}
	}
}
