package hostnotify

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// A host whose own port lost its link knows that, but not what is fenced: it is notified of that
// over another port where a host of the same NQN is, if its agent understands fences. Such a notice
// names the address on the dead port, and is repeated until it is acked.

const (
	maxDetours  = 1024
	detourEvery = 250 * time.Millisecond
	detourTries = 40
)

// detour is a notice of a fence that goes over the port of another address of the host.
type detour struct {
	host, subject netip.Addr
	via           netip.Addr // a subscriber on another port
	fence         snsd.Fence
	seq           uint32
	due           stamp
	tries         int
}

// Detour has a host on a port that is down notified that it is fenced from a subject.
func (n *Notifier) Detour(host, subject netip.Addr, f snsd.Fence, now time.Time) {
	n.touch(now)
	h, known := n.dir.Host(host)
	if s := n.subs[host]; !known || h.NQN == "" || s != nil && s.out != nil || host.Is4() != subject.Is4() {
		return
	}
	if state, why := n.dir.State(host); state == snsd.Active || why.Disconnects() {
		return
	}
	for _, s := range n.order {
		other, known := n.dir.Host(s.addr)
		if s.addr == host || !known || other.NQN != h.NQN || !s.understandsFences() {
			continue
		}
		n.detours = slices.DeleteFunc(n.detours, func(d *detour) bool { return d.host == host && d.subject == subject })
		if len(n.detours) >= maxDetours {
			n.counters.DetoursRefused++
			return
		}
		n.counters.Detours++
		n.detours = append(n.detours, &detour{host: host, subject: subject, via: s.addr, fence: f, seq: n.seq, due: n.now})
		n.seq++
		return
	}
}

// sendDetours appends the frames that are due.
func (n *Notifier) sendDetours() {
	n.detours = slices.DeleteFunc(n.detours, func(d *detour) bool {
		s := n.subs[d.via]
		state, _ := n.dir.State(d.host)
		return s == nil || !s.understandsFences() || state == snsd.Active || d.due <= n.now && d.tries >= detourTries
	})
	for _, d := range n.detours {
		p := n.subs[d.via].out.port
		if d.due > n.now || !p.up || p.pace.ready(true) > n.now {
			continue
		}
		d.due, d.tries = n.now+stamp(detourEvery), d.tries+1
		notice := snsd.Notice{Subject: d.subject, Host: d.host, Seq: d.seq, State: snsd.Inactive, Reason: snsd.ReasonLinkDown, Fence: &d.fence}
		if subject, known := n.dir.Host(d.subject); known {
			notice.Service = subject.Service
		}
		n.packer.Start(fabric.AppendEthernet(make([]byte, 0, maxFrame), fabric.MACNTS, p.mac, fabric.EtherTypeNTS), snsd.Version)
		n.packer.Offer(snsd.ExtFence)
		if ok, err := n.packer.Add(&notice); err != nil || !ok {
			n.counters.Unencodable++
			d.tries = detourTries
			continue
		}
		p.pace.note(n.now)
		frame := n.packer.Finish()
		n.counters.Frames++
		n.counters.Bytes += uint64(len(frame))
		n.out = append(n.out, Out{Port: p.name, Frame: frame, first: len(n.packed), end: len(n.packed)})
	}
}

// detoursDue is when the next one is to be sent; never: none is.
func (n *Notifier) detoursDue() stamp {
	due := never
	for _, d := range n.detours {
		if s := n.subs[d.via]; s != nil && s.out != nil {
			at := max(d.due, s.out.port.pace.ready(true))
			if due == never || at < due {
				due = at
			}
		}
	}
	return due
}

// DetourAcked reports whether an ack is that of a notice that went over the port to that machine for
// an address on another one.
func (n *Notifier) DetourAcked(port string, mac fabric.MAC, a snsd.Ack) bool {
	for i, d := range n.detours {
		s := n.subs[d.via]
		if d.host == a.Host && d.subject == a.Subject && d.seq == a.Seq && s != nil && s.out != nil && s.out.port.name == port && s.out.mac == mac {
			n.detours = slices.Delete(n.detours, i, i+1)
			n.counters.DetoursAcked++
			return true
		}
	}
	return false
}
