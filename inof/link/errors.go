package link

import (
	"errors"
	"fmt"
	"strings"

	"github.com/openinof/inof/inof/wire"
)

// PeerError is a Notification that the peer sent: its view of what is wrong.
type PeerError struct {
	Code wire.Code
	Text string
}

func (e *PeerError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("peer closed the session: %s", e.Code)
	}
	// What the peer says is its own error, which mostly begins with the code.
	return fmt.Sprintf("peer closed the session: %s: %s", e.Code, strings.TrimPrefix(e.Text, e.Code.String()+": "))
}

// ReasonOf returns why a session ended or did not begin, whichever side found it: the code
// of a ProtocolError or of the peer's Notification; 0 for anything else, such as a
// connection that broke.
func ReasonOf(err error) wire.Code {
	var peer *PeerError
	if errors.As(err, &peer) {
		return peer.Code
	}
	return wire.CodeOf(err)
}

// Sentinels of the transport.
var (
	ErrQueueFull = errors.New("send queue is full")
	ErrClosed    = errors.New("session is closed")
)
