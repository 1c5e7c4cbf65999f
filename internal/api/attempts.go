package api

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How many log-ins of one address may fail.
const (
	failuresPerMinute = 5
	maxFailing        = 1024 // addresses that are remembered
)

// attempts remember log-ins that failed, by address; an IPv6 /64 is one.
type attempts struct {
	mu      sync.Mutex
	failing map[netip.Addr]*rate.Limiter
}

func source(from netip.Addr) netip.Addr {
	if from.Is6() {
		p, _ := from.Prefix(64) // 64 is a length of one
		return p.Addr()
	}
	return from
}

// spent reports whether too many failed within the last minute.
func (a *attempts) spent(from netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.failing[source(from)]
	return l != nil && l.Tokens() < 1
}

// failed remembers one. Where too many addresses are remembered, those are forgotten that have
// waited out their minute, and all if there are none.
func (a *attempts) failed(from netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from = source(from)
	if len(a.failing) >= maxFailing && a.failing[from] == nil {
		for at, l := range a.failing {
			if l.Tokens() >= failuresPerMinute {
				delete(a.failing, at)
			}
		}
		if len(a.failing) >= maxFailing {
			a.failing = nil
		}
	}
	if a.failing == nil {
		a.failing = map[netip.Addr]*rate.Limiter{}
	}
	if a.failing[from] == nil {
		a.failing[from] = rate.NewLimiter(rate.Every(time.Minute/failuresPerMinute), failuresPerMinute)
	}
	a.failing[from].Allow()
}
