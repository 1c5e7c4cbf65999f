package cluster

import (
	"errors"
	"fmt"
)

// Code says why a change was refused. It is part of the replicated state: a number
// never changes its meaning.
type Code uint8

// The codes of a Refusal.
const (
	CodeOK       Code = 0
	CodeInvalid  Code = 1 // it can never be right
	CodeExists   Code = 2 // there is a zone of that name
	CodeNotFound Code = 3 // no zone of that name, or no such member in it
	CodeLimit    Code = 4 // too many zones or members, or a zone too large for a message
	CodeExpired  Code = 5 // a repetition that comes too late to tell whether it was applied before
	CodeUnformed Code = 6 // the cluster has no zones yet: its first entry is missing
	CodeConflict Code = 8 // it was made for another version than the one in force, or one waits for a confirmation
	CodeSettled  Code = 9 // no version waits for a confirmation
	CodeTooOld   Code = 7 // this member does not know the kind of an earlier entry: it needs a newer version
)

func (c Code) String() string {
	names := [...]string{"ok", "invalid", "exists", "not-found", "limit", "expired", "unformed", "too-old", "conflict", "settled"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Refusal is a change that the cluster has decided not to make. It is the same at
// every member.
type Refusal struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
}

// Error gives the text.
func (r *Refusal) Error() string { return r.Text }

func refuse(c Code, format string, args ...any) *Refusal {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxRefusalText {
		text = text[:maxRefusalText]
	}
	return &Refusal{Code: c, Text: text}
}

// maxRefusalText bounds what is kept of a refusal, in bytes.
const maxRefusalText = 512

// What a change can fail of beyond a Refusal.
var (
	// ErrNoLeader: fewer than half of the members can be reached, or no leader is
	// elected yet. Nothing was changed.
	ErrNoLeader = errors.New("this member reaches no majority of its cluster")
	// ErrUncertain: the leader was lost while it worked on the change. It may be
	// made yet, once; never twice.
	ErrUncertain = errors.New("it is not known whether the change will be made")
	// ErrStopped: the node has stopped.
	ErrStopped = errors.New("the cluster member has stopped")
)

// DecodeError is a byte sequence that is not what it should be.
type DecodeError struct {
	Where  string
	Detail string
}

// Error gives one line.
func (e *DecodeError) Error() string { return e.Where + ": " + e.Detail }

func broken(where, format string, args ...any) error {
	return &DecodeError{Where: where, Detail: fmt.Sprintf(format, args...)}
}
