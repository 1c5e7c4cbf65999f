package api

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// ConfigSource brings the daemon's own file into force, with a way back.
type ConfigSource interface {
	// CheckConfig says what the file would change. Nothing is changed.
	CheckConfig(ctx context.Context) (ConfigReview, error)
	// CommitConfig brings the file into force. ErrInvalid when it has errors; ErrRefused when it
	// changes what only a restart can, or takes hosts away and is not forced; ErrConflict while
	// an earlier one waits for its confirmation.
	CommitConfig(ctx context.Context, o ConfigOrder) (ConfigReview, error)
	// ConfirmConfig has a configuration stay that waits. ErrRefused when none does.
	ConfirmConfig(ctx context.Context) (ConfigReview, error)
	// UndoConfig brings the configuration before the last commit into force. ErrRefused when that
	// is not known.
	UndoConfig(ctx context.Context) (ConfigReview, error)
}

// ConfigOrder is how a configuration is brought into force.
type ConfigOrder struct {
	Confirm Duration `json:"confirm_s,omitempty"` // as of ZoneCandidate
	Force   bool     `json:"force,omitempty"`     // also when hosts are taken away by it
}

// ConfigReview is how the configuration file stands to what is in force.
type ConfigReview struct {
	File     string         `json:"file"`
	Problems []string       `json:"problems"` // errors of the file
	Changes  []ConfigChange `json:"changes"`  // what the file says otherwise
	Loss     string         `json:"loss"`     // hosts that it would take away; empty: none
	// Confirm is until when what is in force has to be confirmed; absent: it stays.
	Confirm *time.Time `json:"confirm_before,omitempty"`
	// Back: what is in force is the configuration before the one in the file.
	Back bool `json:"back"`
}

// ConfigChange is one setting that differs.
type ConfigChange struct {
	Key     string `json:"key"`
	Old     string `json:"old"` // in force
	New     string `json:"new"` // in the file
	Restart bool   `json:"restart"`
}

func (h *handler) configPaths() map[string]map[string]endpoint {
	plain := func(do func(context.Context) (ConfigReview, error)) endpoint {
		return func(r *http.Request) (any, error) {
			if _, err := body[struct{}](r); err != nil {
				return nil, err
			}
			v, err := do(r.Context())
			v.Problems, v.Changes = present(v.Problems), present(v.Changes)
			return v, err
		}
	}
	commit := func(r *http.Request) (any, error) {
		o, err := body[ConfigOrder](r)
		if c := time.Duration(o.Confirm); err == nil && c != 0 && (c < MinConfirm || c > MaxConfirm) {
			err = fmt.Errorf("%w: confirm_s of %v: allowed are 0 and %v..%v", ErrInvalid, c, MinConfirm, MaxConfirm)
		}
		if err != nil {
			return nil, err
		}
		v, err := h.src.CommitConfig(r.Context(), o)
		v.Problems, v.Changes = present(v.Problems), present(v.Changes)
		return v, err
	}
	return map[string]map[string]endpoint{
		"/v1/config/check":   {"POST": plain(h.src.CheckConfig)},
		"/v1/config/commit":  {"POST": commit},
		"/v1/config/confirm": {"POST": plain(h.src.ConfirmConfig)},
		"/v1/config/undo":    {"POST": plain(h.src.UndoConfig)},
	}
}

// CheckConfig says what the configuration file would change.
func (c *Client) CheckConfig(ctx context.Context) (ConfigReview, error) {
	return ask[ConfigReview](ctx, c, http.MethodPost, "/v1/config/check", nil, struct{}{})
}

// CommitConfig brings the configuration file into force.
func (c *Client) CommitConfig(ctx context.Context, o ConfigOrder) (ConfigReview, error) {
	return ask[ConfigReview](ctx, c, http.MethodPost, "/v1/config/commit", nil, o)
}

// ConfirmConfig has a configuration stay that waits.
func (c *Client) ConfirmConfig(ctx context.Context) (ConfigReview, error) {
	return ask[ConfigReview](ctx, c, http.MethodPost, "/v1/config/confirm", nil, struct{}{})
}

// UndoConfig brings the configuration before the last commit into force.
func (c *Client) UndoConfig(ctx context.Context) (ConfigReview, error) {
	return ask[ConfigReview](ctx, c, http.MethodPost, "/v1/config/undo", nil, struct{}{})
}
