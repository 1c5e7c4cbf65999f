package model

import (
	"math/bits"

	"github.com/openinof/inof/fabric"
)

// inferredECN is the inference mode of AI-ECN: a small network chooses one of ten levels for each
// queue, the lower threshold being 20 KB doubled so many times. Where the traffic is unlike that
// of its training for more than two of ten intervals, the heuristic mode decides.
type inferredECN struct {
	aiECN
	passive
	net     *ThresholdNet
	watch   flowWatch
	seen    []inferred
	learned uint64
	unknown uint64
}

// inferred is what is known of one queue beside what the heuristic mode knows.
type inferred struct {
	marks   uint32
	pauses  uint64
	strange uint16 // bit k: the inputs of k intervals ago were unlike those of the training
}

// strangeMost of the last strangeOf intervals may be unlike the training.
const (
	strangeOf   = 10
	strangeMost = 2
)

func (*inferredECN) marks() fabric.MarkingMode { return fabric.MarkingNN }

func (a *inferredECN) Tapped() bool { return true }

// Leave counts flows, elephants and what waits.
func (a *inferredECN) Leave(sw Switch, f Frame, _, out PortID, queue int, depth int64) {
	a.watch.leave(sw, f, out, queue, depth)
}

// Tick sets the thresholds of the queues that sent something.
func (a *inferredECN) Tick(sw Switch) {
	for i := range a.queue {
		p, q := sw.Port(i/NumQueues), i%NumQueues
		e, w, m := &a.queue[i], &a.watch.queue[i], &a.seen[i]
		sent, marks := sw.QueueSent(p, q)
		if w.frames == 0 {
			e.sent, m.marks = sent, marks
			continue
		}
		use := (sent - e.sent) * useOne / max(1, uint64(sw.Rate(p).Bytes(a.par.Every)))
		pauses := sw.PausesSent(q)
		in := a.inputs(sw.Rate(p), e.low, w, use, marks-m.marks, pauses-m.pauses)
		e.sent, m.marks, m.pauses = sent, marks, pauses
		m.strange = m.strange << 1 & (1<<strangeOf - 1)
		if !a.net.knows(&in) {
			m.strange |= 1
		}
		if a.par.Watch != nil {
			a.par.Watch(in)
		}
		if bits.OnesCount16(m.strange) > strangeMost {
			a.unknown++
			a.search(sw, e, q, use)
		} else {
			a.learned++
			e.step, e.pauses = tryMore, pauses
			e.low = a.step(e.low, a.net.level(&in))
		}
		sw.SetMarking(p, q, a.scale(sw.Rate(p), e.low), a.scale(sw.Rate(p), 4*e.low), a.par.Percent/100)
		w.next()
	}
}

// inputs describes an interval of a queue to the network.
func (a *inferredECN) inputs(rate Rate, low int64, w *watchedQueue, use uint64, marks uint32, pauses uint64) [NetInputs]int32 {
	unit := a.scale(rate, int64(a.par.Least))
	in := [NetInputs]int32{
		int32(use * NetOne / useOne),
		log2(w.depth/w.frames, max(1, unit)) / 10,
		int32(int64(marks) * NetOne / w.frames),
		log2(low-int64(a.par.Least), int64(a.par.Least)) / (netLevels - 1),
		log2(int64(w.n), 1) / 8,
		int32(w.bytes * NetOne / w.whole),
		int32(min(pauses, 10) * NetOne / 10),
	}
	for i := range in {
		in[i] = min(in[i], NetOne)
	}
	return in
}

// step moves the lower threshold towards a level, by at most one in an interval.
func (a *inferredECN) step(low int64, level int) int64 {
	want := int64(a.par.Least) << level
	return a.within(min(max(want, low/2), low*2))
}

func (a *inferredECN) Counters(put func(string, uint64)) {
	a.aiECN.Counters(put)
	put("ai-ecn.inferred", a.learned)
	put("ai-ecn.unlike-training", a.unknown)
}
