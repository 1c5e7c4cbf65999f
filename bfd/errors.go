package bfd

import (
	"errors"
	"fmt"
)

// Reasons why a packet is discarded; a *PacketError wraps one of them.
var (
	ErrVersion     = errors.New("unsupported version")
	ErrLength      = errors.New("bad length")
	ErrDetectMult  = errors.New("zero Detect Mult")
	ErrMultipoint  = errors.New("multipoint bit is set")
	ErrMyDiscr     = errors.New("zero My Discriminator")
	ErrPollFinal   = errors.New("both Poll and Final are set")
	ErrNoSession   = errors.New("no session")
	ErrYourDiscr   = errors.New("zero Your Discriminator in a state that must know it")
	ErrUnnamed     = errors.New("zero Your Discriminator while a session stands")
	ErrSource      = errors.New("not from the peer of the session")
	ErrTTL         = errors.New("TTL or hop limit too small")
	ErrAuth        = errors.New("authentication failed")
	ErrAuthMissing = errors.New("authentication is in use on one side only")
	ErrAuthSeq     = errors.New("authentication sequence number outside the window")
)

// PacketError says what is wrong with a received packet.
type PacketError struct {
	Err   error  // one of the reasons above
	Where string // the field
	Value int64  // what was there
	Want  string // what is allowed
}

func (e *PacketError) Error() string {
	return fmt.Sprintf("BFD packet: %v: %s is %d, want %s", e.Err, e.Where, e.Value, e.Want)
}

// Unwrap gives the reason.
func (e *PacketError) Unwrap() error { return e.Err }

// ConfigError says what is wrong with a wanted session.
type ConfigError struct {
	Where string // the session and the field
	Value string
	Want  string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s is %s, want %s", e.Where, e.Value, e.Want)
}

// LimitError is returned for sessions beyond Config.MaxSessions.
type LimitError struct {
	Refused int // sessions that were not made
	Limit   int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d BFD session(s) refused: the limit is %d", e.Refused, e.Limit)
}
