package device

import "time"

// sooner is the earlier of two times; zero is no time.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func micros(from, to time.Time) *int64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	us := to.Sub(from).Microseconds()
	return &us
}
