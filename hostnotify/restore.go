package hostnotify

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/snsd"
)

// seqLeap is added to the sequence number at a restore, for the numbers that were
// used for pairs that are forgotten; so is Config.FirstSeq, since two starts from
// the same rows must not use the same numbers either: a late ack of the one would be
// taken for an ack of the other.
const seqLeap = 1 << 16

// Sentinels that a KeptError wraps.
var (
	ErrNotEmpty  = errors.New("the notifier already has hosts; restore before anything else")
	ErrAddress   = errors.New("not a host address")
	ErrDuplicate = errors.New("occurs twice")
	ErrUnlisted  = errors.New("not among the subjects that are kept, or of another address family")
	ErrLimit     = errors.New("more than the configured limit")
	ErrValue     = errors.New("no such state or reason")
)

// KeptError tells which row was not taken.
type KeptError struct {
	Where string // "host", "subject", "told"
	Addr  netip.Addr
	Err   error
}

func (e *KeptError) Error() string {
	return fmt.Sprintf("what hosts were told: %s %s: %v", e.Where, e.Addr, e.Err)
}

// Unwrap gives the sentinel.
func (e *KeptError) Unwrap() error { return e.Err }

// maxRestoreErrors is how many refusals are returned; all are counted.
const maxRestoreErrors = 8

// nextSeq is the number after the last one that was used.
func (k *Kept) nextSeq() uint32 {
	next := uint32(0)
	for i := range k.Hosts {
		for _, t := range k.Hosts[i].Told {
			if next == 0 || int32(t.Seq-next) >= 0 { // serial number arithmetic, it may wrap
				next = t.Seq + 1
			}
		}
	}
	return next
}

// forgetRow has a row removed that is of no use.
func (n *Notifier) forgetRow(c changedRow) {
	if n.cfg.Keep {
		n.unkept = append(n.unkept, c)
	}
}

// restorer collects what was wrong with the rows.
type restorer struct {
	n        *Notifier
	services map[netip.Addr]snsd.Service
	errs     []error
}

func (r *restorer) refuse(where string, addr netip.Addr, err error) {
	r.n.counters.RestoreBad++
	if len(r.errs) < maxRestoreErrors {
		r.errs = append(r.errs, &KeptError{where, addr, err})
	}
}

// Restore takes over what was told before a restart; call it before any host
// subscribes. Entries that cannot be right are left out and told by the error (a join
// of *KeptError); the others are taken. A restored host is told nothing until it
// registers; then what was not acked is retried. One that does not register within
// Config.Grace is forgotten.
func (n *Notifier) Restore(k Kept, now time.Time) error {
	n.touch(now)
	r := restorer{n: n, services: make(map[netip.Addr]snsd.Service, len(k.Subjects))}
	if len(n.subs) > 0 {
		r.refuse("host", n.order[0].addr, ErrNotEmpty)
		return errors.Join(r.errs...)
	}
	n.seq = k.nextSeq() + seqLeap + n.cfg.FirstSeq
	for _, x := range k.Subjects {
		if _, dup := r.services[x.Addr]; dup {
			r.refuse("subject", x.Addr, ErrDuplicate)
		} else if snsd.CheckAddr(x.Addr) != nil {
			r.refuse("subject", x.Addr, ErrAddress)
		} else {
			r.services[x.Addr] = x.Service
		}
	}
	for i := range k.Hosts {
		r.host(&k.Hosts[i])
	}
	for _, x := range k.Subjects {
		if n.subjects[x.Addr] == nil { // nobody was told of it
			n.forgetRow(changedRow{kind: RowSubject, subject: x.Addr})
		}
	}
	return errors.Join(r.errs...)
}

func (r *restorer) host(h *KeptHost) {
	n := r.n
	var why error
	switch {
	case snsd.CheckAddr(h.Addr) != nil:
		why = ErrAddress
	case n.subs[h.Addr] != nil:
		why = ErrDuplicate
	case len(n.subs) >= n.cfg.MaxHosts:
		why = ErrLimit
	}
	if why != nil {
		r.refuse("host", h.Addr, why)
		if why != ErrDuplicate {
			n.forgetRow(changedRow{kind: RowHost, host: h.Addr})
			for _, t := range h.Told {
				n.forgetRow(changedRow{RowTold, h.Addr, t.Subject})
			}
		}
		return
	}
	s := n.addSubscriber(h.Addr, h.MAC)
	s.restored, s.owed, s.unkept = true, h.Owed, false
	n.mayReturn(s)
	for _, t := range h.Told {
		t.Stale = t.Stale || h.Asked
		if err := r.told(s, t); err != nil {
			r.refuse("told", t.Subject, err)
			n.forgetRow(changedRow{RowTold, h.Addr, t.Subject})
		}
	}
	if h.Asked { // its pairs say so now, and no later start answers once more
		for _, p := range s.list {
			n.keepPair(p)
		}
		n.keepHost(s)
	}
}

func (r *restorer) told(s *subscriber, t KeptTold) error {
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
	p.told.service = p.subj.service
	if t.Service != nil {
		p.told.service = t.Service
	}
	p.row, p.subj.row = true, true
	p.told.verdict = active
	if t.State == snsd.Inactive {
		p.told.verdict = inactive(t.Reason)
	}
	p.waits.again = t.Stale && p.told.isActive()
	p.told.seq, p.told.acked, p.told.at = t.Seq, t.Acked, never
	if !p.told.acked {
		n.launch(p)
		n.enqueue(p, retryClass(p.told.verdict))
	}
	return nil
}

// Moved makes known that a port lost its carrier while the process was away: everything its hosts
// were told they may have forgotten. They are told all again, as after a link-up that was
// seen, at once if the port is up; but for those with another port that was up all the time. It is
// called once the hosts are restored.
func (n *Notifier) Moved(port string) {
	for _, s := range n.subsOn(port) {
		s.link(n.ports[port]).moved = true
		if s.isCutOff() && !s.owed {
			s.owed = true
			n.keepHost(s)
		}
		n.payBack(s)
	}
}

// Repeat sends everything the hosts of a port were told once more, with the numbers it had:
// whether the port lost its carrier while the process was away is not known.
func (n *Notifier) Repeat(port string) {
	for _, s := range n.subsOn(port) {
		for i := len(s.list) - 1; i >= 0; i-- { // backward: recompute may remove the pair
			n.repeat(s.list[i])
		}
	}
}

func (n *Notifier) subsOn(port string) []*subscriber {
	if p := n.ports[port]; p != nil {
		return p.subs
	}
	return nil
}
