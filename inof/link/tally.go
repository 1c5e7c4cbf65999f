package link

import (
	"errors"
	"sync/atomic"

	"github.com/openinof/inof/inof/wire"
)

// tally counts for all connections of a Server or Dialer, from many goroutines.
type tally struct {
	accepted, acceptErrors, pendingRefused, dials, dialErrors, established atomic.Uint64
	byCode                                                                 [wire.LastCode + 1]atomic.Uint64
	coalesced, guesses, tooMany                                            atomic.Uint64
	byPeer, msgIn, msgOut, bytesIn, bytesOut, writes                       atomic.Uint64
}

// count notes why a session ended.
func (t *tally) count(err error) {
	var peer *PeerError
	if errors.As(err, &peer) {
		t.byPeer.Add(1)
		if peer.Code == wire.CodeDuplicate {
			t.byCode[wire.CodeDuplicate].Add(1)
		}
	}
	if c := wire.CodeOf(err); int(c) < len(t.byCode) {
		t.byCode[c].Add(1)
	}
}

func (t *tally) snapshot() TransportCounters {
	by := func(cs ...wire.Code) (n uint64) {
		for _, c := range cs {
			n += t.byCode[c].Load()
		}
		return n
	}
	return TransportCounters{
		Accepted: t.accepted.Load(), AcceptErrors: t.acceptErrors.Load(), PendingRefused: t.pendingRefused.Load(),
		Dials: t.dials.Load(), DialErrors: t.dialErrors.Load(), Established: t.established.Load(),
		AuthFailed: by(wire.CodeAuthFailed), AuthMode: by(wire.CodeAuthMode), NotINOF: by(wire.CodeNotINOF), BadVersion: by(wire.CodeVersion),
		BadLength: by(wire.CodeLength), BadType: by(wire.CodeType), Malformed: by(wire.CodeMalformed), BadSequence: by(wire.CodeSequence),
		BadDevice: by(wire.CodeOwnID, wire.CodeDevice, wire.CodeRole), BadTimers: by(wire.CodeTimers), BadCertificate: by(wire.CodeCertificate), TLSFailed: by(wire.CodeTLS), Unexpected: by(wire.CodeUnexpected),
		HandshakeTimeout: by(wire.CodeHandshakeTimeout), HoldExpired: by(wire.CodeHoldExpired), Replaced: by(wire.CodeReplaced),
		Coalesced: t.coalesced.Load(), LimitRefused: by(wire.CodeLimit), GuessesRefused: t.guesses.Load(), SessionsRefused: t.tooMany.Load(), DuplicateRefused: by(wire.CodeDuplicate), SlowCut: by(wire.CodeSlow), NotifiedByPeer: t.byPeer.Load(),
		MsgIn: t.msgIn.Load(), MsgOut: t.msgOut.Load(), BytesIn: t.bytesIn.Load(), BytesOut: t.bytesOut.Load(), Writes: t.writes.Load(),
	}
}
