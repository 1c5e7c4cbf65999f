package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// MaxCandidate is the largest request body of a change of all zones, in bytes.
const MaxCandidate = 32 << 20

// ZoningSource changes the zones as a whole. All of it is refused (ErrRefused) on a device that is
// a client only.
type ZoningSource interface {
	// Zoning gives what operators write of zones.
	Zoning(ctx context.Context) (Zoning, error)
	// CheckZones says what is wrong with a candidate, what it changes and what hosts would be told.
	// Nothing is changed.
	CheckZones(ctx context.Context, c ZoneCandidate) (ZoneReview, error)
	// CommitZones brings a candidate into force. ErrConflict when the zones were changed since its
	// base, or a change waits for its confirmation; ErrInvalid when it has errors; ErrRefused when
	// it takes too many hosts apart.
	CommitZones(ctx context.Context, c ZoneCandidate) (ZoneCommitted, error)
	// SettleZones has a version stay that waits for its confirmation, or takes it back; number 0:
	// whichever waits. ErrRefused when none does.
	SettleZones(ctx context.Context, number uint64, stay bool) (ZoneVersion, error)
	// ZoneVersions gives the versions that are kept, newest first.
	ZoneVersions(ctx context.Context) ([]ZoneVersion, error)
	// ZonesAt gives what a version said. ErrNotFound when it is not kept.
	ZonesAt(ctx context.Context, number uint64) (Zoning, error)
}

// Zoning is what operators write of zones, as one version has it.
type Zoning struct {
	Device  netip.Addr   `json:"device"`
	Version ZoneVersion  `json:"version"`
	Plan    *change.Plan `json:"plan"`
}

// ZoneVersion is one version of the zones.
type ZoneVersion struct {
	Number  uint64    `json:"number"`
	Base    string    `json:"base"` // what a change of it names
	Time    time.Time `json:"time"`
	By      string    `json:"by"`
	From    string    `json:"from"`
	Comment string    `json:"comment"`
	Changes []string  `json:"changes"` // the first of them, a line each
	// Confirm is the moment at which it is taken back if nobody confirms it; absent: it stays.
	Confirm *time.Time `json:"confirm_before,omitempty"`
}

// ZoneCandidate is a change of all zones that somebody wants to make.
type ZoneCandidate struct {
	Plan *change.Plan `json:"plan"`
	Base string       `json:"base"` // of the version that it was made from
	// Confirm is after how long it is taken back if nobody confirms it, 0 or
	// MinConfirm..MaxConfirm; 0: it stays.
	Confirm Duration `json:"confirm_s,omitempty"`
	// Extends is the number of a version that waits and is to wait for Confirm from now on, with
	// this change (which may be none) as a part of it; 0: none waits.
	Extends uint64 `json:"extends,omitempty"`
	Comment string `json:"comment,omitempty"` // at most MaxComment bytes
	Force   bool   `json:"force,omitempty"`   // also when many hosts are taken apart
}

// Limits of a ZoneCandidate.
const (
	MinConfirm = 5 * time.Second
	MaxConfirm = 24 * time.Hour
	MaxComment = 1000 // bytes
)

// ZoneReview is what is said of a candidate.
type ZoneReview struct {
	Device   netip.Addr   `json:"device"`
	Version  ZoneVersion  `json:"version"`  // in force
	Conflict string       `json:"conflict"` // why it cannot be made on this version; empty: it can
	Errors   []string     `json:"errors"`
	Warnings []string     `json:"warnings"`
	Changes  []string     `json:"changes"` // a line each
	Impact   *zone.Impact `json:"impact"`  // nil: there are errors
	// Loss is why it needs Force; empty: it does not.
	Loss string `json:"loss"`
	// Told is how long hosts are being told at least, at the pacing of this device.
	Told Duration `json:"told_s"`
}

// ZoneCommitted is what became of a candidate.
type ZoneCommitted struct {
	Device  netip.Addr  `json:"device"`
	Changed bool        `json:"changed"` // false: it says what is in force
	Version ZoneVersion `json:"version"`
}

// ZoneNumber is the body of what is done to a version.
type ZoneNumber struct {
	Number uint64 `json:"number"`
}

// Actions on all zones.
var (
	// CheckZones says what is wrong with a candidate, and what it would do.
	CheckZones = Action[ZoneCandidate, ZoneReview]{path: "/v1/zoning/check", role: Viewer, check: (*ZoneCandidate).wrong, do: Source.CheckZones, whole: (*ZoneReview).whole}
	// CommitZones brings a candidate into force.
	CommitZones = Action[ZoneCandidate, ZoneCommitted]{path: "/v1/zoning/commit", do: Source.CommitZones, whole: func(c *ZoneCommitted) { c.Version.whole() },
		check: func(c *ZoneCandidate) string {
			if wrong := c.wrong(); wrong != "" || c.Base != "" {
				return wrong
			}
			return "base is missing: the version that the candidate was made from"
		}}
	// ConfirmZones has a version stay that waits for its confirmation, AbortZones takes it back.
	ConfirmZones, AbortZones = settle("confirm", true), settle("abort", false)
)

func settle(word string, stay bool) Action[ZoneNumber, ZoneVersion] {
	return Action[ZoneNumber, ZoneVersion]{path: "/v1/zoning/" + word, whole: (*ZoneVersion).whole,
		do: func(src Source, ctx context.Context, n ZoneNumber) (ZoneVersion, error) {
			return src.SettleZones(ctx, n.Number, stay)
		}}
}

func (v *ZoneVersion) whole() { Some(&v.Changes) }

func (r *ZoneReview) whole() {
	r.Version.whole()
	Some(&r.Errors)
	Some(&r.Warnings)
	Some(&r.Changes)
	if x := r.Impact; x != nil {
		Some(&x.Told)
		Some(&x.Lost)
		Some(&x.Gained)
		Some(&x.AloneHosts)
	}
}

func (c *ZoneCandidate) wrong() string {
	switch {
	case c.Plan == nil:
		return "plan is missing"
	case wrongConfirm(c.Confirm) != "":
		return wrongConfirm(c.Confirm)
	case c.Extends != 0 && c.Confirm == 0:
		return "extends without confirm_s: for how long?"
	case len(c.Comment) > MaxComment:
		return fmt.Sprintf("the comment has %d bytes, at most %d", len(c.Comment), MaxComment)
	}
	return ""
}

// zoning serves GET /v1/zoning.
func (h *handler) zoning(r *http.Request) (any, error) {
	z, err := h.src.Zoning(r.Context())
	z.Version.whole()
	return z, err
}

// zoneVersions serves GET /v1/zoning/history.
func (h *handler) zoneVersions(r *http.Request) (any, error) {
	list, err := h.src.ZoneVersions(r.Context())
	for i := range list {
		list[i].whole()
	}
	slices.SortFunc(list, func(a, b ZoneVersion) int { return int(b.Number) - int(a.Number) })
	Some(&list)
	return list, err
}

// zonesAt serves GET /v1/zoning/history/{number}.
func (h *handler) zonesAt(r *http.Request) (any, error) {
	number, err := strconv.ParseUint(r.PathValue("number"), 10, 63)
	if err != nil {
		return nil, fmt.Errorf("%w: %.40q is no number of a version", ErrInvalid, r.PathValue("number"))
	}
	z, err := h.src.ZonesAt(r.Context(), number)
	z.Version.whole()
	return z, err
}

// Zoning gives what operators write of zones.
func (c *Client) Zoning(ctx context.Context) (Zoning, error) {
	return get[Zoning](ctx, c, "/v1/zoning", nil)
}

// SettleZones has a version stay that waits for its confirmation, or takes it back.
func (c *Client) SettleZones(ctx context.Context, number uint64, stay bool) (ZoneVersion, error) {
	if stay {
		return ConfirmZones.Ask(ctx, c, ZoneNumber{number})
	}
	return AbortZones.Ask(ctx, c, ZoneNumber{number})
}
