package hostnotify

import (
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// maxFrame is the longest frame built, in bytes with its Ethernet header.
const maxFrame = fabric.EthernetHeaderLen + snsd.MaxPayload

// slabSize is how much memory is taken at once for frames.
const slabSize = 64 << 10

func (p *port) waits() bool {
	for c := range p.rings {
		if len(p.rings[c]) > 0 {
			return true
		}
	}
	return false
}

// drain builds frames for the port until nothing waits or its pace forbids more.
func (n *Notifier) drain(p *port) {
	for p.waits() {
		if p.pace.ready(len(p.rings[newInactive]) > 0) > n.now {
			return
		}
		first := len(n.packed)
		frame := n.frame(p)
		if frame == nil {
			continue // what waited was refused and is gone
		}
		p.pace.note(n.now)
		n.counters.Frames++
		n.counters.Bytes += uint64(len(frame))
		n.out = append(n.out, Out{Port: p.name, Frame: frame, first: first, end: len(n.packed)})
	}
}

// frame fills one frame: the more urgent classes first, then whatever fits beside
// them; within a class one notice a host in turn. nil when no notice could be packed.
func (n *Notifier) frame(p *port) []byte {
	if len(n.slab) < maxFrame {
		n.slab = make([]byte, slabSize)
	}
	head := fabric.AppendEthernet(n.slab[0:0:maxFrame], fabric.MACNTS, p.mac, fabric.EtherTypeNTS)
	n.packer.Start(head, snsd.Version)
	n.packer.Offer(snsd.ExtFence)
	n.packer.Bound(p.mtu)
	for c := range p.rings {
		if !n.fill(p, class(c)) {
			break
		}
	}
	b := n.packer.Finish()
	n.slab = n.slab[len(b):]
	return b[:len(b):len(b)]
}

// fill adds notices of one class; false when the frame is full.
func (n *Notifier) fill(p *port, c class) bool {
	for len(p.rings[c]) > 0 {
		s := p.rings[c][0]
		x := s.waiting[c].head
		notice := n.notice(x)
		ok, err := n.packer.Add(&notice)
		if err != nil && notice.Service.NQN != "" { // better told without a name than not at all
			notice.Service.NQN = ""
			n.counters.Unnamed++
			ok, err = n.packer.Add(&notice)
		}
		if err != nil {
			n.counters.Unencodable++
			n.remove(x)
			continue
		}
		if !ok {
			return false
		}
		s.leave(c)
		n.unqueue(x)
		if c.isNew() {
			n.sent(x, &notice, p)
		} else {
			n.resent(x, p)
		}
		n.enter(s, c)
	}
	return true
}

// notice builds what the pair is to be told: something new, or the last one again. That a
// subject is inactive is said of the service that the host was told of.
func (n *Notifier) notice(p *pair) snsd.Notice {
	v, seq, svc := p.waits.verdict, n.seq, p.told.service
	var fence *snsd.Fence
	switch {
	case !p.waits.class.isNew():
		v, seq = p.told.verdict, p.told.seq
		if p.sub.understandsFences() {
			fence = p.told.fence
		}
	case v.isActive():
		svc = p.subj.service
	default:
		fence = n.fenceOf(p, v)
	}
	return snsd.Notice{Subject: p.subj.addr, Host: p.sub.addr, Seq: seq, State: v.state, Reason: v.reason, Service: *svc, Fence: fence}
}

// sent notes that a new notice is in a frame.
func (n *Notifier) sent(p *pair, notice *snsd.Notice, via *port) {
	n.seq++
	if n.observing {
		p.observe()
	}
	p.told.verdict, p.told.seq = p.waits.verdict, notice.Seq
	if p.told.isActive() {
		p.told.service, p.told.holder = p.subj.service, p.subj.holder
	}
	p.told.acked, p.told.fence, p.waits.again = false, notice.Fence, false
	p.told.at, p.flight.tries, p.flight.via = n.now, 0, via
	p.told.by, p.told.life = p.waits.by, p.waits.life
	n.packed = append(n.packed, p)
	n.launch(p)
	n.depart(p)
	n.keepPair(p)
	n.counters.Sent++
	r := Notice{
		Host: notice.Host, Subject: notice.Subject, Port: via.name, Seq: notice.Seq,
		State: notice.State, Reason: notice.Reason, Service: notice.Service, Fence: notice.Fence,
		Decided: n.time(p.waits.since), Sent: n.time(n.now),
	}
	if p.waits.by != nil {
		r.Cause, r.Skewed = p.waits.by.Cause, p.waits.by.skewed
		p.waits.by = nil
	}
	if p.told.isActive() {
		n.counters.SentActive++
	}
	p.told.rec = n.history.add(r)
}

// resent notes that a notice is in a frame once more.
func (n *Notifier) resent(p *pair, via *port) {
	p.flight.tries++
	p.flight.via = via
	n.depart(p)
	n.counters.Retried++
	n.history.retry(p.told.rec, via.name)
}
