package api

import "errors"

// The kinds of failure a Source reports by wrapping one of these.
var (
	ErrInvalid     = errors.New("invalid request")      // 400, the value cannot be right
	ErrNotFound    = errors.New("not found")            // 404
	ErrExists      = errors.New("already exists")       // 409
	ErrRefused     = errors.New("refused")              // 403, not on this device or not in this state
	ErrLimit       = errors.New("limit reached")        // 422
	ErrUnavailable = errors.New("temporarily not able") // 503
)
