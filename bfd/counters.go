package bfd

import (
	"errors"
	"time"
)

// Counters of a Manager.
type Counters struct {
	PacketsIn  uint64 `json:"packets_in"`  // all that were handed in
	PacketsOut uint64 `json:"packets_out"` // echoes not included

	BadLength       uint64 `json:"bad_length"`
	BadVersion      uint64 `json:"bad_version"`
	BadDetectMult   uint64 `json:"bad_detect_mult"`
	BadMultipoint   uint64 `json:"bad_multipoint"`
	BadDiscr        uint64 `json:"bad_discriminator"` // zero where it must not be
	BadPollFinal    uint64 `json:"bad_poll_final"`
	BadTTL          uint64 `json:"bad_ttl"`
	BadSource       uint64 `json:"bad_source"` // a known discriminator from elsewhere
	NoSession       uint64 `json:"no_session"`
	Unnamed         uint64 `json:"unnamed_ignored"` // did not name a session that stands, without authentication
	AuthMissing     uint64 `json:"auth_missing"`    // on one side only
	AuthFailed      uint64 `json:"auth_failed"`
	AuthSeqRejected uint64 `json:"auth_sequence_rejected"`

	DetectExpired uint64 `json:"detect_expired"`
	PathDown      uint64 `json:"path_down"` // sessions taken down because of lost carrier
	Flaps         uint64 `json:"flaps"`     // Up sessions that went Down, AdminDown not included
	Restarts      uint64 `json:"restarts"`  // sessions Up again soon after one side was started anew
	Damped        uint64 `json:"damped"`    // flaps that made a hold-up time longer
	Polls         uint64 `json:"polls"`     // Poll Sequences of ours that ended
	FinalsLimited uint64 `json:"finals_limited"`

	EchoReturned uint64 `json:"echo_returned"`
	EchoRefused  uint64 `json:"echo_refused"` // not offered, no session that is Up, too fast or wrong TTL

	TxLate    uint64        `json:"tx_late"` // packets sent more than a quarter of their interval late
	TxLateMax time.Duration `json:"tx_late_max_ns"`
	Pauses    uint64        `json:"pauses"`       // times we were not run for longer than MinPause
	PauseMax  time.Duration `json:"pause_max_ns"` // the longest
	Graced    uint64        `json:"graced"`       // sessions given one more detection time after a pause
	Refused   uint64        `json:"refused"`      // wanted sessions that were not made
}

// note counts a packet that was discarded.
func (c *Counters) note(err error) {
	for _, r := range [...]struct {
		err error
		n   *uint64
	}{
		{ErrLength, &c.BadLength}, {ErrVersion, &c.BadVersion}, {ErrDetectMult, &c.BadDetectMult},
		{ErrMultipoint, &c.BadMultipoint}, {ErrMyDiscr, &c.BadDiscr}, {ErrYourDiscr, &c.BadDiscr},
		{ErrPollFinal, &c.BadPollFinal}, {ErrTTL, &c.BadTTL}, {ErrSource, &c.BadSource}, {ErrNoSession, &c.NoSession}, {ErrUnnamed, &c.Unnamed},
		{ErrAuthMissing, &c.AuthMissing}, {ErrAuth, &c.AuthFailed}, {ErrAuthSeq, &c.AuthSeqRejected},
	} {
		if errors.Is(err, r.err) {
			*r.n++
			return
		}
	}
}
