package linux

import (
	"sync"
	"time"

	"github.com/openinof/inof/fabric"
)

// Who has an address is asked rarely, so the socket that takes the answers is there only while
// something is asked. It has to be shown all traffic of the interface: on a port of a bridge
// the kernel gives frames to the bridge before it gives them to a socket of one EtherType.

// askFor is how long answers are taken after a question.
const askFor = 5 * time.Second

// askSocket gives the socket by which questions leave and answers come, nil when it cannot
// be opened.
func (p *port) askSocket() *Socket {
	s := p.asking.Load()
	if s == nil {
		s = p.openAsk()
	}
	if s != nil {
		_ = s.SetDeadline(time.Now().Add(askFor))
	}
	return s
}

// openAsking opens that socket and receives from it until its deadline or the port's end.
func (p *port) openAsking(frames chan<- fabric.Frame, rate int, wg *sync.WaitGroup) *Socket {
	p.ending.Lock()
	defer p.ending.Unlock()
	nts := p.nts.Load()
	if nts == nil || p.stopped() {
		return nil
	}
	s, err := openSocket(p.name, p.index, nts.MAC(), []uint16{fabric.EtherTypeARP, fabric.EtherTypeIPv6}, []fabric.MAC{fabric.MACAllNodes})
	if err != nil {
		p.count.errors.Add(1)
		p.log.Warn("cannot ask hosts on a port whether they are there", "port", p.name, "err", err)
		return nil
	}
	_ = s.SetDeadline(time.Now().Add(askFor))
	p.asking.Store(s)
	wg.Go(func() {
		defer s.Close()
		p.receive(s, &p.count.answers, frames, newBucket(rate, time.Now()))
		p.asking.CompareAndSwap(s, nil)
	})
	return s
}
