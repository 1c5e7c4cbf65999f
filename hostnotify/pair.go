package hostnotify

import (
	"net/netip"

	"github.com/openinof/inof/snsd"
)

// subject is an address of which some local host was told, or is about to be.
type subject struct {
	addr    netip.Addr
	service *snsd.Service // the last known one; what it points at does not change
	why     snsd.Reason   // of its withdrawal, while it is not known
	device  netip.Addr    // where it is attached, or was last
	moves   uint32        // as the Directory counted last
	holder  uint32        // number of the holder that has the address, as far as is known here
	pairs   []*pair
	// row: there is one of it among the rows; unkept: it has changed since.
	row, unkept bool
}

// pair is one local host and one subject.
type pair struct {
	sub  *subscriber
	subj *subject
	atS  int32 // index in subj.pairs
	atL  int32 // index in sub.list

	told   told     // what the host was told last
	heard  *told    // what it really heard, while told was only recorded (observe.go); nil: the same
	waits  waiting  // what it waits to be told
	flight underway // what was told, while it is true and not acked

	ended  bool // nothing more to tell of this pair once the host acked that it is inactive
	kept   bool // ended, but the host keeps trying: in Notifier.gone
	row    bool // there is one of it among the rows
	unkept bool // it has changed since

	prev, next *pair // in a queue, among those under way, or in Notifier.gone
	mark       uint32
}

// told is what a host was told last of a subject.
type told struct {
	verdict
	service *snsd.Service // when it was last told active
	holder  uint32        // the subject's then
	seq     uint32
	acked   bool
	fence   *snsd.Fence // as the notice carried it; nil: it did not
	// What caused the notice, the subscriber's life then, and when the first frame left; never
	// where that is not known.
	by   *cause
	life uint32
	at   stamp
	rec  uint64 // of the history
}

// waiting is what a host waits to be told of a subject, or to be told again.
type waiting struct {
	verdict
	class class  // the queue it waits in
	again bool   // to be told although it was told before (a zone query)
	life  uint32 // the subscriber's, then; another one if it could not be told then
	by    *cause // nil: no event
	since stamp
}

// underway is a notice under way: told, not acked, and still true, so it is repeated.
type underway struct {
	on    bool
	with  *agent    // whose account it went on last; nil: none in this life of the process
	in    *pairList // of that agent's, where it waits for its ack; nil: in none
	left  stamp     // when it left last
	tries int32     // retries so far
	via   *port     // the port it went through last
}

// observe notes what the host has really heard, when the first notice to it is only recorded.
func (p *pair) observe() {
	if p.heard == nil {
		was := p.told
		p.heard = &was
	}
}

// lasting is what outlives the process: what the host has really heard.
func (p *pair) lasting() *told {
	if p.heard != nil {
		return p.heard
	}
	return &p.told
}

func (s *subject) know(svc snsd.Service) {
	if *s.service != svc {
		s.service = &svc
	}
}

func (n *Notifier) addPair(s *subscriber, addr netip.Addr) *pair {
	subj := n.subjects[addr]
	if subj == nil {
		subj = &subject{addr: addr, service: new(snsd.Service)}
		n.subjects[addr] = subj
	}
	p := &pair{sub: s, subj: subj, atS: int32(len(subj.pairs)), atL: int32(len(s.list)),
		told: told{service: subj.service, holder: subj.holder, rec: noRecord}, waits: waiting{class: idle}}
	subj.pairs = append(subj.pairs, p)
	s.list = append(s.list, p)
	s.pairs[addr] = p
	n.pairs++
	return p
}

// unlink takes a pair out of the tables. It reports whether it was the last one of its subject.
func (n *Notifier) unlink(p *pair) (last bool) {
	s, subj := p.sub, p.subj
	end := subj.pairs[len(subj.pairs)-1]
	subj.pairs[p.atS], end.atS = end, p.atS
	subj.pairs[len(subj.pairs)-1] = nil
	if subj.pairs = subj.pairs[:len(subj.pairs)-1]; len(subj.pairs) == 0 {
		last = true
		delete(n.subjects, subj.addr)
	}
	end = s.list[len(s.list)-1]
	s.list[p.atL], end.atL = end, p.atL
	s.list[len(s.list)-1] = nil
	s.list = s.list[:len(s.list)-1]
	delete(s.pairs, subj.addr)
	n.pairs--
	return last
}

// verdict is what a host was told, or should be told, of a subject. The zero value is
// nothing at all.
type verdict struct {
	said   bool
	state  snsd.State
	reason snsd.Reason
}

func (v verdict) none() bool { return !v.said }

func (v verdict) isActive() bool { return v.said && v.state == snsd.Active }
