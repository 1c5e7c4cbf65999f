package hostnotify

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// Snapshot is what every host was told last, to be kept over a restart as JSON. It
// is sorted, so the same state gives the same bytes.
type Snapshot struct {
	Seq      uint32            `json:"seq"` // the next sequence number
	Subjects []SubjectSnapshot `json:"subjects"`
	Hosts    []HostSnapshot    `json:"hosts"`
}

// SubjectSnapshot is one address that some host was told of.
type SubjectSnapshot struct {
	Addr    netip.Addr   `json:"addr"`
	Service snsd.Service `json:"service"`
}

// HostSnapshot is one subscriber.
type HostSnapshot struct {
	Addr netip.Addr     `json:"addr"`
	MAC  fabric.MAC     `json:"mac"` // of the machine that was told
	Told []ToldSnapshot `json:"told"`
	// Owed is set when its port was down since it was told everything.
	Owed bool `json:"owed,omitempty"`
}

// ToldSnapshot is what a subscriber was told of one subject.
type ToldSnapshot struct {
	Subject netip.Addr  `json:"subject"` // one of Snapshot.Subjects
	State   snsd.State  `json:"state"`
	Reason  snsd.Reason `json:"reason"`
	Seq     uint32      `json:"seq"`
	Acked   bool        `json:"acked"`
	// Service is the one that the host was told, where the subject has another by now.
	Service *snsd.Service `json:"service,omitempty"`
	// Stale is set when it must be told again: the host asks and has not been answered yet.
	Stale bool `json:"stale,omitempty"`
}

// seqLeap is added to the sequence number at a restore, for the numbers that were
// used after the snapshot was taken; so is Config.FirstSeq, since two starts from
// one snapshot must not use the same numbers either: a late ack of the one would be
// taken for an ack of the other.
const seqLeap = 1 << 16

// Snapshot returns what was told. What is decided but not yet sent is not in it: it
// follows from the truth again.
func (n *Notifier) Snapshot() Snapshot {
	s := Snapshot{Seq: n.seq}
	for _, subj := range n.subjects {
		if slices.ContainsFunc(subj.pairs, func(p *pair) bool { return !p.told.none() }) {
			s.Subjects = append(s.Subjects, SubjectSnapshot{subj.addr, *subj.service})
		}
	}
	for _, sub := range n.order {
		s.Hosts = append(s.Hosts, HostSnapshot{Addr: sub.addr, MAC: sub.mac, Told: sub.snapshot(), Owed: sub.owed})
	}
	s.sort()
	return s
}

func (s *subscriber) snapshot() []ToldSnapshot {
	var told []ToldSnapshot
	for _, p := range s.list {
		if p.told.none() {
			continue
		}
		t := p.snapshot()
		t.Acked, t.Stale = p.acked, p.again || s.queryDue != never
		told = append(told, t)
	}
	return told
}

// snapshot is what the host was told last, not acked.
func (p *pair) snapshot() ToldSnapshot {
	t := ToldSnapshot{Subject: p.subj.addr, State: p.told.state, Reason: p.told.reason, Seq: p.seq}
	if *p.service != *p.subj.service {
		svc := *p.service
		t.Service = &svc
	}
	return t
}

// Sentinels that a SnapshotError wraps.
var (
	ErrNotEmpty  = errors.New("the notifier already has hosts; restore before anything else")
	ErrAddress   = errors.New("not a host address")
	ErrDuplicate = errors.New("occurs twice")
	ErrUnlisted  = errors.New("not among the snapshot's subjects, or of another address family")
	ErrLimit     = errors.New("more than the configured limit")
	ErrValue     = errors.New("no such state or reason")
)

// SnapshotError tells which entry of a snapshot was not taken.
type SnapshotError struct {
	Where string // "host", "subject", "told"
	Addr  netip.Addr
	Err   error
}

func (e *SnapshotError) Error() string {
	return fmt.Sprintf("hostnotify snapshot: %s %s: %v", e.Where, e.Addr, e.Err)
}

// Unwrap gives the sentinel.
func (e *SnapshotError) Unwrap() error { return e.Err }

// maxRestoreErrors is how many refusals are returned; all are counted.
const maxRestoreErrors = 8

// restorer collects what was wrong with a snapshot.
type restorer struct {
	n        *Notifier
	services map[netip.Addr]snsd.Service
	errs     []error
}

func (r *restorer) refuse(where string, addr netip.Addr, err error) {
	r.n.counters.RestoreBad++
	if len(r.errs) < maxRestoreErrors {
		r.errs = append(r.errs, &SnapshotError{where, addr, err})
	}
}

// Restore takes over what was told before a restart; call it before any host
// subscribes. Entries that cannot be right are left out and told by the error (a join
// of *SnapshotError); the others are taken. A restored host is told nothing until it
// registers; then what was not acked is retried. One that does not register within
// Config.RestoreGrace is forgotten.
func (n *Notifier) Restore(s Snapshot, now time.Time) error {
	n.touch(now)
	r := restorer{n: n, services: make(map[netip.Addr]snsd.Service, len(s.Subjects))}
	if len(n.subs) > 0 {
		r.refuse("host", n.order[0].addr, ErrNotEmpty)
		return errors.Join(r.errs...)
	}
	n.seq = s.Seq + seqLeap + n.cfg.FirstSeq
	for _, x := range s.Subjects {
		if _, dup := r.services[x.Addr]; dup {
			r.refuse("subject", x.Addr, ErrDuplicate)
		} else if snsd.CheckAddr(x.Addr) != nil {
			r.refuse("subject", x.Addr, ErrAddress)
		} else {
			r.services[x.Addr] = x.Service
		}
	}
	for _, h := range s.Hosts {
		r.host(h)
	}
	if len(n.subs) > 0 {
		n.graceEnd = n.now + stamp(n.cfg.RestoreGrace)
	}
	n.revision++
	return errors.Join(r.errs...)
}

func (r *restorer) host(h HostSnapshot) {
	n := r.n
	switch {
	case snsd.CheckAddr(h.Addr) != nil:
		r.refuse("host", h.Addr, ErrAddress)
		return
	case n.subs[h.Addr] != nil:
		r.refuse("host", h.Addr, ErrDuplicate)
		return
	case len(n.subs) >= n.cfg.MaxHosts:
		r.refuse("host", h.Addr, ErrLimit)
		return
	}
	s := n.addSubscriber(h.Addr, h.MAC)
	s.restored, s.owed = true, h.Owed
	for _, t := range h.Told {
		if err := r.told(s, t); err != nil {
			r.refuse("told", t.Subject, err)
		}
	}
}

func (r *restorer) told(s *subscriber, t ToldSnapshot) error {
	n := r.n
	svc, listed := r.services[t.Subject]
	switch {
	case !listed || t.Subject.Is4() != s.addr.Is4() || t.Subject == s.addr:
		return ErrUnlisted
	case t.State > snsd.Active || t.Reason > snsd.ReasonBFDDown:
		return ErrValue
	case s.pairs[t.Subject] != nil:
		return ErrDuplicate
	case n.pairs >= n.cfg.MaxPairs:
		return ErrLimit
	}
	p := n.addPair(s, t.Subject)
	p.subj.know(svc)
	p.service = p.subj.service
	if t.Service != nil {
		p.service = t.Service
	}
	p.told = active
	if t.State == snsd.Inactive {
		p.told = inactive(t.Reason)
	}
	p.again = t.Stale && p.told.isActive()
	p.seq, p.acked, p.sent = t.Seq, t.Acked, never
	if !p.acked {
		n.launch(p)
		n.enqueue(p, retryClass(p.told))
	}
	return nil
}

// Doubt has every notice sent once more after a Restore, with the number it had. It is for
// a process that was killed: what it told in its last moments is not in the Snapshot. A
// host that has not been told anything since takes such a frame for a repeated one and acks
// it; one that has learns what is true.
func (s *Snapshot) Doubt() {
	for i := range s.Hosts {
		for j := range s.Hosts[i].Told {
			s.Hosts[i].Told[j].Acked = false
		}
	}
}

// endGrace forgets the restored hosts that did not register.
func (n *Notifier) endGrace() {
	n.graceEnd = never
	for _, s := range slices.Clone(n.order) {
		if s.restored {
			n.drop(s)
		}
	}
}
