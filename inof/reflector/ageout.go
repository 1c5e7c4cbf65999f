package reflector

import (
	"container/heap"
	"math"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// What is left of a device whose grace time is over is dropped a few hosts at a time, in order: all
// at once would take so long that a fault elsewhere waits for it. A device that is back before the
// last of them keeps those that are left; it says everything again, as it does after the last.
// What a device does not say again is dropped in the same way: its sync has not ended before.

const (
	// dropStep is how many hosts a Tick drops.
	dropStep = smallChange
	// dropPause is how long after it the next ones go: others have as much time meanwhile.
	dropPause = time.Millisecond
)

// dropMost is how many hosts are dropped in one Tick.
func (r *Reflector) dropMost() int {
	switch {
	case !r.cfg.Paced:
		return math.MaxInt
	case r.cfg.SyncStep > 0:
		return r.cfg.SyncStep
	}
	return dropStep
}

// ageOut drops hosts of devices whose grace time is over, and the devices that have none left.
func (r *Reflector) ageOut(now time.Time) {
	due := r.due(now, func(d *device) time.Time { return d.expires })
	if len(due) == 0 {
		return
	}
	t := r.begin()
	first := now
	room := r.dropMost()
	var over []*device
	for _, d := range due {
		if room == 0 {
			break
		}
		if d.expires.Before(first) {
			first = d.expires
		}
		if d.ages == nil {
			r.age(d)
			room = max(0, room-len(d.ages)/passedOver)
		}
		for ; room > 0 && len(d.ages) > 0; room-- {
			k := heap.Pop(&d.ages).(zone.HostKey)
			if _, still := d.hosts[k]; still { // or it was excluded meanwhile
				r.removeHost(t, d, k, snsd.ReasonAgedOut)
				r.counters.AgedOut++
			}
		}
		if d.empty() {
			over = append(over, d)
		}
	}
	r.commit(t, r.eventCause(first, now))
	for _, d := range over {
		r.forget(d)
	}
	if len(over) < len(due) {
		r.dropped = now
	}
}

// beginSweep finds what a device has not said in this session, and gives how many hosts that is.
func (r *Reflector) beginSweep(d *device) int {
	r.work += len(d.hosts) / passedOver
	d.unsaid = nil
	for k, gen := range d.hosts {
		if gen != d.gen {
			d.unsaid = append(d.unsaid, k)
		}
	}
	heap.Init(&d.unsaid)
	return len(d.unsaid)
}

// sweep removes some of that, as aged out. In order: who has an address may depend on which claim
// goes first.
func (r *Reflector) sweep(t *change, d *device, most int) {
	for ; most > 0 && len(d.unsaid) > 0; most-- {
		k := heap.Pop(&d.unsaid).(zone.HostKey)
		if gen, still := d.hosts[k]; still && gen != d.gen { // or it was said meanwhile
			r.removeHost(t, d, k, snsd.ReasonAgedOut)
			r.counters.Swept++
		}
	}
}

// age begins to drop the hosts of a device: from now on it can resume nothing.
func (r *Reflector) age(d *device) {
	d.whole, d.clean = false, false
	r.moves++
	r.ageing++
	d.ages = make(keyHeap, 0, len(d.hosts))
	for k := range d.hosts {
		d.ages = append(d.ages, k)
	}
	heap.Init(&d.ages)
}

// keyHeap are keys of which the next one is found in little time: to sort them all takes longer than
// a step may.
type keyHeap []zone.HostKey

func (h keyHeap) Len() int           { return len(h) }
func (h keyHeap) Less(i, j int) bool { return zone.CompareKeys(h[i], h[j]) < 0 }
func (h keyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *keyHeap) Push(k any)        { *h = append(*h, k.(zone.HostKey)) }

func (h *keyHeap) Pop() any {
	last := len(*h) - 1
	k := (*h)[last]
	*h = (*h)[:last]
	return k
}
