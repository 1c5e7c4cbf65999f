package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// A device has one session with a reflector. A second one comes when the device has
// lost the first, which must be known at once, and when two devices have one id, which
// must not push each other out: the hosts of the one would be swept by the sync of the
// other, and back again with each reconnection. So the session that stands is asked, and
// stays if it answers.

// probeTime is how long a session that stands may take to answer. The system of a
// device that restarted refuses the question at once.
const probeTime = time.Second

// contest asks the session of a newcomer's device, an error: it answers. S.mu is held
// but while it waits; then there is none, or it is one that gave no answer.
func (s *Server) contest(c *conn) error {
	dev := c.device()
	var asked *conn
	for old := s.peers[dev]; old != nil && old != asked; old = s.peers[dev] {
		s.mu.Unlock()
		answers := old.answers(min(probeTime, s.cfg.HandshakeTimeout/2))
		s.mu.Lock()
		if answers {
			return s.duplicate(dev, old, c)
		}
		asked = old
	}
	return nil
}

// duplicate is what a newcomer is told whose device's session stands; the operator is
// told when its address is new among those refused. S.mu is held.
func (s *Server) duplicate(dev netip.Addr, old, c *conn) error {
	from := hostOf(c.view.Address)
	known := slices.ContainsFunc(s.refused, func(v PeerInfo) bool { return hostOf(v.Address) == from && v.LastCode == wire.CodeDuplicate })
	if !known {
		text := fmt.Sprintf("two devices have the id %s: one is connected from %s and answers, the other comes from %s and is refused; "+
			"give one of them another device.id", dev, old.view.Address, from)
		s.cfg.Log.Warn("duplicate device id", "error", text)
		s.cfg.Alarm(dev, text)
	}
	return &wire.ProtocolError{Code: wire.CodeDuplicate, Where: "Open.device", Detail: fmt.Sprintf(
		"%s is connected from %s, which answers: two devices have this id, or one runs twice", dev, old.view.Address)}
}

// maxRefused is how many addresses are remembered whose connections never became
// sessions.
const maxRefused = 64

// refuse remembers why a connection did not become a session. Nothing about its
// sender is proved but the address. s.mu is held.
func (s *Server) refuse(c *conn, err error) {
	var peer *PeerError
	if code := wire.CodeOf(err); code == wire.CodeCease || code == 0 && !errors.As(err, &peer) {
		return
	}
	v := c.info()
	v.State, v.LastError, v.LastErrAt, v.LastCode = StateConnect, err.Error(), time.Now(), ReasonOf(err)
	v.Device = netip.Addr{}
	s.forgive(v.Address)
	if len(s.refused) >= maxRefused {
		s.refused = slices.Delete(s.refused, 0, 1)
	}
	s.refused = append(s.refused, v)
}

// forgive forgets what was refused from an address, whatever its port. s.mu is held.
func (s *Server) forgive(address string) {
	from := hostOf(address)
	s.refused = slices.DeleteFunc(s.refused, func(v PeerInfo) bool { return hostOf(v.Address) == from })
}

// Refused are the last connections that did not become sessions, the newest of
// each address, until a session comes from there.
func (s *Server) Refused() []PeerInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// hostOf is an address of the transport without its port.
func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	return host
}
