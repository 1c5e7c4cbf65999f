package inof

import (
	"time"
)

// StampSent notes in the Updates of deliveries that their origin hands them to its
// sessions now. It is for whoever owns both the machine and the
// sessions, between the two: the machine knows only when it began to decide. Messages
// that were delivered before must not be among them.
func StampSent(ds []Delivery, now time.Time) {
	for i := range ds {
		if u, ok := ds[i].Msg.(*Update); ok {
			u.SentAt = now
		}
	}
}
