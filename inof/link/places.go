package link

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// keepPlace is how long the place of a device that had hosts is kept when its session has ended.
const keepPlace = 24 * time.Hour

// place reports whether there is one for a device without a session. A password proves no device
// id, so one machine that has it could take all places, with an id for each: one address gets a
// few, and none of those that are kept for devices with hosts. S.mu is held.
func (s *Server) place(c *conn, dev netip.Addr, now time.Time) error {
	_, had := s.hosts[dev]
	free, kept := s.cfg.MaxPeers-len(s.peers), 0
	if !had && free > 0 && free <= len(s.hosts) {
		kept = s.awaited(now)
	}
	if free <= kept {
		more := ""
		if kept > 0 {
			more = fmt.Sprintf(", and %d places are kept for devices that had hosts", kept)
		}
		return limited("%d clients are connected%s; the limit is %d", len(s.peers), more, s.cfg.MaxPeers)
	}
	if s.cfg.MaxFromOne == 0 || !c.source.IsValid() || s.proved(dev) {
		return nil
	}
	n := 0
	for id, p := range s.peers {
		if p.source == c.source && !s.proved(id) {
			n++
		}
	}
	if n >= s.cfg.MaxFromOne {
		return limited("%d devices are connected from this address, which is the limit: name the devices in reflector.clients, or raise reflector.max-clients-per-address", n)
	}
	return nil
}

func limited(format string, args ...any) error {
	return &wire.ProtocolError{Code: wire.CodeLimit, Where: "sessions", Detail: fmt.Sprintf(format, args...)}
}

// proved reports whether a device's id is its own, or one of a list.
func (s *Server) proved(dev netip.Addr) bool {
	return s.cfg.Auth().Mode == wire.AuthTLS || s.cfg.Listed != nil && s.cfg.Listed(dev)
}

// awaited counts the devices that had hosts and have no session. S.mu is held.
func (s *Server) awaited(now time.Time) (n int) {
	for dev, last := range s.hosts {
		switch {
		case s.peers[dev] != nil:
		case now.Sub(last) > keepPlace:
			delete(s.hosts, dev)
		default:
			n++
		}
	}
	return n
}

// hasHosts notes that the device of a session has hosts.
func (s *Server) hasHosts(c *conn, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dev := c.device()
	if _, had := s.hosts[dev]; had || len(s.hosts) < s.cfg.MaxPeers {
		s.hosts[dev] = now
	}
}
