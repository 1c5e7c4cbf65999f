package hostnotify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// What has to outlive the process is kept as rows, each of which is true by itself: a row of
// a later moment takes the place of one of an earlier moment, and that is all.

// RowKind tells what a row is about.
type RowKind uint8

const (
	RowHost    RowKind = iota // a subscriber; key: its address
	RowSubject                // what some host was told of; key: its address
	RowTold                   // what a host was told last of a subject; key: both addresses
)

// PutRow takes a row; a nil value says that there is none any more. Key and value are
// the callee's only until it returns.
type PutRow func(kind RowKind, key, value []byte)

// changedRow names a row that may have changed.
type changedRow struct {
	kind          RowKind
	host, subject netip.Addr
}

// Flags in the rows.
const (
	flagAcked = 1 << iota // told: the host has acked it
	flagStale             // told: it is to be told again
)

const (
	flagOwed  = 1 << iota // host: its port was down since it was told everything
	flagAsked             // host: its zone query is to be answered
)

// keepPair notes that the row of a pair changes.
func (n *Notifier) keepPair(p *pair) {
	if !p.unkept && n.cfg.Keep && (!p.told.none() || p.row) {
		p.unkept = true
		n.unkept = append(n.unkept, changedRow{RowTold, p.sub.addr, p.subj.addr})
	}
}

// keepHost notes that the row of a subscriber changes.
func (n *Notifier) keepHost(s *subscriber) {
	if !s.unkept && n.cfg.Keep {
		s.unkept = true
		n.unkept = append(n.unkept, changedRow{kind: RowHost, host: s.addr})
	}
}

// keepSubject notes that the row of a subject changes, if it has one.
func (n *Notifier) keepSubject(s *subject) {
	if !s.unkept && s.row && n.cfg.Keep {
		s.unkept = true
		n.unkept = append(n.unkept, changedRow{kind: RowSubject, subject: s.addr})
	}
}

// Rows gives the rows that have changed since it was last called, as they are now.
func (n *Notifier) Rows(put PutRow) {
	for _, c := range n.unkept {
		switch c.kind {
		case RowHost:
			if s := n.subs[c.host]; s == nil {
				put(RowHost, n.key(c.host), nil)
			} else if s.unkept {
				n.putHost(s, put)
			}
		case RowSubject:
			if s := n.subjects[c.subject]; s == nil || !s.row {
				put(RowSubject, n.key(c.subject), nil)
			} else if s.unkept {
				n.putSubject(s, put)
			}
		case RowTold:
			var p *pair
			if s := n.subs[c.host]; s != nil {
				p = s.pairs[c.subject]
			}
			if p == nil || p.lasting().none() {
				put(RowTold, n.key(c.host, c.subject), nil)
			} else if p.unkept {
				n.putTold(p, put)
			}
		}
	}
	clear(n.unkept)
	if n.unkept = n.unkept[:0]; cap(n.unkept) > maxSpare {
		n.unkept = nil
	}
}

// maxSpare is how many names of rows memory is held for while there are none.
const maxSpare = 1 << 14

// RowsOf gives the rows of the notices in a frame of the last Poll, as they will be
// once it has left.
func (n *Notifier) RowsOf(o Out, put PutRow) {
	for _, p := range n.packed[o.first:o.end] {
		if p.unkept && !p.lasting().none() {
			n.putTold(p, put)
		}
	}
}

func (n *Notifier) putHost(s *subscriber, put PutRow) {
	s.unkept = false
	b := append(n.value[:0], s.mac[:]...)
	var flags byte
	if s.owed {
		flags |= flagOwed
	}
	if s.queryDue != never {
		flags |= flagAsked
	}
	n.value = append(b, flags)
	put(RowHost, n.key(s.addr), n.value)
}

func (n *Notifier) putSubject(s *subject, put PutRow) {
	s.unkept, s.row = false, true
	n.value = appendService(n.value[:0], *s.service)
	put(RowSubject, n.key(s.addr), n.value)
}

func appendService(b []byte, s snsd.Service) []byte {
	b = append(b, byte(s.Role), byte(s.Protocol))
	b = binary.BigEndian.AppendUint16(b, s.Port)
	return append(b, s.NQN...)
}

// serviceOf is the inverse of appendService; b has four bytes at least.
func serviceOf(b []byte) snsd.Service {
	return snsd.Service{Role: snsd.Role(b[0]), Protocol: snsd.Protocol(b[1]), Port: binary.BigEndian.Uint16(b[2:]), NQN: string(b[4:])}
}

func (n *Notifier) putTold(p *pair, put PutRow) {
	p.unkept, p.row = false, true
	if s := p.subj; !s.row || s.unkept {
		n.putSubject(s, put)
		for _, other := range s.pairs {
			if other.unkept && !other.lasting().none() { // what it was told may be of the service of before
				n.putTold(other, put)
			}
		}
	}
	var flags byte
	t := p.lasting()
	if t.acked {
		flags |= flagAcked
	}
	if p.waits.again {
		flags |= flagStale
	}
	b := binary.BigEndian.AppendUint32(n.value[:0], t.seq)
	n.value = append(b, byte(t.state), byte(t.reason), flags)
	if *t.service != *p.subj.service {
		n.value = appendService(n.value, *t.service)
	}
	put(RowTold, n.key(p.sub.addr, p.subj.addr), n.value)
}

// key writes addresses, each with its length before it.
func (n *Notifier) key(addrs ...netip.Addr) []byte {
	b := n.rowKey[:0]
	for _, a := range addrs {
		b = appendAddr(b, a)
	}
	n.rowKey = b
	return b
}

func appendAddr(b []byte, a netip.Addr) []byte {
	if a.Is4() {
		v := a.As4()
		return append(append(b, 4), v[:]...)
	}
	v := a.As16()
	return append(append(b, 16), v[:]...)
}

// Kept is what rows say, to be given to Restore. Add fills it.
type Kept struct {
	Subjects []KeptSubject
	Hosts    []KeptHost

	at map[netip.Addr]int // of Hosts
}

// KeptSubject is one address that some host was told of.
type KeptSubject struct {
	Addr    netip.Addr
	Service snsd.Service
}

// KeptHost is one subscriber.
type KeptHost struct {
	Addr netip.Addr
	MAC  fabric.MAC // of the machine that was told
	Told []KeptTold
	// Owed is set when its port was down since it was told everything, Asked when its
	// zone query is to be answered.
	Owed, Asked bool
}

// KeptTold is what a subscriber was told of one subject.
type KeptTold struct {
	Subject netip.Addr // one of Kept.Subjects
	State   snsd.State
	Reason  snsd.Reason
	Seq     uint32
	Acked   bool
	Stale   bool // it must be told again: the host had asked
	// Service is the one that the host was told, where the subject has another by now.
	Service *snsd.Service
}

// ErrRow says that a row cannot be read.
var ErrRow = errors.New("not a row of what hosts were told")

// Add takes a row. The error wraps ErrRow; the row is left out then.
func (k *Kept) Add(kind RowKind, key, value []byte) error {
	var addrs [2]netip.Addr
	n := 0
	for rest := key; len(rest) > 0; n++ {
		size := int(rest[0])
		if n == len(addrs) || size != 4 && size != 16 || len(rest) < 1+size {
			return fmt.Errorf("key %x: %w", key, ErrRow)
		}
		addrs[n], _ = netip.AddrFromSlice(rest[1 : 1+size])
		rest = rest[1+size:]
	}
	switch {
	case kind == RowHost && n == 1 && len(value) == 7:
		h := k.host(addrs[0])
		h.MAC, h.Owed, h.Asked = fabric.MAC(value), value[6]&flagOwed != 0, value[6]&flagAsked != 0
	case kind == RowSubject && n == 1 && len(value) >= 4:
		k.Subjects = append(k.Subjects, KeptSubject{addrs[0], serviceOf(value)})
	case kind == RowTold && n == 2 && (len(value) == 7 || len(value) >= 11):
		t := KeptTold{Subject: addrs[1], Seq: binary.BigEndian.Uint32(value), State: snsd.State(value[4]),
			Reason: snsd.Reason(value[5]), Acked: value[6]&flagAcked != 0, Stale: value[6]&flagStale != 0}
		if len(value) > 7 {
			svc := serviceOf(value[7:])
			t.Service = &svc
		}
		h := k.host(addrs[0])
		h.Told = append(h.Told, t)
	default:
		return fmt.Errorf("kind %d, key %x, %d bytes: %w", kind, key, len(value), ErrRow)
	}
	return nil
}

// host gives the entry of a host, which a row about what it was told may make.
func (k *Kept) host(a netip.Addr) *KeptHost {
	if k.at == nil {
		k.at = make(map[netip.Addr]int)
	}
	i, ok := k.at[a]
	if !ok {
		i = len(k.Hosts)
		k.at[a] = i
		k.Hosts = append(k.Hosts, KeptHost{Addr: a})
	}
	return &k.Hosts[i]
}

// Doubt has every notice sent once more after a Restore, with the number it had. It is for
// where rows of the last moments may be missing. A host that has not been told anything
// since takes such a frame for a repeated one and acks it; one that has learns what is
// true.
func (k *Kept) Doubt() {
	for i := range k.Hosts {
		for j := range k.Hosts[i].Told {
			k.Hosts[i].Told[j].Acked = false
		}
	}
}
