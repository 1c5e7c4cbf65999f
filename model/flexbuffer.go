package model

import "fmt"

var flexBufferMechanism = Mechanism{Part: PartTuner, Kind: "flex-buffer",
	About: "takes buffer from the elephants' queue while that of mice is short of it, and gives it back slowly",
	New: func() Settings {
		return &FlexBuffer{Every: Millisecond, Back: 100 * Millisecond, Elephants: 3, Mice: 4, Floor: 5}
	}}

// FlexBuffer moves the share of the buffer between two classes. Vendors publish no law; this
// one is ours. It needs the cell-based buffer with dynamic limits.
type FlexBuffer struct {
	Every     Time  `yaml:"every" about:"time between two looks"`
	Back      Time  `yaml:"back" about:"the elephants' share grows by a step when mice wanted for nothing for this long"`
	Elephants int   `yaml:"elephants" about:"queue that gives"`
	Mice      int   `yaml:"mice" about:"queue that gets"`
	Floor     uint8 `yaml:"floor" about:"least alpha index of the elephants; 5 is a quarter of what is free"`
}

// Check refuses what cannot run.
func (c *FlexBuffer) Check() error {
	if c.Every <= 0 || c.Back <= 0 || c.Elephants < 0 || c.Elephants >= NumQueues || c.Mice < 0 || c.Mice >= NumQueues || c.Elephants == c.Mice || c.Floor > 12 {
		return fmt.Errorf("flex-buffer: want times above 0, two queues of 0..7 and an alpha index of 0..12")
	}
	return nil
}

// Period is that of its looks.
func (c *FlexBuffer) Period() Time { return c.Every }

// Tuner makes that of a switch.
func (c *FlexBuffer) Tuner(sw Switch) (Tuner, error) {
	if sw.s.switches[sw.i].mmu != MMUCells {
		return nil, fmt.Errorf("flex-buffer needs the cell-based buffer model")
	}
	limit, xoff := sw.Alphas(c.Elephants)
	return &flexBuffer{par: c, limit: limit, xoff: xoff, drops: make([]uint64, sw.Ports())}, nil
}

type flexBuffer struct {
	par         *FlexBuffer
	limit, xoff uint8 // of the elephants, as configured
	down        uint8 // steps taken
	want        Time  // when mice wanted last
	drops       []uint64
	steps       uint64
}

// Tick takes or gives a step.
func (b *flexBuffer) Tick(sw Switch) {
	short := false
	for k := range sw.Ports() {
		p := sw.Port(k)
		if n := sw.QueueDrops(p, b.par.Mice); n != b.drops[k] {
			b.drops[k], short = n, true
		}
		if limit := sw.QueueLimit(p, b.par.Mice); sw.QueueDepth(p, b.par.Mice)*5 > limit*4 {
			short = true
		}
	}
	now := sw.Now()
	switch {
	case short:
		b.want = now
		if b.lowest() > b.par.Floor {
			b.down++
			b.steps++
		}
	case b.down > 0 && now-b.want >= b.par.Back:
		b.want = now
		b.down--
	default:
		return
	}
	sw.SetAlphas(b.par.Elephants, b.limit-min(b.down, b.limit), b.xoff-min(b.down, b.xoff))
}

// lowest gives the smaller of the two indices that are in force.
func (b *flexBuffer) lowest() uint8 { return max(b.limit, b.xoff) - min(b.down, max(b.limit, b.xoff)) }

func (b *flexBuffer) Counters(put func(string, uint64)) { put("flex-buffer.steps", b.steps) }
