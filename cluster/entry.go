package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// EntryVersion is the version octet of every log entry that is made, before its JSON. An entry with
// a field more is of a version more: a member that meets a later one stops applying, since it cannot
// know what the others do with it. Entries of version 1 are read (entry1.go).
const EntryVersion = 2

// Kind says what an entry changes. The numbers are on disk.
type Kind uint8

// The kinds of entries.
const (
	KindGenesis       Kind = 1 // the first one: identity and rules of the cluster, its first zones
	KindAddZone       Kind = 2
	KindRemoveZone    Kind = 3
	KindAddMembers    Kind = 4 // members that are there already are no error
	KindRemoveMembers Kind = 5
	KindReplace       Kind = 6 // all zones at once; settings stay
	KindSetting       Kind = 7 // one setting
	KindCommit        Kind = 8 // a difference of plans, made for one version
	KindSettle        Kind = 9 // a version that waits stays, or is taken back
)

func (k Kind) String() string {
	names := [...]string{1: "genesis", 2: "add-zone", 3: "remove-zone", 4: "add-members", 5: "remove-members", 6: "replace", 7: "setting", 8: "commit", 9: "settle"}
	if int(k) < len(names) && names[k] != "" {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Limits of entries. Lengths are bytes.
const (
	MaxEntry    = 32 << 20 // a whole entry; the largest zones of all fit
	MaxSettings = 64       // names of settings that a cluster keeps
	maxKey      = 63
	maxValue    = 255
	maxWho      = 255
	maxBase     = 64
	MaxComment  = 1000
)

// Names of settings.
const (
	SettingAutoJoin = "default-zone-auto-join" // "true": a host in no zone is in the default zone
	SettingHard     = "hard-zoning"            // "true": isolation is asked for
)

// RequestID names a change, so that a repeated one is applied once: the process in
// which it arose and its number there.
type RequestID struct {
	Origin uint64 `json:"origin"`
	Number uint64 `json:"number"`
}

// Entry is one change as the log holds it.
type Entry struct {
	Kind Kind      `json:"kind"`
	ID   RequestID `json:"id"`
	// Since is the last index that the origin had applied when the change arose: if
	// it was applied before, it was later than this.
	Since uint64      `json:"since"`
	Meta  change.Meta `json:"meta"` // the caller, the way it came and the time
	// Member is the device of the member at which it was made, as its certificate says; the leader
	// sets it. Not valid: an entry of version 1.
	Member netip.Addr `json:"member"`

	Name    string        `json:"name,omitempty"`    // of the zone, or of the setting
	Members []zone.Member `json:"members,omitempty"` // of an added zone, or to be added or removed
	Value   string        `json:"value,omitempty"`   // of the setting
	Zones   []zone.Zone   `json:"zones,omitempty"`   // Genesis, Replace
	Cluster uint64        `json:"cluster,omitempty"` // Genesis: random, not zero
	Rules   zone.Rules    `json:"rules,omitzero"`    // Genesis: the same for all members, for ever
	Set     zone.Set      `json:"set,omitzero"`      // Genesis: AutoJoin and Hard; the zones are in Zones

	Delta    change.Delta `json:"delta,omitzero"`    // Commit
	Base     string       `json:"base,omitempty"`    // Commit: the version it was made for; empty: whichever there is
	Deadline time.Time    `json:"deadline,omitzero"` // Commit: without a confirmation before it is rolled back; zero: it stays
	Number   uint64       `json:"number,omitempty"`  // Settle: of the version that waits; 0: whichever does. Commit: see change.Order.Extends
	Stay     bool         `json:"stay,omitempty"`    // Settle: it stays
}

// Encode returns the bytes of an entry. The error is a *Refusal.
func (e *Entry) Encode() ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	c := *e
	c.Set.Zones, c.Meta.Time, c.Deadline = nil, e.Meta.Time.UTC(), e.Deadline.UTC()
	text, err := json.Marshal(&c)
	if err != nil {
		return nil, refuse(CodeInvalid, "%v", err)
	}
	if len(text) >= MaxEntry {
		return nil, refuse(CodeLimit, "the change has %d bytes, at most %d: make it in parts", len(text), MaxEntry)
	}
	return append([]byte{EntryVersion}, text...), nil
}

// check reports a text that is too long, or an unknown kind.
func (e *Entry) check() error {
	longest := zone.MaxName
	if e.Kind == KindSetting {
		longest = maxKey
	}
	switch {
	case e.Kind < KindGenesis || e.Kind > KindSettle:
		return refuse(CodeInvalid, "%v is no kind of change", e.Kind)
	case len(e.Meta.By) > maxWho || len(e.Meta.From) > maxWho || len(e.Meta.Comment) > MaxComment:
		return refuse(CodeInvalid, "the name of the caller, its origin or the comment is too long: at most %d and %d bytes", maxWho, MaxComment)
	case len(e.Name) > longest:
		return refuse(CodeInvalid, "name %.80q has %d bytes, at most %d", e.Name, len(e.Name), longest)
	case len(e.Value) > maxValue:
		return refuse(CodeInvalid, "setting %.80q: the value has %d bytes, at most %d", e.Name, len(e.Value), maxValue)
	case len(e.Base) > maxBase:
		return refuse(CodeInvalid, "%.80q is no version", e.Base)
	}
	for _, z := range e.Zones {
		if len(z.Name) > zone.MaxName {
			return refuse(CodeInvalid, "zone name %.80q has %d bytes, at most %d", z.Name, len(z.Name), zone.MaxName)
		}
	}
	return nil
}

// UnknownEntryError is an entry of a version or kind that this one does not know.
type UnknownEntryError struct {
	Version uint8
	Kind    Kind
}

// Error says what to do.
func (e *UnknownEntryError) Error() string {
	return fmt.Sprintf("entry version %d, %v is unknown to this version of inofd: upgrade this member", e.Version, e.Kind)
}

// DecodeEntry is the inverse of Encode. The error is a *DecodeError, or an
// *UnknownEntryError.
func DecodeEntry(b []byte) (*Entry, error) {
	switch {
	case len(b) > MaxEntry:
		return nil, broken("entry", "%d bytes, at most %d", len(b), MaxEntry)
	case len(b) == 0:
		return nil, broken("entry", "it is empty")
	case b[0] == 1:
		return decodeEntry1(b)
	case b[0] != EntryVersion:
		return nil, &UnknownEntryError{Version: b[0]}
	}
	e := new(Entry)
	dec := json.NewDecoder(bytes.NewReader(b[1:]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(e); err != nil {
		return nil, broken("entry", "%v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, broken("entry", "something follows it")
	}
	if e.Kind < KindGenesis || e.Kind > KindSettle {
		return nil, &UnknownEntryError{EntryVersion, e.Kind}
	}
	if err := e.check(); err != nil {
		return nil, broken("entry", "%v", err)
	}
	return e, nil
}
