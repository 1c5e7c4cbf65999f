package model

// flowWatch is what tuners know of the traffic in each queue of a switch, interval by interval.
type flowWatch struct {
	elephant int64 // a flow that sent more than so many bytes is one
	queue    []watchedQueue
}

type watchedQueue struct {
	flows        map[FlowID]watchedFlow // nil until the first frame
	turn         uint32                 // counts intervals
	n            int                    // flows that sent in this interval
	bytes, whole int64                  // of elephants, and of all, in this interval
	frames       int64                  // in this interval
	depth        int64                  // sum of what each of them left behind it in the queue
}

type watchedFlow struct {
	bytes int64
	turn  uint32 // in which it last sent, plus 1
}

func newFlowWatch(sw Switch, elephant Size) flowWatch {
	return flowWatch{int64(elephant), make([]watchedQueue, sw.Ports()*NumQueues)}
}

// leave counts a frame that leaves.
func (w *flowWatch) leave(sw Switch, f Frame, out PortID, queue int, depth int64) {
	if !f.IsData() {
		return
	}
	e := &w.queue[int(out-sw.Port(0))*NumQueues+queue]
	if e.flows == nil {
		e.flows = map[FlowID]watchedFlow{}
	}
	size := int64(f.Size())
	k := e.flows[f.Flow()]
	if k.turn != e.turn+1 {
		k.turn = e.turn + 1
		e.n++
	}
	k.bytes += size
	e.flows[f.Flow()] = k
	e.whole += size
	e.frames++
	e.depth += depth
	if k.bytes > w.elephant {
		e.bytes += size
	}
}

// next begins an interval.
func (e *watchedQueue) next() {
	e.turn++
	e.n, e.bytes, e.whole, e.frames, e.depth = 0, 0, 0, 0, 0
	if len(e.flows) > 65536 { // a switch forgets
		clear(e.flows)
	}
}
