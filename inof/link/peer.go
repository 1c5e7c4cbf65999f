package link

import (
	"net/netip"

	"github.com/openinof/inof/inof/wire"
)

// Peer is one established session. Its methods are safe for concurrent use.
type Peer struct {
	c      *conn
	device netip.Addr
}

// Device is the peer's device id.
func (p *Peer) Device() netip.Addr { return p.device }

// Send hands a message over and never blocks. What waits for a slow peer becomes the
// latest state of each record; a peer for which that is too much still is cut
// and ErrQueueFull returned; ErrClosed when the session has ended.
func (p *Peer) Send(m wire.Message) error {
	if n, ok := m.(*wire.Notification); ok {
		p.Close(n.Code, n.Text)
		return nil
	}
	e, err := wire.Encode(m)
	if err != nil {
		return err
	}
	return p.c.out.send(e, m, true)
}

// WhenDrained reports whether nothing waits for the peer. If something does, a PeerDrained
// comes as soon as that has changed, or the Down.
func (p *Peer) WhenDrained() bool { return p.c.out.whenDrained() }

// Close ends the session with a Notification. What waits in the queue is dropped.
func (p *Peer) Close(code wire.Code, text string) {
	p.c.out.shut(&wire.ProtocolError{Code: code, Detail: text})
}

// Info is the session as operators see it.
func (p *Peer) Info() PeerInfo { return p.c.info() }
