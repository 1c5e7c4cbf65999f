package api

import (
	"context"
	"fmt"
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

// What is done with the configuration file.
var (
	// CheckConfig says what the file would change.
	CheckConfig = configAction("check", Viewer, Source.CheckConfig)
	// CommitConfig brings the file into force.
	CommitConfig = Action[ConfigOrder, ConfigReview]{path: "/v1/config/commit", role: Admin, do: Source.CommitConfig, whole: (*ConfigReview).whole,
		check: func(o *ConfigOrder) string { return wrongConfirm(o.Confirm) }}
	// ConfirmConfig has a configuration stay that waits.
	ConfirmConfig = configAction("confirm", Admin, Source.ConfirmConfig)
	// UndoConfig brings the configuration before the last commit into force.
	UndoConfig = configAction("undo", Admin, Source.UndoConfig)
)

func configAction(word string, role Role, do func(Source, context.Context) (ConfigReview, error)) Action[Nothing, ConfigReview] {
	return Action[Nothing, ConfigReview]{path: "/v1/config/" + word, role: role, whole: (*ConfigReview).whole,
		do: func(src Source, ctx context.Context, _ Nothing) (ConfigReview, error) { return do(src, ctx) }}
}

func (r *ConfigReview) whole() { Some(&r.Problems); Some(&r.Changes) }

// wrongConfirm is what is wrong with the time in which something is to be confirmed; 0: never.
func wrongConfirm(d Duration) string {
	if c := time.Duration(d); c != 0 && (c < MinConfirm || c > MaxConfirm) {
		return fmt.Sprintf("confirm_s of %v: allowed are 0 and %v..%v", c, MinConfirm, MaxConfirm)
	}
	return ""
}
