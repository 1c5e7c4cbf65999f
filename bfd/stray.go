package bfd

import (
	"errors"
	"net/netip"
	"time"
)

// Holder is a UDP socket of another process on a port that we receive on.
type Holder struct {
	Address netip.Addr `json:"address"`
	Owner   string     `json:"owner"` // "bfdd (pid 7)", or its user

	user, socket string
}

// String names the process and what it has bound.
func (h Holder) String() string {
	if h.Address.IsUnspecified() {
		return h.Owner + " on all addresses"
	}
	return h.Owner + " on " + h.Address.String()
}

// Stray are multihop packets that came to us and are for no session of ours, or for another
// session of the same peer: BFD between other processes over the same addresses.
type Stray struct {
	From  netip.Addr `json:"from"`
	Since time.Time  `json:"since"` // they have come since then with no long pause
	Last  time.Time  `json:"last"`
}

// strayPause ends a row of stray packets: a session that is down sends one each second.
const strayPause = 4 * time.Second

// Stray is what came last; zero: nothing.
func (m *Manager) Stray() Stray { return m.stray }

func (m *Manager) noteStray(from netip.Addr, err error, now time.Time) {
	if !errors.Is(err, ErrNoSession) && !errors.Is(err, ErrAuthMissing) && !errors.Is(err, ErrUnnamed) {
		return
	}
	if now.Sub(m.stray.Last) > strayPause {
		m.stray.Since = now
	}
	m.stray.From, m.stray.Last = from, now
}
