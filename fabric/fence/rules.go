package fence

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/snsd"
)

// This file has the rules: which fault is answered by which blocks.

// Why a fault is not answered, for operators.
const (
	whyOff      = "client.fence is off, or the device observes"
	whyNotReady = "the dataplane cannot block"
	whyLast     = "the pair has no other path"
	whyNoRoom   = "too many blocks stand"
	whyTooMany  = "too many hosts share a zone with the port's arrays"
)

// fencePort answers that a port passes nothing: whoever is behind it is fenced as soon as the block is
// in force (before that the link might come back), until its time is over. The port as a whole is closed if each of its
// pairs has another path; else the pairs that have one are blocked, and the others may use the port
// as soon as it is back.
func (m *Machine) fencePort(port string, fault, now time.Time) {
	var with []Key
	last, looked := 0, 0
	for _, a := range m.view.Behind(port) {
		array, known := m.view.Host(a)
		if !known || !array.array() {
			continue
		}
		for h := range m.view.Peers(a) {
			host, known := m.view.Host(h)
			if looked++; looked > maxLooked {
				m.counts.TooMany++
				m.ports[port] = whyTooMany
				return
			}
			if !known || !array.Role.Meets(host.Role) || slices.Contains(host.Ports, port) {
				continue
			}
			if m.otherPath(&array, &host, &looked) {
				with = append(with, Key{port, a, h})
			} else {
				last++
			}
		}
	}
	m.counts.LastPath += uint64(last)
	switch {
	case len(with) == 0 && last == 0: // no array with hosts is behind it
		return
	case len(with) == 0:
		m.ports[port] = whyLast
		return
	case last == 0:
		with = []Key{{Port: port}}
	}
	if m.ports[port] = m.want(with, fault, now); m.ports[port] == "" {
		delete(m.ports, port)
	}
}

// want begins or prolongs blocks. It returns why it did not, or "".
func (m *Machine) want(keys []Key, fault, now time.Time) string {
	switch {
	case !m.cfg.On:
		return whyOff
	case !m.ready:
		return whyNotReady
	case len(m.blocks)+len(keys) > MaxBlocks:
		m.counts.NoRoom += uint64(len(keys))
		return whyNoRoom
	}
	for _, k := range keys {
		b := m.blocks[k]
		if b == nil {
			b = &block{Block: Block{Key: k}}
			m.put(b)
		}
		b.Until, b.fault = now.Add(m.cfg.Hold), fault
		b.phase, b.confirmed, b.drained = wanted, time.Time{}, false
		m.touch(k)
	}
	return ""
}

// noteStep is how many hosts are looked at before the next event.
const noteStep = 16

// lookAtNoted answers what has become of hosts.
func (m *Machine) lookAtNoted(now time.Time) {
	n := min(len(m.queue), noteStep)
	for _, q := range m.queue[:n] {
		delete(m.noted, q.addr)
		h, known := m.view.Host(q.addr)
		if known && h.array() { // at ports that are closed it is fenced as the others there
			for _, p := range h.Ports {
				if m.Closed(p) {
					m.facts[factKey{p, q.addr}] = struct{}{}
				}
			}
		}
		if known && h.faulty() {
			m.fenceHost(&h, q.at, now)
			continue
		}
		for a := range m.hosts[q.addr] {
			if p := (pair{a, q.addr}); m.pairs[p] == 0 {
				m.unhandle(p)
			}
		}
	}
	if m.queue = m.queue[n:]; len(m.queue) == 0 {
		m.queue = nil
	}
}

// fenceHost answers that a host cannot be reached: its frames are dropped at each port behind which
// an array is that it shares a zone with, for that array alone. Other hosts use these ports too.
func (m *Machine) fenceHost(h *Host, at, now time.Time) {
	looked := 0
	for _, a := range m.view.Local() {
		array, known := m.view.Host(a)
		_, before := m.hosts[h.Addr][a]
		if before || !known || !array.array() || a == h.Addr || !array.Role.Meets(h.Role) || !m.view.Share(a, h.Addr) {
			continue
		}
		if looked > maxLooked {
			m.counts.TooMany++
			return
		}
		var keys []Key
		stands := false
		for _, p := range array.Ports {
			k := Key{p, a, h.Addr}
			_, down := m.down[p]
			switch {
			case m.blocks[k] != nil: // of before a restart
				stands = true
			case !down && !m.Closed(p) && !slices.Contains(h.Ports, p):
				keys = append(keys, k)
			}
		}
		switch {
		case stands:
			m.handle(pair{a, h.Addr}, "")
		case len(keys) == 0: // it is elsewhere, or nothing passes its port
		case !m.otherPath(&array, h, &looked):
			m.counts.LastPath++
			m.handle(pair{a, h.Addr}, whyLast)
		default:
			m.handle(pair{a, h.Addr}, m.want(keys, at, now))
		}
	}
}

// handle notes that the fault of a pair was decided on. What is beyond the room for that is decided
// on once more when the host changes.
func (m *Machine) handle(p pair, why string) {
	if m.handled >= 4*MaxBlocks {
		return
	}
	if m.hosts[p.host] == nil {
		m.hosts[p.host] = map[netip.Addr]string{}
	}
	m.hosts[p.host][p.array] = why
	m.handled++
}

// unhandle forgets it.
func (m *Machine) unhandle(p pair) {
	if _, had := m.hosts[p.host][p.array]; had {
		m.handled--
		if delete(m.hosts[p.host], p.array); len(m.hosts[p.host]) == 0 {
			delete(m.hosts, p.host)
		}
	}
}

// otherPath reports whether a host reaches the subsystem of an array by another path, as far as this
// switch knows: another address of that subsystem (of that NQN; without one any array in a zone of
// the host), or another address of the host (of its NQN), both of which can be reached and are not
// blocked.
func (m *Machine) otherPath(array, host *Host, looked *int) bool {
	if m.cfg.AssumePaths || m.pathFrom(host, array, host, looked) {
		return true
	}
	if host.NQN == "" {
		return false
	}
	for _, a := range m.view.OfNQN(host.NQN) {
		if h, known := m.view.Host(a); known && a != host.Addr && m.pathFrom(&h, array, host, looked) {
			return true
		}
	}
	return false
}

// pathFrom reports whether one address of a host has a path to the subsystem of an array that is
// not the path from host to array.
func (m *Machine) pathFrom(from, array, host *Host, looked *int) bool {
	far := !from.Up && from.Why == snsd.ReasonBFDDown // it may reach what is elsewhere
	if !far && !m.alive(from) {
		return false
	}
	others := slices.Values(m.view.OfNQN(array.NQN))
	if array.NQN == "" {
		others = m.view.Peers(from.Addr)
	}
	for a := range others {
		if *looked++; *looked > maxLooked {
			return false
		}
		other, known := m.view.Host(a)
		switch {
		case !known || !other.array() || !m.view.Share(from.Addr, a) || !m.alive(&other) || far && len(other.Ports) > 0:
		case a == array.Addr && from.Addr == host.Addr:
		case m.pairs[pair{a, from.Addr}] > 0:
		default:
			return true
		}
	}
	return false
}

// alive reports whether frames reach an address, as far as this switch knows.
func (m *Machine) alive(h *Host) bool {
	if len(h.Ports) == 0 {
		return h.Up
	}
	return h.Up && slices.ContainsFunc(h.Ports, func(p string) bool {
		_, down := m.down[p]
		return !down && !m.Closed(p)
	})
}
