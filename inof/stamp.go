package inof

import (
	"net/netip"
	"time"
)

// StampSent notes in the Updates of deliveries that their origin hands them to its
// sessions now. Like StampReflected it is for whoever owns both the machine and the
// sessions, between the two: the machine knows only when it began to decide. Messages
// that were delivered before must not be among them.
func StampSent(ds []Delivery, now time.Time) {
	for i := range ds {
		if u, ok := ds[i].Msg.(*Update); ok {
			u.SentAt = now
		}
	}
}

// StampReflected is the function of that name for the messages that wait for Flush.
func (ps *Peers) StampReflected(self netip.Addr, now time.Time) {
	StampReflected(ps.waiting, self, now)
}

// StampReflected notes in the Updates of deliveries that the reflector hands them to
// its sessions now; it is their origin too where it sends for itself.
func StampReflected(ds []Delivery, self netip.Addr, now time.Time) {
	for i := range ds {
		if u, ok := ds[i].Msg.(*Update); ok {
			u.ReflectedAt = now
			if u.Origin == self {
				u.SentAt = now
			}
		}
	}
}
