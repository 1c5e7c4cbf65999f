package lldp

import (
	"errors"
	"slices"
	"time"
)

// Restore takes neighbours over that were kept as rows. Each has the whole of its TTL again: a row
// does not say when its neighbour was heard last, and nobody listened while the process
// was away. They are what they were in every other respect. What cannot be read, is over
// the limits or is known already is left out and told in the joined error.
func (t *Table) Restore(ns []Neighbour, now time.Time) error {
	var errs []error
	behind := behind(ns, now)
	for i := range ns {
		if err := t.restore(&ns[i], behind, now); err != nil {
			errs = append(errs, &FrameError{Port: ns[i].Port, Src: ns[i].MAC.String(), Err: err})
		}
	}
	return errors.Join(errs...)
}

func (t *Table) restore(s *Neighbour, behind time.Duration, now time.Time) error {
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
	p.TTL = min(p.TTL, t.maxTTL)
	n := newNeighbour(s.Port, s.MAC, p, slices.Clone(raw), now)
	keepMachine(n.Known, s.Known)
	t.believe(&t.beliefs, &n)
	n.FirstHeard, n.LastHeard = past(s.FirstHeard, behind, now), past(s.LastHeard, behind, now)
	n.Confirmed = s.Confirmed
	all := len(n.Known)
	n.Known = slices.DeleteFunc(n.Known, func(h HostInfo) bool { return !announces(s.Known, h.Addr) })
	for i := range n.Known {
		n.Known[i].Since = n.FirstHeard
	}
	keepSince(n.Known, s.Known)
	for i := range n.Known {
		n.Known[i].Since = past(n.Known[i].Since, behind, now)
	}
	key := string(raw[:peekMSAP(raw)])
	if _, err = t.store(nil, n, key, now); err == nil {
		// What a limit had cut stays out until the neighbour is heard again.
		e := t.ports[n.Port].byMSAP[key]
		e.cut = all - len(e.n.Known)
	}
	return err
}

// behind is by how much the clock was set back, at least, since neighbours were kept: what was
// known before the start was there before all that is heard after it.
func behind(ns []Neighbour, now time.Time) (most time.Duration) {
	for i := range ns {
		most = max(most, ns[i].FirstHeard.Sub(now), ns[i].LastHeard.Sub(now))
		for _, h := range ns[i].Known {
			most = max(most, h.Since.Sub(now))
		}
	}
	return most
}

// past is a time that was kept, as the clock of now has it. It has no monotonic reading, and gets
// one by its distance to now: a clock that is set later changes no order.
func past(kept time.Time, behind time.Duration, now time.Time) time.Time {
	return now.Add(min(0, kept.Sub(now)-behind))
}
