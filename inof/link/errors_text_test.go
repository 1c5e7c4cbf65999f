package link

import (
	"testing"

	"github.com/openinof/inof/inof/wire"
)

// The peer's words begin with the code most times; it is said once.
func TestAPeersErrorSaysItsCodeOnce(t *testing.T) {
	for text, want := range map[string]string{
		"authentication failed: Keepalive: the tag does not match": "peer closed the session: authentication failed: Keepalive: the tag does not match",
		"who are you": "peer closed the session: authentication failed: who are you",
		"":            "peer closed the session: authentication failed",
	} {
		if got := (&PeerError{Code: wire.CodeAuthFailed, Text: text}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
