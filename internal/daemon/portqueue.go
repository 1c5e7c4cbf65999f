package daemon

import (
	"sync"

	"github.com/openinof/inof/fabric"
)

// maxPortEvents is how many events of ports wait for the owner before the dataplane waits, and
// messages of the kernel in its socket.
const maxPortEvents = 1024

// portQueue holds events of ports in their order.
type portQueue struct {
	ready chan struct{} // has a value when there may be one to take
	room  chan struct{} // has a value for each

	mu   sync.Mutex
	list []fabric.Event
}

func newPortQueue() *portQueue {
	return &portQueue{ready: make(chan struct{}, 1), room: make(chan struct{}, maxPortEvents)}
}

// put waits for room; false: stop was closed meanwhile.
func (q *portQueue) put(ev fabric.Event, stop <-chan struct{}) bool {
	select {
	case q.room <- struct{}{}:
	case <-stop:
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, ev)
	return true
}

func (q *portQueue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *portQueue) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list) > 0
}

func (q *portQueue) take() (ev fabric.Event, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) == 0 {
		return ev, false
	}
	ev = q.list[0]
	if q.list = q.list[1:]; len(q.list) == 0 {
		q.list = nil
	}
	<-q.room
	return ev, true
}
