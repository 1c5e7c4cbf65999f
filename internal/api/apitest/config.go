package apitest

import (
	"context"

	"github.com/openinof/inof/internal/api"
)

// CheckConfig implements api.ConfigSource.
func (s *Source) CheckConfig(context.Context) (api.ConfigReview, error) {
	return s.ConfigValue, s.failure()
}

// CommitConfig implements api.ConfigSource.
func (s *Source) CommitConfig(_ context.Context, o api.ConfigOrder) (api.ConfigReview, error) {
	return s.ConfigValue, s.change("commit config force=%t", o.Force)
}

// ConfirmConfig implements api.ConfigSource.
func (s *Source) ConfirmConfig(context.Context) (api.ConfigReview, error) {
	return s.ConfigValue, s.change("confirm config")
}

// UndoConfig implements api.ConfigSource.
func (s *Source) UndoConfig(context.Context) (api.ConfigReview, error) {
	return s.ConfigValue, s.change("undo config")
}
