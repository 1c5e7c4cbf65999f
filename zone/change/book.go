package change

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxVersions is how many versions a Book keeps.
const MaxVersions = 50

// shownLines bounds how many lines of a difference a refusal shows.
const shownLines = 8

// Meta says of a change who made it, from where, when and what for.
type Meta struct {
	Time    time.Time `json:"time"`
	By      string    `json:"by"`                // user, uid, process; or "zone file"
	From    string    `json:"from"`              // device, and the way to it
	Comment string    `json:"comment,omitempty"` // what the operator says
}

// Version is one state of the zones.
type Version struct {
	Number uint64 `json:"number"` // from 1 on, never used twice
	Base   string `json:"base"`   // what a change of it names, see Sum.Base
	Meta
	// Lines say what it changed, the first of them.
	Lines []string `json:"lines"`
	// Back leads to the version before; empty in the oldest that is kept.
	Back Delta `json:"back"`
}

// Pending says that the last version waits for its confirmation.
type Pending struct {
	Number uint64 `json:"number"`
	// Since is the version that is in force again when this is taken back: the one before the first
	// change of those that wait together.
	Since    uint64    `json:"since,omitempty"`
	Deadline time.Time `json:"deadline"`
}

// Order is a change of a Book.
type Order struct {
	Delta Delta `json:"delta"`
	// Base is the version the change was made for; empty: whichever there is.
	Base string `json:"base,omitempty"`
	Meta Meta   `json:"meta"`
	// Deadline: without a confirmation before it the change is taken back; zero: it stays.
	Deadline time.Time `json:"deadline,omitzero"`
	// Extends is the version that waits and is to wait until Deadline, with this change (which may
	// be none) as a part of it: both stay, or both are taken back. 0: none waits.
	Extends uint64 `json:"extends,omitempty"`
}

// Sentinels that the errors of a Book wrap.
var (
	// ErrConflict: somebody else has changed the zones meanwhile.
	ErrConflict = errors.New("the zones were changed since")
	// ErrPending: the last version waits for its confirmation.
	ErrPending = errors.New("a change waits for its confirmation")
	// ErrSettled: there is nothing to confirm or to take back.
	ErrSettled = errors.New("no change waits for a confirmation")
	// ErrNoVersion: that version is not kept.
	ErrNoVersion = errors.New("no such version")
)

// Book is a plan with its versions. The zero value is not usable, see NewBook.
type Book struct {
	plan     *Plan
	sum      Sum
	versions []Version // oldest first; never empty
	pending  *Pending
}

// NewBook begins with a plan as version 1.
func NewBook(p *Plan, m Meta) *Book { return NewBookAfter(0, p, m) }

// NewBookAfter begins with a plan as the version after a number, where those before are lost.
func NewBookAfter(number uint64, p *Plan, m Meta) *Book {
	b := &Book{plan: p.Clone()}
	b.sum = b.plan.Sum()
	b.versions = []Version{{Number: number + 1, Base: b.sum.Base(), Meta: m, Lines: []string{}}}
	return b
}

// Restore gives the Book that had this plan and these versions; false: they do not belong
// together.
func Restore(p *Plan, versions []Version, pending *Pending) (*Book, bool) {
	b := &Book{plan: p.Clone(), versions: slices.Clone(versions)}
	b.sum = b.plan.Sum()
	last := len(versions) - 1
	if last < 0 || versions[last].Base != b.sum.Base() || len(versions) > MaxVersions {
		return nil, false
	}
	for i := range versions {
		if versions[i].Number == 0 || i > 0 && versions[i].Number <= versions[i-1].Number {
			return nil, false
		}
	}
	if pending != nil && pending.Number == versions[last].Number && last > 0 {
		p := *pending
		if p.Since == 0 {
			p.Since = versions[last-1].Number
		}
		if slices.ContainsFunc(versions[:last], func(v Version) bool { return v.Number == p.Since }) {
			b.pending = &p
		}
	}
	return b, true
}

// Clone gives a Book that can be changed without changing this one.
func (b *Book) Clone() *Book {
	return &Book{plan: b.plan.Clone(), sum: b.sum, versions: slices.Clone(b.versions), pending: b.Pending()}
}

// Plan gives the plan in force; it must not be changed.
func (b *Book) Plan() *Plan { return b.plan }

// Base names the plan in force.
func (b *Book) Base() string { return b.sum.Base() }

// Last gives the version in force.
func (b *Book) Last() Version { return b.versions[len(b.versions)-1] }

// Versions gives the versions that are kept, oldest first.
func (b *Book) Versions() []Version { return slices.Clone(b.versions) }

// Pending gives what waits for a confirmation; nil: nothing does.
func (b *Book) Pending() *Pending {
	if b.pending == nil {
		return nil
	}
	p := *b.pending
	return &p
}

// Due reports whether the last version is to be taken back.
func (b *Book) Due(now time.Time) bool { return b.pending != nil && !now.Before(b.pending.Deadline) }

// At gives the plan of a version that is kept. The error wraps ErrNoVersion.
func (b *Book) At(number uint64) (*Plan, error) {
	i := slices.IndexFunc(b.versions, func(v Version) bool { return v.Number == number })
	if i < 0 {
		return nil, fmt.Errorf("%w: %d is not kept, versions %d to %d are", ErrNoVersion, number, b.versions[0].Number, b.Last().Number)
	}
	p := b.plan.Clone()
	for j := len(b.versions) - 1; j > i; j-- {
		p.Apply(&b.versions[j].Back)
	}
	return p, nil
}

// Admit says whether a change may be made; the error wraps ErrConflict, ErrPending or ErrSettled
// and shows what is different. For extends see Order.
func (b *Book) Admit(base string, extends uint64) error {
	if extends != 0 {
		if err := b.waits(extends); err != nil {
			return err
		}
		if b.versions[0].Number >= b.pending.Since && len(b.versions) == MaxVersions {
			return fmt.Errorf("%w: too many changes wait with it, version %d would not be kept: confirm or abort first", ErrPending, b.pending.Since)
		}
	} else if b.pending != nil {
		return fmt.Errorf("%w: version %d by %s, until %s: confirm or abort it first", ErrPending, b.pending.Number, b.Last().By, b.pending.Deadline.UTC().Format(time.RFC3339))
	}
	if base == "" || base == b.Base() {
		return nil
	}
	last := b.Last()
	text := fmt.Sprintf("version %d (%s) by %s is in force now", last.Number, last.Base, last.By)
	for i := len(b.versions) - 2; i >= 0; i-- {
		if b.versions[i].Base == base {
			old, _ := b.At(b.versions[i].Number) // it is kept
			d := Diff(old, b.plan)
			return fmt.Errorf("%w version %d (%s), on which this change is based: %s: %s", ErrConflict, b.versions[i].Number, base, text, strings.Join(d.Lines(old, shownLines), "; "))
		}
	}
	return fmt.Errorf("%w %s, on which this change is based and which is not kept: %s", ErrConflict, base, text)
}

// Commit makes a change and returns its version. One that changes nothing makes none: made is
// false then, unless what waits is given more time.
func (b *Book) Commit(o Order) (v Version, made bool, err error) {
	if err := b.Admit(o.Base, o.Extends); err != nil {
		return v, false, err
	}
	since := b.Last().Number
	if b.pending != nil {
		since = b.pending.Since
	}
	d := b.minimal(&o.Delta)
	if d.Empty() {
		if b.pending != nil && !o.Deadline.IsZero() {
			b.pending.Deadline = o.Deadline
			return b.Last(), true, nil
		}
		return b.Last(), false, nil
	}
	v = b.push(&d, o.Meta)
	b.pending = nil
	if !o.Deadline.IsZero() {
		b.pending = &Pending{Number: v.Number, Since: since, Deadline: o.Deadline}
	}
	return v, true, nil
}

// minimal gives what of a Delta changes something here.
func (b *Book) minimal(d *Delta) Delta {
	next := &Plan{Aliases: part(b.plan.Aliases, d.Put.Aliases, d.Gone.Aliases), Zones: part(b.plan.Zones, d.Put.Zones, d.Gone.Zones),
		Sets: part(b.plan.Sets, d.Put.Sets, d.Gone.Sets), Active: b.plan.Active}
	before := next.Clone()
	next.Apply(d)
	return Diff(before, next)
}

// part gives what of a map a Delta touches.
func part[V any](m, put map[string]V, gone []string) map[string]V {
	out := map[string]V{}
	for name := range put {
		if v, ok := m[name]; ok {
			out[name] = v
		}
	}
	for _, name := range gone {
		if v, ok := m[name]; ok {
			out[name] = v
		}
	}
	return out
}

func (b *Book) push(d *Delta, m Meta) Version {
	v := Version{Number: b.Last().Number + 1, Meta: m, Lines: d.Lines(b.plan, shownLines)}
	was := b.plan.sumOf(d)
	v.Back = b.plan.Apply(d)
	is := b.plan.sumOf(d)
	for i := range b.sum {
		b.sum[i] ^= was[i] ^ is[i]
	}
	v.Base = b.sum.Base()
	b.versions = append(b.versions, v)
	if n := len(b.versions) - MaxVersions; n > 0 {
		b.versions = slices.Clone(b.versions[n:])
		b.versions[0].Back = Delta{}
	}
	return v
}

// Confirm ends the waiting of version number (0: of whichever waits). The error wraps ErrSettled.
func (b *Book) Confirm(number uint64) (Version, error) {
	if err := b.waits(number); err != nil {
		return Version{}, err
	}
	b.pending = nil
	return b.Last(), nil
}

// Abort takes version number back (0: whichever waits), which makes a new version that says what
// the one before it said. The error wraps ErrSettled.
func (b *Book) Abort(number uint64, m Meta) (Version, error) {
	if err := b.waits(number); err != nil {
		return Version{}, err
	}
	back := b.wayBack()
	b.pending = nil
	return b.push(&back, m), nil
}

// WayBack is what taking back changes; empty where nothing waits.
func (b *Book) WayBack() Delta {
	if b.pending == nil {
		return Delta{}
	}
	return b.wayBack()
}

func (b *Book) wayBack() Delta {
	old, _ := b.At(b.pending.Since) // it is kept: Restore and Admit see to that
	return Diff(b.plan, old)
}

func (b *Book) waits(number uint64) error {
	switch {
	case b.pending == nil:
		return fmt.Errorf("%w: version %d is in force", ErrSettled, b.Last().Number)
	case number != 0 && number != b.pending.Number:
		return fmt.Errorf("%w: not version %d, but version %d does", ErrSettled, number, b.pending.Number)
	}
	return nil
}

// kept is a Book as JSON.
type kept struct {
	Plan     *Plan     `json:"plan"`
	Versions []Version `json:"versions"`
	Pending  *Pending  `json:"pending,omitempty"`
}

// MarshalJSON writes all of a Book; equal ones give equal bytes.
func (b *Book) MarshalJSON() ([]byte, error) {
	return json.Marshal(kept{b.plan, b.versions, b.pending})
}

// UnmarshalJSON is the inverse of MarshalJSON. Whether the plan may be is for Check to say.
func (b *Book) UnmarshalJSON(text []byte) error {
	var k kept
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&k); err != nil {
		return err
	}
	if k.Plan == nil {
		return errors.New("a book without a plan")
	}
	read, ok := Restore(k.Plan, k.Versions, k.Pending)
	if !ok {
		return errors.New("the versions of a book do not belong to its plan")
	}
	*b = *read
	return nil
}
