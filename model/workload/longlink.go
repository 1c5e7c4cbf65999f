package workload

import (
	"fmt"

	"github.com/openinof/inof/model"
)

// LongLink is two sites: a sender and switch A here, switch B and a receiver there,
// all at one speed. The receiver stands still now and then, so that B's ingress
// queue from the long link fills, stops A, and must neither overflow nor run dry.
type LongLink struct {
	Rate     model.Rate
	Delay    model.Time // one way, of the long link
	MTU      int32      // bytes of a full frame on the wire
	ABS      bool       // point braking instead of XOFF/XON
	Period   model.Time // of point braking
	Over     int64      // its threshold in bytes
	Xoff     int64      // bytes (classic)
	Headroom int64      // bytes beyond (classic)
	Buffer   int64      // bytes of B's ingress queue (point braking)
	Reaction model.Time // of both switches
	Pattern  Drain
	Span     model.Time // 0 = 60 round trips, at least 5 ms
	Seed     uint64
}

// LongCell is the size of the buffer cells of both switches in bytes.
const LongCell = 64

// Drain is how the receiver behaves: stopped for Off out of each Every.
type Drain struct {
	Name       string
	Off, Every model.Time
	Slow       model.Rate // if set the receiver always takes frames at this rate instead
}

// Drains gives patterns that are hard in different ways, relative to a round trip.
func Drains(rtt model.Time, rate model.Rate) []Drain {
	return []Drain{
		{Name: "long stops", Off: 3 * rtt, Every: 7 * rtt},
		{Name: "stops of a round trip", Off: rtt, Every: 2 * rtt},
		{Name: "short stops", Off: rtt / 10, Every: rtt / 4},
		{Name: "half speed", Slow: rate / 2},
		{Name: "almost full speed", Slow: rate * 9 / 10},
	}
}

// LongResult is what a long link did.
type LongResult struct {
	Drops uint64  `json:"drops"`
	Use   float64 `json:"use"`  // of what the receiver could have taken, after the first three round trips
	Peak  int64   `json:"peak"` // bytes in B's ingress queue
	Xoff  uint64  `json:"xoff"` // PFC frames with a time that B sent
}

// Run simulates it.
func (l LongLink) Run() (LongResult, error) {
	s, in, out, err := l.build()
	if err != nil {
		return LongResult{}, err
	}
	rtt := 2 * l.Delay
	span := l.Span
	if span == 0 {
		span = max(60*rtt, 5*model.Millisecond) // so that what a slow receiver buffers does not count
	}
	h := &stops{l: l, ep: 1, end: span}
	s.SetHandler(h)
	if l.Pattern.Slow == 0 {
		s.At(2*rtt, 0)
	}
	if err := s.Run(3 * rtt); err != nil {
		return LongResult{}, err
	}
	a, pausedA := s.Queue(out, 3), s.Now()
	if err := s.Run(span); err != nil {
		return LongResult{}, err
	}
	b := s.Queue(out, 3)
	open := s.Now() - pausedA
	rate := float64(l.Rate)
	if l.Pattern.Slow > 0 {
		rate = float64(l.Pattern.Slow)
	} else {
		open -= b.Paused - a.Paused
	}
	q := s.Queue(in, 3)
	// A frame that is being sent when a stop begins ends within it, so that a share of just above 1
	// comes out.
	res := LongResult{Use: min(1, float64(b.TxBytes-a.TxBytes)*8/rate/open.Seconds()), Peak: q.PeakIngress + q.PeakHeadroom, Xoff: q.TxXoff}
	for _, n := range s.Totals().Dropped {
		res.Drops += n
	}
	return res, s.CheckConservation()
}

// build gives the simulation, B's port on the long link and its port to the receiver.
func (l LongLink) build() (s *model.Sim, in, out model.PortID, err error) {
	const header = 48
	nic := model.ReferenceNIC(nil)
	nic.MTU, nic.Header, nic.AckTOS = l.MTU-header, header, 7<<5
	nic.PFC.Reaction = l.Reaction
	rx := nic
	if l.Pattern.Slow > 0 {
		// Deep enough that the receiver itself never runs dry while it wakes B.
		rx.RxXoff = 1<<16 + l.Rate.Bytes(10*l.Reaction)
		rx.RxRate, rx.RxBuffer = l.Pattern.Slow, 4*rx.RxXoff
	}
	near := model.SwitchProfile{Name: "near", MMU: model.MMUCells, Buffer: 64 << 20, Lossless: 1 << 3,
		PFC: model.PFC{Reaction: l.Reaction}, Cells: model.CellMMU{Cell: LongCell, Headroom: 1 << 20, Xoff: 1 << 20, XonOffset: 1 << 16, LimitAlpha: 7}}
	far := near
	far.Name = "far"
	far.PFC.Quanta = 65535
	far.Cells.Headroom, far.Cells.HeadroomPool = int32(l.Headroom), l.Headroom
	far.Cells.Xoff, far.Cells.XonOffset = l.Xoff, 2*l.MTU
	far.Buffer = l.Xoff + l.Headroom + 128
	if l.ABS {
		far.PFC = model.PFC{Reaction: l.Reaction, ABS: 1 << 3, ABSEvery: l.Period, ABSOver: l.Over, ABSRTT: 2*l.Delay + l.Reaction}
		far.Cells = model.CellMMU{Cell: LongCell, LimitAlpha: 7}
		far.Buffer = l.Buffer
	}
	net := &model.Network{}
	a, b := net.AddSwitch("A", near), net.AddSwitch("B", far)
	tx, rc := net.AddHost("sender", nic), net.AddHost("receiver", rx)
	short := model.LinkSpec{Rate: l.Rate, Delay: 50 * model.Nanosecond}
	for _, c := range []struct {
		x, y model.NodeID
		l    model.LinkSpec
	}{{tx, a, short}, {a, b, model.LinkSpec{Rate: l.Rate, Delay: l.Delay}}, {rc, b, short}} {
		if _, err := net.Connect(c.x, c.y, c.l); err != nil {
			return nil, 0, 0, err
		}
	}
	if s, err = net.Build(model.Options{Seed: l.Seed}); err != nil {
		return nil, 0, 0, fmt.Errorf("long link: %w", err)
	}
	if _, err = s.AddFlow(model.FlowSpec{Src: 0, Dst: 1, Bytes: model.Forever, TOS: DataTOS}); err != nil {
		return nil, 0, 0, err
	}
	return s, s.PortOf(b, 0), s.PortOf(b, 1), nil
}

// stops makes the receiver stand still in its pattern.
type stops struct {
	l   LongLink
	ep  model.EndpointID
	end model.Time
}

func (h *stops) FlowDone(*model.Sim, model.FlowID) {}

func (h *stops) Control(*model.Sim, model.PortID, []byte) {}

func (h *stops) Timer(s *model.Sim, _ uint64) {
	p := h.l.Pattern
	s.Storm(h.ep, 1<<3, p.Off, s.Now()+p.Off)
	if next := s.Now() + p.Every; next < h.end {
		s.At(next, 0)
	}
}
