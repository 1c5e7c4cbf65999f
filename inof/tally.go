package inof

import (
	"errors"
	"sync/atomic"
)

// tally counts for all connections of a Server or Dialer, from many goroutines.
type tally struct {
	accepted, acceptErrors, pendingRefused, dials, dialErrors, established atomic.Uint64
	byCode                                                                 [lastCode + 1]atomic.Uint64
	coalesced, guesses                                                     atomic.Uint64
	byPeer, msgIn, msgOut, bytesIn, bytesOut, writes                       atomic.Uint64
}

// count notes why a session ended.
func (t *tally) count(err error) {
	var peer *PeerError
	if errors.As(err, &peer) {
		t.byPeer.Add(1)
		if peer.Code == CodeDuplicate {
			t.byCode[CodeDuplicate].Add(1)
		}
	}
	if c := CodeOf(err); int(c) < len(t.byCode) {
		t.byCode[c].Add(1)
	}
}

func (t *tally) snapshot() TransportCounters {
	by := func(cs ...Code) (n uint64) {
		for _, c := range cs {
			n += t.byCode[c].Load()
		}
		return n
	}
	return TransportCounters{
		Accepted: t.accepted.Load(), AcceptErrors: t.acceptErrors.Load(), PendingRefused: t.pendingRefused.Load(),
		Dials: t.dials.Load(), DialErrors: t.dialErrors.Load(), Established: t.established.Load(),
		AuthFailed: by(CodeAuthFailed), AuthMode: by(CodeAuthMode), NotINOF: by(CodeNotINOF), BadVersion: by(CodeVersion),
		BadLength: by(CodeLength), BadType: by(CodeType), Malformed: by(CodeMalformed), BadSequence: by(CodeSequence),
		BadDevice: by(CodeOwnID, CodeDevice, CodeRole), BadTimers: by(CodeTimers), BadCertificate: by(CodeCertificate), TLSFailed: by(CodeTLS), Unexpected: by(CodeUnexpected),
		HandshakeTimeout: by(CodeHandshakeTimeout), HoldExpired: by(CodeHoldExpired), Replaced: by(CodeReplaced),
		Coalesced: t.coalesced.Load(), LimitRefused: by(CodeLimit), GuessesRefused: t.guesses.Load(), DuplicateRefused: by(CodeDuplicate), SlowCut: by(CodeSlow), NotifiedByPeer: t.byPeer.Load(),
		MsgIn: t.msgIn.Load(), MsgOut: t.msgOut.Load(), BytesIn: t.bytesIn.Load(), BytesOut: t.bytesOut.Load(), Writes: t.writes.Load(),
	}
}
