package api

import (
	"context"
	"net/netip"
	"net/url"
)

// Source is what the daemon shows and does. Methods are safe for concurrent use
// and return values the caller owns.
//
// Errors that wrap one of the Err values of this package get the HTTP status and
// code that belong to it; all others are internal errors.
type Source interface {
	// Queries are what package query has: all that can be read but Why.
	Queries() []Served
	// Why says what is known of two hosts, and of what they were told of each other.
	Why(ctx context.Context, a, b netip.Addr) (Why, error)

	// ChangeZone makes, changes or removes a zone, or says what that would do. It returns
	// once the change is in force and saved. ErrExists when there is a zone of that name
	// already, ErrNotFound when there is none, ErrRefused on a device that is a client only.
	ChangeZone(ctx context.Context, o ZoneOrder) (ZoneChanged, error)

	// RecoverPort ends the error-down of a port by hand.
	RecoverPort(ctx context.Context, port string) error
	// ShutPort shuts a port by hand, after hosts were told; RecoverPort ends it.
	ShutPort(ctx context.Context, port string) error

	// Drain takes ports out of service in order: hosts move first, then the port is shut;
	// or puts them back. It does not wait for the end.
	Drain(ctx context.Context, o DrainOrder) (Drained, error)
	// TestNotice sends a host a notice that changes nothing for it, over each port it is
	// on, and waits for the acks. ErrNotFound when the host is on no port here.
	TestNotice(ctx context.Context, host netip.Addr) ([]TestNotice, error)
	// ClearHost forgets a host on the ports of this device: it comes back with its next
	// LLDPDU. ErrNotFound when nobody knows it, ErrRefused when another device has it.
	ClearHost(ctx context.Context, host netip.Addr) ([]HostCleared, error)
	// Halt has the device, or all clients of a reflector, decide and record and act on nothing;
	// Resume ends it. Both survive a restart.
	Halt(ctx context.Context, o HaltOrder) (Mode, error)
	Resume(ctx context.Context, o HaltOrder) (Mode, error)
	// HardZoning says how the device enforces zones; OrderHardZoning suspends, resumes or
	// flushes that. ErrRefused where it does not.
	HardZoning(ctx context.Context) (HardZoning, error)
	OrderHardZoning(ctx context.Context, order string) error
	// ReloadConfig reads the configuration again and brings it into force. One that
	// would take hosts away is ErrRefused, and nothing is changed, unless it is forced.
	ReloadConfig(ctx context.Context, force bool) (Reloaded, error)

	// AuditRecords gives the newest records of what operators did and were refused.
	AuditRecords(ctx context.Context, limit int) (AuditList, error)

	ClusterSource
	ConfigSource
	ZoningSource
	EventSource
}

// Served is what is read at GET /v1/NAME.
type Served struct {
	Name   string
	Answer func(ctx context.Context, filters url.Values) (any, error)
}

// EventSource gives the recent events; an EventLog has them.
type EventSource interface {
	// HostsAt are all attachments of one host.
	HostsAt(ctx context.Context, addr netip.Addr) ([]Host, error)
	// Events returns at once what is held of the events after the given ID.
	Events(after uint64) EventBatch
	// Subscribe waits until there is an event after the given ID and returns all
	// held ones, or ctx's error. Calling it again with EventBatch.Last follows the log.
	Subscribe(ctx context.Context, after uint64) (EventBatch, error)
}

// EventBatch is a run of events without gaps.
type EventBatch struct {
	Events []Event
	Missed uint64 // events after the given ID that are no longer held
	Last   uint64 // ID of the newest event there is; the next call's `after`
}
