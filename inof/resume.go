package inof

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Stamp numbers the state of an origin: the start of its process and the number of
// its change. The zero Stamp is not known.
type Stamp struct {
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// Known tells whether the stamp says anything.
func (s Stamp) Known() bool { return s.Epoch != 0 }

// Before tells whether s is older than o; false when one of them is not known. A
// later start of a process has a greater epoch.
func (s Stamp) Before(o Stamp) bool {
	if !s.Known() || !o.Known() {
		return false
	}
	return cmp.Or(cmp.Compare(s.Epoch, o.Epoch), cmp.Compare(s.Seq, o.Seq)) < 0
}

// ResumeKind tells how one direction of a session began.
type ResumeKind struct {
	Done    bool   // it is known
	Resumed bool   // only what was missed was sent; false: everything
	Why     string // for a person
}

func (k ResumeKind) String() string {
	switch {
	case !k.Done:
		return ""
	case k.Resumed:
		return "resumed"
	}
	return "full"
}

func resumed(after uint64) ResumeKind {
	return ResumeKind{Done: true, Resumed: true, Why: fmt.Sprintf("after change %d", after)}
}

func full(why string) ResumeKind { return ResumeKind{Done: true, Why: why} }

// noEpoch is the epoch of no process: epochs are start times.
const noEpoch = 1

// Reasons for a full sync.
const (
	whyFirst   = "nothing to resume from"
	whyEpoch   = "the sender has restarted since"
	whyTrimmed = "too much has changed since"
	whyForgot  = "the sender no longer follows what the receiver holds"
	whyAhead   = "the receiver has seen more than was sent"
	// The sender had started without knowing its hosts.
	whyHeldBack = "the time to hear all hosts is over"
	whyHolds    = "the sender has started without its state: nothing is removed yet"
)

// checkResume tells whether a log that begins after base and ends at seq covers
// what a receiver has missed.
func checkResume(r *Resume, epoch, base, seq uint64) ResumeKind {
	switch {
	case r == nil:
		return full(whyFirst)
	case r.Epoch != epoch:
		return full(whyEpoch)
	case r.Seq < base:
		return full(whyTrimmed)
	case r.Seq > seq:
		return full(whyAhead)
	}
	return resumed(r.Seq)
}

// maxLogged bounds how many own records that are gone a client remembers.
const maxLogged = 8192

// ownLog is what of the own records changed last with which number. It gives a
// reflector that was away the latest state of what it has missed.
type ownLog struct {
	most   int // records that are gone, about
	hosts  map[zone.HostKey]ownChange
	faults map[string]uint64
	base   uint64 // changes up to this one are no longer known
}

type ownChange struct {
	seq uint64
	why snsd.Reason // of a host that is gone
}

func newOwnLog() ownLog {
	return ownLog{hosts: map[zone.HostKey]ownChange{}, faults: map[string]uint64{}, most: maxLogged}
}

// note keeps the changes of an Update.
func (l *ownLog) note(u *Update, c *Client) {
	for i := range u.Hosts {
		l.hosts[u.Hosts[i].Host.HostKey] = ownChange{u.Seq, u.Hosts[i].Why}
	}
	for i := range u.Faults {
		l.faults[u.Faults[i].Port] = u.Seq
	}
	if len(l.hosts)+len(l.faults) > l.most+2*(len(c.hosts)+len(c.faults)) {
		l.trim(c)
	}
}

// trim forgets the records that are gone.
func (l *ownLog) trim(c *Client) {
	for k, ch := range l.hosts {
		if _, there := c.hosts[k]; !there {
			l.base = max(l.base, ch.seq)
			delete(l.hosts, k)
		}
	}
	for port, seq := range l.faults {
		if _, there := c.faults[port]; !there {
			l.base = max(l.base, seq)
			delete(l.faults, port)
		}
	}
}

// after is the present state of all that changed after a number.
func (l *ownLog) after(seq uint64, c *Client) batch {
	var b batch
	for k, ch := range l.hosts {
		if ch.seq <= seq {
			continue
		}
		r := HostRecord{Op: Withdraw, Host: zone.Host{HostKey: k}, Why: ch.why}
		if h, ok := c.hosts[k]; ok {
			r = HostRecord{Op: Put, Host: h}
		}
		b.Hosts = append(b.Hosts, r)
	}
	for port, at := range l.faults {
		if at <= seq {
			continue
		}
		f, ok := c.faults[port]
		if !ok {
			f = FaultRecord{Op: Withdraw, Device: c.self, Port: port}
		}
		b.Faults = append(b.Faults, f)
	}
	b.sort()
	return b
}

// Relies says that local hosts were told things before the start of the process: an
// End-of-Sync ends what it does not repeat. Epochs are those of the reflectors that
// were heard then.
func (c *Client) Relies(epochs map[netip.Addr]uint64) { c.relies, c.before = true, epochs }

// Epochs are those of the reflectors whose records are held, by device id. While a
// reflector that was started anew has not ended its sync, what is held is of its former
// start, or of none that is still known.
func (c *Client) Epochs() map[netip.Addr]uint64 {
	out := maps.Clone(c.before)
	for i := range c.learned.list {
		s := &c.learned.list[i]
		if !s.pos.Known() {
			continue
		}
		if out == nil {
			out = map[netip.Addr]uint64{}
		}
		switch {
		case s.clean:
			out[s.id] = s.pos.Epoch
		case out[s.id] == 0:
			out[s.id] = noEpoch
		}
	}
	return out
}
