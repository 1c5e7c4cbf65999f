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

func (h *handler) zoningPaths() map[string]map[string]endpoint {
	settle := func(stay bool) endpoint {
		return func(r *http.Request) (any, error) {
			b, err := body[ZoneNumber](r)
			if err != nil {
				return nil, err
			}
			v, err := h.src.SettleZones(r.Context(), b.Number, stay)
			return v.whole(), err
		}
	}
	return map[string]map[string]endpoint{
		"/v1/zoning":                  {"GET": h.zoning},
		"/v1/zoning/check":            {"POST": h.checkZones},
		"/v1/zoning/commit":           {"POST": h.commitZones},
		"/v1/zoning/confirm":          {"POST": settle(true)},
		"/v1/zoning/abort":            {"POST": settle(false)},
		"/v1/zoning/history":          {"GET": h.zoneVersions},
		"/v1/zoning/history/{number}": {"GET": h.zonesAt},
	}
}

// whole has lists where there are none, for JSON.
func (v ZoneVersion) whole() ZoneVersion {
	v.Changes = present(v.Changes)
	return v
}

func (h *handler) zoning(r *http.Request) (any, error) {
	if err := query(r).close(); err != nil {
		return nil, err
	}
	z, err := h.src.Zoning(r.Context())
	z.Version = z.Version.whole()
	return z, err
}

// candidate reads the body of a change of all zones.
func candidate(r *http.Request) (ZoneCandidate, error) {
	c, err := body[ZoneCandidate](r)
	confirm := time.Duration(c.Confirm)
	switch {
	case err != nil:
	case c.Plan == nil:
		err = fmt.Errorf("%w: plan is missing", ErrInvalid)
	case confirm != 0 && (confirm < MinConfirm || confirm > MaxConfirm):
		err = fmt.Errorf("%w: confirm_s of %v: allowed are 0 and %v..%v", ErrInvalid, confirm, MinConfirm, MaxConfirm)
	case c.Extends != 0 && confirm == 0:
		err = fmt.Errorf("%w: extends without confirm_s: for how long?", ErrInvalid)
	case len(c.Comment) > MaxComment:
		err = fmt.Errorf("%w: the comment has %d bytes, at most %d", ErrInvalid, len(c.Comment), MaxComment)
	}
	return c, err
}

func (h *handler) checkZones(r *http.Request) (any, error) {
	c, err := candidate(r)
	if err != nil {
		return nil, err
	}
	v, err := h.src.CheckZones(r.Context(), c)
	v.Version = v.Version.whole()
	v.Errors, v.Warnings, v.Changes = present(v.Errors), present(v.Warnings), present(v.Changes)
	if x := v.Impact; x != nil {
		x.Told, x.Lost, x.Gained, x.AloneHosts = present(x.Told), present(x.Lost), present(x.Gained), present(x.AloneHosts)
	}
	return v, err
}

func (h *handler) commitZones(r *http.Request) (any, error) {
	c, err := candidate(r)
	if err != nil {
		return nil, err
	}
	if c.Base == "" {
		return nil, fmt.Errorf("%w: base is missing: the version that the candidate was made from", ErrInvalid)
	}
	v, err := h.src.CommitZones(r.Context(), c)
	v.Version = v.Version.whole()
	return v, err
}

func (h *handler) zoneVersions(r *http.Request) (any, error) {
	if err := query(r).close(); err != nil {
		return nil, err
	}
	list, err := h.src.ZoneVersions(r.Context())
	for i := range list {
		list[i] = list[i].whole()
	}
	slices.SortFunc(list, func(a, b ZoneVersion) int { return int(b.Number) - int(a.Number) })
	return present(list), err
}

func (h *handler) zonesAt(r *http.Request) (any, error) {
	if err := query(r).close(); err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(r.PathValue("number"), 10, 63)
	if err != nil {
		return nil, fmt.Errorf("%w: %.40q is no number of a version", ErrInvalid, r.PathValue("number"))
	}
	z, err := h.src.ZonesAt(r.Context(), number)
	z.Version = z.Version.whole()
	return z, err
}

// Zoning gives what operators write of zones.
func (c *Client) Zoning(ctx context.Context) (Zoning, error) {
	return get[Zoning](ctx, c, "/v1/zoning", nil)
}

// CheckZones says what is wrong with a candidate, and what it would do.
func (c *Client) CheckZones(ctx context.Context, x ZoneCandidate) (ZoneReview, error) {
	return ask[ZoneReview](ctx, c, http.MethodPost, "/v1/zoning/check", nil, x)
}

// CommitZones brings a candidate into force.
func (c *Client) CommitZones(ctx context.Context, x ZoneCandidate) (ZoneCommitted, error) {
	return ask[ZoneCommitted](ctx, c, http.MethodPost, "/v1/zoning/commit", nil, x)
}

// SettleZones has a version stay that waits for its confirmation, or takes it back.
func (c *Client) SettleZones(ctx context.Context, number uint64, stay bool) (ZoneVersion, error) {
	path := "/v1/zoning/abort"
	if stay {
		path = "/v1/zoning/confirm"
	}
	return ask[ZoneVersion](ctx, c, http.MethodPost, path, nil, ZoneNumber{number})
}

// ZoneVersions lists the versions that are kept, newest first.
func (c *Client) ZoneVersions(ctx context.Context) ([]ZoneVersion, error) {
	return get[[]ZoneVersion](ctx, c, "/v1/zoning/history", nil)
}

// ZonesAt gives what a version said.
func (c *Client) ZonesAt(ctx context.Context, number uint64) (Zoning, error) {
	return get[Zoning](ctx, c, "/v1/zoning/history/"+strconv.FormatUint(number, 10), nil)
}
