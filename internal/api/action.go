package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
)

// Action is something that a Source does for a request with the body Q, and A what became of it.
// One declaration is its endpoint and what a client asks with.
type Action[Q, A any] struct {
	path   string
	method string            // empty: POST
	role   Role              // 0: Operator; Viewer: it changes nothing, so it is not in the audit
	check  func(q *Q) string // what is wrong with a body; nil: nothing can be
	do     func(src Source, ctx context.Context, q Q) (A, error)
	whole  func(a *A) // makes empty lists of none, for JSON; nil: there are none
}

// Nothing is a body that says nothing, or no answer.
type Nothing struct{}

// done is a do without an answer.
func done[Q any](do func(src Source, ctx context.Context, q Q) error) func(Source, context.Context, Q) (Nothing, error) {
	return func(src Source, ctx context.Context, q Q) (Nothing, error) { return Nothing{}, do(src, ctx, q) }
}

// actions are those there are, beside what is done to single zones.
var actions = []interface {
	endpoint(src Source) (method, path string, do endpoint)
	needs() (method, path string, role Role)
}{
	&RecoverPort, &ShutPort, &DrainPorts, &SendTestNotice, &ClearHost, &Reload, &HaltDevices, &ResumeDevices, &OrderHardZoning,
	&AddMember, &ReplaceMember, &SetClusterSetting,
	&CheckConfig, &CommitConfig, &ConfirmConfig, &UndoConfig,
	&CheckZones, &CommitZones, &ConfirmZones, &AbortZones,
}

func (a *Action[Q, A]) verb() string {
	if a.method != "" {
		return a.method
	}
	return http.MethodPost
}

func (a *Action[Q, A]) needs() (method, path string, role Role) {
	return a.verb(), a.path, cmp.Or(a.role, Operator)
}

// requests are those that change something and have no Action: their parameters, or their answer,
// depend on the method.
var requests = []struct {
	method, path string
	role         Role
	do           func(h *handler) endpoint
}{
	{http.MethodPost, "/v1/zones", Operator, zoneRequest(ZoneAdd)},
	{http.MethodDelete, "/v1/zones", Operator, zoneRequest(ZoneRemove)},
	{http.MethodPost, "/v1/zones/members", Operator, zoneRequest(MembersAdd)},
	{http.MethodDelete, "/v1/zones/members", Operator, zoneRequest(MembersRemove)},
	{http.MethodDelete, "/v1/cluster/members", Admin, func(h *handler) endpoint { return h.removeMember }},
}

func zoneRequest(do ZoneDo) func(*handler) endpoint {
	return func(h *handler) endpoint { return h.zoneEndpoint(do) }
}

// roles has the role of each declared request, by method and path.
var roles = sync.OnceValue(func() map[string]Role {
	m := map[string]Role{}
	for _, a := range actions {
		method, path, role := a.needs()
		m[method+" "+path] = role
	}
	for _, r := range requests {
		m[r.method+" "+r.path] = r.role
	}
	return m
})

// needed is the role that a request takes, as it is declared. What is not declared is for an Admin.
func needed(r *http.Request) Role {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return Viewer
	}
	return cmp.Or(roles()[r.Method+" "+r.URL.Path], Admin)
}

// Changes reports whether a request may change something: then it takes more than a Viewer, and is
// in the audit.
func Changes(r *http.Request) bool { return needed(r) > Viewer }

func (a *Action[Q, A]) endpoint(src Source) (method, path string, do endpoint) {
	return a.verb(), a.path, func(r *http.Request) (any, error) {
		q, err := body[Q](r)
		if err != nil {
			return nil, err
		}
		if a.check != nil {
			if wrong := a.check(&q); wrong != "" {
				return nil, fmt.Errorf("%w: %s", ErrInvalid, wrong)
			}
		}
		v, err := a.do(src, r.Context(), q)
		if _, empty := any(v).(Nothing); empty {
			return nil, err
		}
		if a.whole != nil {
			a.whole(&v)
		}
		return v, err
	}
}

// Ask has a daemon do it.
func (a *Action[Q, A]) Ask(ctx context.Context, c *Client, q Q) (A, error) {
	return ask[A](ctx, c, a.verb(), a.path, nil, q)
}

// Do is Ask of what has no answer.
func (a *Action[Q, A]) Do(ctx context.Context, c *Client, q Q) error {
	_, err := a.Ask(ctx, c, q)
	return err
}

// missing is what is wrong when a body does not say something it must.
func missing(what string, is bool) string {
	if is {
		return what + " is missing"
	}
	return ""
}

// Actions on ports.
var (
	// RecoverPort ends the error-down of a port by hand.
	RecoverPort = Action[PortName, Nothing]{path: "/v1/ports/recover", check: (*PortName).wrong,
		do: done(func(src Source, ctx context.Context, p PortName) error { return src.RecoverPort(ctx, p.Port) })}
	// ShutPort shuts a port by hand, after hosts were told.
	ShutPort = Action[PortName, Nothing]{path: "/v1/ports/shut", check: (*PortName).wrong,
		do: done(func(src Source, ctx context.Context, p PortName) error { return src.ShutPort(ctx, p.Port) })}
	// DrainPorts takes ports out of service in order, or puts them back.
	DrainPorts = Action[DrainOrder, Drained]{path: "/v1/drain", do: Source.Drain, whole: func(d *Drained) { Some(&d.Ports) }}
)

func (p *PortName) wrong() string { return missing("port", p.Port == "") }

// Actions on hosts.
var (
	// SendTestNotice sends a host a notice that changes nothing for it.
	SendTestNotice = Action[HostAddr, []TestNotice]{path: "/v1/test-notice", check: (*HostAddr).wrong, whole: Some[TestNotice],
		do: func(src Source, ctx context.Context, h HostAddr) ([]TestNotice, error) {
			return src.TestNotice(ctx, h.Host)
		}}
	// ClearHost forgets a host of the device.
	ClearHost = Action[HostAddr, []HostCleared]{path: "/v1/clear-host", check: (*HostAddr).wrong, whole: Some[HostCleared],
		do: func(src Source, ctx context.Context, h HostAddr) ([]HostCleared, error) {
			return src.ClearHost(ctx, h.Host)
		}}
)

func (h *HostAddr) wrong() string { return missing("host", !h.Host.IsValid()) }

// Reload has the daemon read its configuration again.
var Reload = Action[ReloadForce, Reloaded]{path: "/v1/reload", role: Admin,
	do: func(src Source, ctx context.Context, f ReloadForce) (Reloaded, error) {
		return src.ReloadConfig(ctx, f.Force)
	},
	whole: func(r *Reloaded) { Some(&r.Changed); Some(&r.Restart); Some(&r.Problems) }}

// OrderHardZoning suspends, resumes or flushes the enforcement of zones.
var OrderHardZoning = Action[HardOrder, Nothing]{path: "/v1/hard-zoning",
	do: done(func(src Source, ctx context.Context, o HardOrder) error { return src.OrderHardZoning(ctx, o.Order) })}
