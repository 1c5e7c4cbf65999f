package api

import (
	"context"
	"errors"
	"net/http"
)

// The kinds of failure a Source reports by wrapping one of these.
var (
	ErrInvalid     = errors.New("invalid request")        // 400, the value cannot be right
	ErrRefused     = errors.New("refused")                // 403, not on this device or not in this state
	ErrNotFound    = errors.New("not found")              // 404
	ErrExists      = errors.New("already exists")         // 409
	ErrConflict    = errors.New("conflict")               // 409, somebody else was first
	ErrLimit       = errors.New("limit reached")          // 422
	ErrUnavailable = errors.New("temporarily not able")   // 503
	errTooLarge    = errors.New("request too large")      // 413
	errMethod      = errors.New("method not allowed")     // 405
	errInternal    = errors.New("internal error")         // 500
	errTimeout     = errors.New("the daemon is too slow") // 504
	errElsewhere   = errors.New("not for this host")      // 421
)

// kinds ties each kind of failure to its HTTP status and its code in JSON.
var kinds = []struct {
	err    error
	status int
	code   string
}{
	{ErrInvalid, http.StatusBadRequest, "invalid"},
	{ErrNobody, http.StatusUnauthorized, "no-login"},
	{ErrTooMany, http.StatusTooManyRequests, "too-many"},
	{errElsewhere, http.StatusMisdirectedRequest, "host"},
	{ErrRefused, http.StatusForbidden, "refused"},
	{ErrNotFound, http.StatusNotFound, "not-found"},
	{errMethod, http.StatusMethodNotAllowed, "method-not-allowed"},
	{ErrExists, http.StatusConflict, "exists"},
	{ErrConflict, http.StatusConflict, "conflict"},
	{errTooLarge, http.StatusRequestEntityTooLarge, "too-large"},
	{ErrLimit, http.StatusUnprocessableEntity, "limit"},
	{ErrUnavailable, http.StatusServiceUnavailable, "unavailable"},
	{errTimeout, http.StatusGatewayTimeout, "timeout"},
	{errInternal, http.StatusInternalServerError, "internal"},
}

// Error is a failure as the API tells it. It unwraps to the Err value of its kind.
type Error struct {
	Message string `json:"error"`
	Code    string `json:"code"`
	Status  int    `json:"-"` // HTTP status
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

// Unwrap gives the Err value the code stands for, nil for an unknown code.
func (e *Error) Unwrap() error {
	for _, k := range kinds {
		if k.code == e.Code {
			return k.err
		}
	}
	return nil
}

// describe turns any error into what the API tells.
func describe(err error) *Error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(errTimeout, err)
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return &Error{Message: err.Error(), Code: k.code, Status: k.status}
		}
	}
	return &Error{Message: err.Error(), Code: "internal", Status: http.StatusInternalServerError}
}
