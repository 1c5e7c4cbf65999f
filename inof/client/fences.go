package client

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// This file decides what is fenced at other devices, by what each reflector with a session says of
// a host that it says. Of two the later state of the host's device counts: a reflector that lost
// the device says nothing, and another one may still hear it. While no reflector has a session
// nothing is fenced, because nobody would say that it is over.

// maxFenced is how many fenced hosts of one reflector are kept.
const maxFenced = 65536

// saidFence is what a reflector says is fenced at a host.
type saidFence struct {
	rec     wire.FenceRecord // without peers: the device has ended it
	stamp   wire.Stamp
	session uint32
}

// fence takes from reflector i what is fenced at a host. own: the host's device says so itself.
func (l *replicas) fence(i int, r *wire.FenceRecord, stamp wire.Stamp, own bool) error {
	s, k := &l.list[i], r.Key()
	was, had := s.fences[k]
	_, said := s.hosts[k]
	over := s.fenced-len(was.rec.Peers)+len(r.Peers) > maxFenced
	if !said || over || len(r.Peers) == 0 && !own {
		if had {
			l.unfence(i, k)
		}
		if over {
			return &wire.LimitError{What: "fenced hosts", Key: "fence of " + k.Addr.String(), Limit: maxFenced}
		}
		return nil
	}
	if s.fences == nil {
		s.fences = map[zone.HostKey]saidFence{}
	}
	s.fenced += len(r.Peers) - len(was.rec.Peers)
	s.fences[k] = saidFence{*r, stamp, s.session}
	l.refence(k)
	return nil
}

// unfence forgets what reflector i says is fenced at a host.
func (l *replicas) unfence(i int, k zone.HostKey) {
	if s := &l.list[i]; len(s.fences) > 0 {
		if was, had := s.fences[k]; had {
			s.fenced -= len(was.rec.Peers)
			delete(s.fences, k)
			l.refence(k)
		}
	}
}

// refence has a host looked at.
func (l *replicas) refence(k zone.HostKey) {
	if l.unfenced == nil {
		l.unfenced = map[zone.HostKey]struct{}{}
	}
	l.unfenced[k] = struct{}{}
}

// completeFences ends the sync of reflector i: after a full one it does not say any more what it
// has not said in this session.
func (l *replicas) completeFences(i int, resumed bool) {
	s := &l.list[i]
	for k, f := range s.fences {
		if f.session != s.session && !resumed {
			l.unfence(i, k)
			continue
		}
		f.session = s.session
		s.fences[k] = f
		l.refence(k)
	}
}

// endFences is for a reflector whose session has ended.
func (l *replicas) endFences(i int) {
	for k := range l.list[i].fences {
		l.refence(k)
	}
}

// decideFence is what is fenced at a host; nil: nothing.
func (l *replicas) decideFence(k zone.HostKey) []wire.FencePeer {
	var best saidFence
	found := false
	for j := range l.list {
		s := &l.list[j]
		f, says := s.fences[k]
		if !says || !s.up || f.session != s.session {
			continue
		}
		if !found || best.stamp.Before(f.stamp) {
			best, found = f, true
		}
	}
	return best.rec.Peers
}

// decideFences brings what is in force in step with the tables.
func (l *replicas) decideFences(a *Applied) {
	for k := range l.unfenced {
		is, was := l.decideFence(k), l.fences[k]
		if slices.Equal(is, was) {
			continue
		}
		if l.fences == nil {
			l.fences = map[zone.HostKey][]wire.FencePeer{}
		}
		if l.fences[k] = is; len(is) == 0 {
			delete(l.fences, k)
		}
		a.Fences = append(a.Fences, wire.FenceRecord{Device: k.Device, Port: k.Port, Array: k.Addr, Peers: is})
	}
	clear(l.unfenced)
}

// SetFence says which hosts this device has fenced at an own host; none: nothing is fenced. The
// change leaves with the next Flush.
func (c *Client) SetFence(port string, array netip.Addr, peers []wire.FencePeer) {
	k := zone.HostKey{Addr: array, Device: c.self, Port: port}
	if slices.Equal(c.fences[k], peers) {
		return
	}
	if c.fences[k] = slices.Clone(peers); len(peers) == 0 {
		delete(c.fences, k)
	}
	c.fencesDirty[k] = struct{}{}
}

// fenceRecords adds the own fences to a batch, all of them or those that have changed.
func (c *Client) fenceRecords(b *wire.Batch, changed bool) {
	record := func(k zone.HostKey) {
		b.Fences = append(b.Fences, wire.FenceRecord{Device: k.Device, Port: k.Port, Array: k.Addr, Peers: c.fences[k]})
	}
	if !changed {
		for k := range c.fences {
			record(k)
		}
		return
	}
	for k := range c.fencesDirty {
		record(k)
	}
	clear(c.fencesDirty)
}

// Fences are what this device has fenced, by own host; not to be changed.
func (c *Client) Fences() map[zone.HostKey][]wire.FencePeer { return c.fences }

// Fenced is what other devices have fenced, by their host; not to be changed.
func (c *Client) Fenced() map[zone.HostKey][]wire.FencePeer { return c.learned.fences }
