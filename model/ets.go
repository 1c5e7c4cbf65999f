package model

import (
	"fmt"
	"math/bits"
)

var etsMechanism = Mechanism{Part: PartScheduler, Kind: "ets",
	About: "enhanced transmission selection (802.1Qaz): strict queues first, then two groups that share by weight, each queue of a group in its turn",
	New:   func() Settings { return &ETS{Strict: []int{6, 7}, Other: []int{3}, Weight: 50} }}

// ETS is a scheduler of priority groups.
type ETS struct {
	Strict []int `yaml:"strict" about:"queues that go before all others, the higher first"`
	Other  []int `yaml:"group" about:"queues of the second group; the first has what is left"`
	Weight int   `yaml:"weight" about:"percent of the rest of the link for the second group"`
}

// Check refuses queues that there are not.
func (c *ETS) Check() error {
	for _, q := range append(append([]int{}, c.Strict...), c.Other...) {
		if q < 0 || q >= NumQueues {
			return fmt.Errorf("ets: queue %d, want 0..7", q)
		}
	}
	if c.Weight < 1 || c.Weight > 99 || c.mask(c.Strict)&c.mask(c.Other) != 0 {
		return fmt.Errorf("ets: weight %d, want 1..99, and no queue both strict and in a group", c.Weight)
	}
	return nil
}

func (*ETS) mask(queues []int) (m uint8) {
	for _, q := range queues {
		m |= 1 << q
	}
	return m
}

// Scheduler makes that of a switch.
func (c *ETS) Scheduler(sw Switch) Scheduler {
	return &ets{strict: c.mask(c.Strict), group: [2]uint8{^c.mask(c.Strict) &^ c.mask(c.Other), c.mask(c.Other)},
		quantum: [2]int64{int64(100-c.Weight) * 64, int64(c.Weight) * 64}, port: make([]etsPort, sw.Ports())}
}

type ets struct {
	strict  uint8
	group   [2]uint8
	quantum [2]int64 // bytes a round
	port    []etsPort
}

type etsPort struct {
	turn    uint8 // the group being served
	last    [2]uint8
	deficit [2]int64
}

// Pick gives the highest strict queue, else the next queue of the group whose turn it is; a
// group may overdraw and owes it to the next rounds.
func (e *ets) Pick(sw Switch, p PortID, ready uint8) int {
	if m := ready & e.strict; m != 0 {
		return bits.Len8(m) - 1
	}
	t := &e.port[p-sw.Port(0)]
	for g := range e.group {
		if ready&e.group[g] == 0 {
			t.deficit[g] = min(t.deficit[g], 0) // an idle group saves nothing
		}
	}
	for ready&e.group[t.turn] == 0 || t.deficit[t.turn] <= 0 {
		t.turn = 1 - t.turn
		if ready&e.group[t.turn] != 0 {
			t.deficit[t.turn] += e.quantum[t.turn]
		}
	}
	m := ready & e.group[t.turn]
	after := m &^ (1<<(t.last[t.turn]+1) - 1) // queues above the last one, else from the lowest again
	if after == 0 {
		after = m
	}
	q := bits.TrailingZeros8(after)
	t.last[t.turn] = uint8(q)
	t.deficit[t.turn] -= int64(sw.HeadSize(p, q))
	return q
}
