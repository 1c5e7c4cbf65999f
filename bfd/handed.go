package bfd

import "time"

// Keys that are handed out to both ends (Auth.Handed) come to each end at a time of its
// own, one from each of its reflectors, and are renewed so. What follows from it:
//
// Each end takes all keys it has and signs with the first that the peer has shown to hold,
// by packets signed with it; as long as that is none, it sends each packet once with each
// key. So that the ends find out what they have in common, one more packet a second is
// signed with another key, each in turn. A key that is not wanted any
// more is taken, and signed with if the peer shows no other one, until the peer has done
// without it for a while.
//
// Sequence numbers are the time of the machine's own clock, which no restart of the
// process turns back, and any that is ahead of the last one is taken: after a crash the
// peer goes on with the next packet. RFC 5880 section 6.7.4 allows a few steps only, which
// a peer of another make must be given: with keys that were set by hand. After the restart
// of the machine the peer has forgotten the number (section 6.8.1, bfd.AuthSeqKnown). A
// packet that was recorded 25 to 49 days ago counts as ahead, once.

const (
	// showEvery is the time between packets signed with a key other than the chosen one.
	showEvery = instant(time.Second)
	// shownFor is how long before the last packet of the peer a key may have been shown to
	// count as one that it has: thrice the time in which it shows those of five reflectors.
	shownFor = 15 * instant(time.Second)
	// oldFor is how long a peer must have done without an old key until it is forgotten.
	oldFor = instant(time.Minute)
	// maxOld is how many old keys are kept.
	maxOld = 8
	// clockTick is the unit of sequence numbers: shorter than the distance of packets.
	clockTick = time.Millisecond
)

// handed is what belongs to keys that are handed out.
type handed struct {
	heard instant // the last packet of the peer that was accepted
	next  instant // when another key is shown
	turn  int     // the last that was
}

// after reports whether a sequence number is ahead of another one, in circular arithmetic.
func after(a, b uint32) bool { return int32(a-b) > 0 }

// seqClock is the machine's own clock as a sequence number.
func (m *Manager) seqClock(now instant) uint32 {
	return uint32((m.cfg.Clock + time.Duration(now)) / clockTick)
}

// firstSeq is the sequence number before the first packet of a session: random (section
// 6.8.1), or the clock.
func (m *Manager) firstSeq(a *Auth, now instant) uint32 {
	if a != nil && a.Handed {
		return m.seqClock(now)
	}
	return m.rng.u32()
}

// awaited reports whether there is no key yet.
func (a *Auth) awaited() bool { return a != nil && a.Handed && len(a.Keys) == 0 }

// keyless reports whether the session waits for its first key: it says nothing, and nothing
// follows from it.
func (s *session) keyless() bool { return s.auth != nil && len(s.auth.keys) == 0 }

// signer is the key that signs: the first that the peer has. While none is known ok is
// false.
func (s *authState) signer() (key int, ok bool) {
	if s.handed == nil {
		return 0, true
	}
	for i := range s.keys {
		if s.peerHas(i) {
			return i, true
		}
	}
	return 0, false
}

// peerHas reports whether the peer has shown a key lately.
func (s *authState) peerHas(key int) bool {
	at := s.keys[key].shown
	return at != never && s.handed.heard-at <= shownFor
}

// toShow gives a key other than the one that signs, when it is time to show one.
func (s *authState) toShow(now instant) (key int, ok bool) {
	h := s.handed
	if h == nil || now < h.next {
		return 0, false
	}
	h.next = now + showEvery
	by, known := s.signer()
	if !known {
		return 0, false // all are shown
	}
	for range s.keys {
		h.turn = (h.turn + 1) % len(s.keys)
		if h.turn != by && !s.keys[h.turn].old {
			return h.turn, true
		}
	}
	return 0, false
}

// keepOld takes over what is known of the keys of before, and those that are not wanted any
// more as old ones.
func (s *authState) keepOld(before *authState) {
	h := *before.handed
	h.turn = -1
	s.handed = &h
	wanted, old := len(s.keys), 0
	for _, k := range before.keys {
		if i := s.find(k, wanted); i >= 0 {
			s.keys[i].shown = k.shown
		} else if k.shown != never && old < maxOld {
			k.old = true
			old++
			s.keys = append(s.keys, k)
		}
	}
}

// find gives the index of a key among the first n; -1: it is not there.
func (s *authState) find(k paddedKey, n int) int {
	for i := range s.keys[:n] {
		if s.keys[i].id == k.id && s.keys[i].secret == k.secret {
			return i
		}
	}
	return -1
}

// begunAnew forgets what the peer has shown before the packet at now: it has started again,
// maybe with fewer keys.
func (s *authState) begunAnew(now instant) {
	for i := range s.keys {
		if s.keys[i].shown != now {
			s.keys[i].shown = never
		}
	}
}

// forgetOld drops old keys that the peer, which is heard at now, has not shown for long.
func (s *authState) forgetOld(now instant) {
	if s.handed == nil {
		return
	}
	s.handed.heard = now
	keys := s.keys[:0]
	for _, k := range s.keys {
		if !k.old || k.shown == never || now-k.shown < oldFor {
			keys = append(keys, k)
		}
	}
	s.keys = keys
}
