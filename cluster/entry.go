package cluster

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// EntryVersion is the version octet of every log entry. A member that meets another
// one stops applying, since it cannot know what the others do with it.
const EntryVersion = 1

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
	maxMember   = 400      // one zone member as text
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
	Origin, Number uint64
}

// Entry is one change as the log holds it.
type Entry struct {
	Kind Kind
	ID   RequestID
	// Since is the last index that the origin had applied when the change arose: if
	// it was applied before, it was later than this.
	Since uint64
	Meta  change.Meta // who makes it, from where and when; the time in nanoseconds

	Name    string        // of the zone, or of the setting
	Members []zone.Member // of an added zone, or to be added or removed
	Value   string        // of the setting
	Zones   []zone.Zone   // Genesis, Replace
	Cluster uint64        // Genesis: random, not zero
	Rules   zone.Rules    // Genesis: the same for all members, for ever
	Set     zone.Set      // Genesis: AutoJoin and Hard; the zones are in Zones

	Delta    change.Delta // Commit
	Base     string       // Commit: the version it was made for; empty: whichever there is
	Deadline time.Time    // Commit: without a confirmation before it is taken back; zero: it stays
	Number   uint64       // Settle: of the version that waits; 0: whichever does. Commit: see change.Order.Extends
	Stay     bool         // Settle: it stays
}

// Encode gives the bytes of an entry. The error is a *Refusal.
func (e *Entry) Encode() ([]byte, error) {
	b := make([]byte, 0, 256)
	b = append(b, EntryVersion, byte(e.Kind))
	b = binary.BigEndian.AppendUint64(b, e.ID.Origin)
	b = binary.BigEndian.AppendUint64(b, e.ID.Number)
	b = binary.BigEndian.AppendUint64(b, e.Since)
	b, err := appendMeta(b, &e.Meta)
	if err != nil {
		return nil, err
	}
	switch e.Kind {
	case KindGenesis:
		b = binary.BigEndian.AppendUint64(b, e.Cluster)
		b = appendFlag(appendFlag(b, e.Set.AutoJoin), e.Set.Hard)
		b = appendRules(b, e.Rules)
		b, err = appendZones(b, e.Zones)
	case KindAddZone, KindAddMembers, KindRemoveMembers:
		b, err = appendZone(b, zone.Zone{Name: e.Name, Members: e.Members})
	case KindRemoveZone:
		b, err = appendName(b, e.Name)
	case KindReplace:
		b, err = appendZones(b, e.Zones)
	case KindSetting:
		if len(e.Name) > maxKey || len(e.Value) > maxValue {
			return nil, refuse(CodeInvalid, "setting %.80q: name or value is too long", e.Name)
		}
		b = appendText(appendText(b, e.Name), e.Value)
	case KindCommit:
		if len(e.Base) > maxBase {
			return nil, refuse(CodeInvalid, "%.80q is no version", e.Base)
		}
		b = appendTime(appendText(b, e.Base), e.Deadline)
		delta, jsonErr := json.Marshal(&e.Delta)
		if jsonErr != nil {
			return nil, refuse(CodeInvalid, "%v", jsonErr)
		}
		b = appendBytes(b, delta)
		if e.Number != 0 { // last, and only if it says something: logs from before it have no place for it
			b = binary.BigEndian.AppendUint64(b, e.Number)
		}
	case KindSettle:
		b = appendFlag(binary.BigEndian.AppendUint64(b, e.Number), e.Stay)
	default:
		return nil, refuse(CodeInvalid, "%v is no kind of change", e.Kind)
	}
	if err == nil && len(b) > MaxEntry {
		err = refuse(CodeLimit, "the change has %d bytes, at most %d: make it in parts", len(b), MaxEntry)
	}
	return b, err
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
	if len(b) > MaxEntry {
		return nil, broken("entry", "%d bytes, at most %d", len(b), MaxEntry)
	}
	r := &reader{b: b, where: "entry"}
	version := r.u8("version")
	e := &Entry{Kind: Kind(r.u8("kind"))}
	if r.err == nil && (version != EntryVersion || e.Kind < KindGenesis || e.Kind > KindSettle) {
		return nil, &UnknownEntryError{version, e.Kind}
	}
	e.ID = RequestID{r.u64("origin"), r.u64("number")}
	e.Since = r.u64("since")
	e.Meta = r.meta()
	switch e.Kind {
	case KindGenesis:
		e.Cluster = r.u64("cluster")
		e.Set.AutoJoin, e.Set.Hard = r.flag("auto-join"), r.flag("hard")
		e.Rules = r.rules()
		e.Zones = r.zones()
	case KindAddZone, KindAddMembers, KindRemoveMembers:
		z := r.zone()
		e.Name, e.Members = z.Name, z.Members
	case KindRemoveZone:
		e.Name = r.text("name", zone.MaxName)
	case KindReplace:
		e.Zones = r.zones()
	case KindSetting:
		e.Name, e.Value = r.text("setting", maxKey), r.text("value", maxValue)
	case KindCommit:
		e.Base, e.Deadline = r.text("base", maxBase), r.time("deadline")
		if text := r.bytes("difference", MaxEntry); r.err == nil {
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&e.Delta); err != nil {
				r.fail("difference: %v", err)
			} else if _, err := dec.Token(); err != io.EOF {
				r.fail("difference: something follows it")
			}
		}
		if len(r.b) > 0 {
			if e.Number = r.u64("extends"); e.Number == 0 {
				r.fail("extends: 0, which is not written")
			}
		}
	case KindSettle:
		e.Number, e.Stay = r.u64("number"), r.flag("stay")
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return e, nil
}

// appendTime writes nanoseconds since 1970, 0 for no time.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.BigEndian.AppendUint64(b, 0)
	}
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixNano()))
}

func (r *reader) time(what string) time.Time {
	if n := r.u64(what); n != 0 {
		return time.Unix(0, int64(n)).UTC()
	}
	return time.Time{}
}

func appendMeta(b []byte, m *change.Meta) ([]byte, error) {
	if len(m.By) > maxWho || len(m.From) > maxWho || len(m.Comment) > MaxComment {
		return nil, refuse(CodeInvalid, "who makes the change, or the comment, is too long: at most %d and %d bytes", maxWho, MaxComment)
	}
	return appendText(appendText(appendText(appendTime(b, m.Time), m.By), m.From), m.Comment), nil
}

func (r *reader) meta() change.Meta {
	return change.Meta{Time: r.time("time"), By: r.text("by", maxWho), From: r.text("from", maxWho), Comment: r.text("comment", MaxComment)}
}

func appendRules(b []byte, rules zone.Rules) []byte {
	b = appendFlag(b, rules.AllowLoopback)
	b = binary.BigEndian.AppendUint32(b, uint32(rules.MaxZones))
	return binary.BigEndian.AppendUint32(b, uint32(rules.MaxMembers))
}

func (r *reader) rules() zone.Rules {
	return zone.Rules{AllowLoopback: r.flag("allow-loopback"), MaxZones: int(r.u32("max zones")), MaxMembers: int(r.u32("max members"))}
}

func appendName(b []byte, name string) ([]byte, error) {
	if len(name) > zone.MaxName {
		return nil, refuse(CodeInvalid, "zone name %.80q has %d bytes, at most %d", name, len(name), zone.MaxName)
	}
	return appendText(b, name), nil
}

func appendZone(b []byte, z zone.Zone) ([]byte, error) {
	b, err := appendName(b, z.Name)
	if err != nil {
		return nil, err
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(z.Members)))
	for _, m := range z.Members {
		text, err := m.MarshalText()
		if err != nil {
			return nil, refuse(CodeInvalid, "%v", err)
		}
		b = appendText(b, string(text))
	}
	return b, nil
}

func appendZones(b []byte, zones []zone.Zone) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(b, uint32(len(zones)))
	var err error
	for _, z := range zones {
		if b, err = appendZone(b, z); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (r *reader) zone() zone.Zone {
	z := zone.Zone{Name: r.text("zone name", zone.MaxName)}
	n := r.count("members", maxCount, 2)
	if n == 0 {
		return z
	}
	z.Members = make([]zone.Member, 0, min(n, 4096))
	for range n {
		text := r.text("member", maxMember)
		if r.err != nil {
			return z
		}
		m, err := zone.ParseMember(text)
		if err != nil {
			r.fail("%v", err)
			return z
		}
		z.Members = append(z.Members, m)
	}
	return z
}

func (r *reader) zones() []zone.Zone {
	n := r.count("zones", maxCount, 6)
	if n == 0 {
		return nil
	}
	out := make([]zone.Zone, 0, min(n, 4096))
	for range n {
		out = append(out, r.zone())
		if r.err != nil {
			return nil
		}
	}
	return out
}

// maxCount is more than rules ever allow.
const maxCount = 4 << 20
