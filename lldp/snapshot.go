package lldp

import (
	"errors"
	"slices"
	"time"
)

// Snapshot gives what Restore needs after a restart of the process.
func (t *Table) Snapshot() []Neighbour { return t.All() }

// restoreGrace is the least part of its TTL that a restored neighbour is given to
// be heard again. Nobody listened while the process was away, so a TTL that ran out
// meanwhile is no evidence; senders announce every quarter of their TTL (msgTxHold 4).
const restoreGrace = 3 // TTL / 3

// Restore takes neighbours of a Snapshot over. They keep their Expires, but at
// least a third of their TTL from now, and are what they were in every other
// respect. What cannot be read, is over the limits or is known already is left out
// and told in the joined error.
func (t *Table) Restore(ns []Neighbour, now time.Time) error {
	var errs []error
	for i := range ns {
		if err := t.restore(&ns[i], now); err != nil {
			errs = append(errs, &FrameError{Port: ns[i].Port, Src: ns[i].MAC.String(), Err: err})
		}
	}
	return errors.Join(errs...)
}

// Same tells whether two Neighbours are one: behind one port, with one MSAP
// identifier (IEEE 802.1AB: chassis id and port id).
func (n *Neighbour) Same(o *Neighbour) bool {
	a, b := peekMSAP(n.LLDPDU), peekMSAP(o.LLDPDU)
	return n.Port == o.Port && a == b && string(n.LLDPDU[:a]) == string(o.LLDPDU[:b])
}

func (t *Table) restore(s *Neighbour, now time.Time) error {
	raw, _ := trimPDU(s.LLDPDU)
	p, err := Parse(raw)
	if err != nil {
		return err
	}
	if len(raw) > maxPDU || p.TTL == 0 || s.Port == "" {
		return refuse(tlvTTL, ErrValue, "of a neighbour that cannot be restored")
	}
	if t.lookup(s.Port, raw) != nil {
		return refuse(tlvPortID, ErrDuplicate, "%s", portText(p.Port))
	}
	n := newNeighbour(s.Port, s.MAC, p, slices.Clone(raw), now)
	ttl := time.Duration(p.TTL) * time.Second
	// Times from a file have no monotonic reading; distances to now get one.
	n.Expires = now.Add(min(max(s.Expires.Sub(now), ttl/restoreGrace), ttl))
	n.FirstHeard = now.Add(min(0, s.FirstHeard.Sub(now)))
	n.LastHeard = now.Add(min(0, s.LastHeard.Sub(now)))
	n.Confirmed = s.Confirmed
	all := len(n.Known)
	n.Known = slices.DeleteFunc(n.Known, func(h HostInfo) bool { return !announces(s.Known, h.Addr) })
	for i := range n.Known {
		n.Known[i].Since = n.FirstHeard
	}
	keepSince(n.Known, s.Known)
	key := string(raw[:peekMSAP(raw)])
	if _, err = t.store(nil, n, key, now); err == nil {
		// What a limit had cut stays out until the neighbour is heard again.
		e := t.ports[n.Port].byMSAP[key]
		e.cut = all - len(e.n.Known)
	}
	return err
}
