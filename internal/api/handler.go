package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// MaxBody is the largest request body in bytes: a zone with tens of thousands of members.
const MaxBody = 4 << 20

// NamedMembers is the body of zone changes.
type NamedMembers struct {
	Name    string   `json:"name"` // of the zone
	Members []string `json:"members"`
	DryRun  bool     `json:"dry_run,omitempty"` // change nothing, and say what hosts would be told
}

// PortName is the body of what is done to a port.
type PortName struct {
	Port string `json:"port"`
}

// ReloadForce is the body of a reload.
type ReloadForce struct {
	Force bool `json:"force"` // also when hosts are taken away by it
}

// HostAddr is the body of what is done to a host.
type HostAddr struct {
	Host netip.Addr `json:"host"`
}

// endpoint does one method of one path and gives what is sent as JSON (nil: nothing).
type endpoint func(r *http.Request) (any, error)

// Handler serves a Source:
//
//	GET    /v1/PATH           of package query: status, hosts, zones, ...; with its filters
//	POST   /v1/zones          {"name": "z", "members": ["192.0.2.1", ...]}
//	DELETE /v1/zones          ?name=
//	POST   /v1/zones/members  {"name": "z", "members": [...]}
//	DELETE /v1/zones/members  {"name": "z", "members": [...]}
//	POST   /v1/ports/recover  {"port": "Ethernet1"}
//	POST   /v1/ports/shut     {"port": "Ethernet1"}
//	GET    /v1/why            ?a= b=   two addresses: what is between them
//	POST   /v1/drain          {"port": "Ethernet4", "undo": false, "wait_s": 10}; no port: all
//	POST   /v1/test-notice    {"host": "192.0.2.1"}: a notice that changes nothing, and its ack
//	POST   /v1/clear-host     {"host": "192.0.2.1"}: forget it until its next LLDPDU
//	POST   /v1/reload         {"force": false}: read the configuration again
//	POST   /v1/cluster/members          {"device": "192.0.2.253", "address": "192.0.2.253:19517"}
//	DELETE /v1/cluster/members          ?device=
//	POST   /v1/cluster/members/replace  as for members
//	POST   /v1/cluster/settings         {"name": "hard-zoning", "value": "true"}
//	POST   /v1/config/check   {}: what the configuration file would change
//	POST   /v1/config/commit  {"confirm_s": 600, "force": false}
//	POST   /v1/config/confirm, /v1/config/undo  {}
//	GET    /v1/audit          ?limit=  what operators did and were refused
//	GET    /v1/zoning         what operators write of zones, its version, what waits for a confirmation
//	POST   /v1/zoning/check   {"plan": {...}, "base": "3f2a..."}: errors, warnings, difference, impact
//	POST   /v1/zoning/commit  as check, and "confirm_s", "comment", "force", "extends": what waits
//	POST   /v1/zoning/confirm {"number": 7}: it stays; 0: whichever waits
//	POST   /v1/zoning/abort   {"number": 7}: it is taken back
//	GET    /v1/zoning/history the versions that are kept, newest first
//	GET    /v1/zoning/history/{number}  what a version said
//	GET    /v1/events         ?follow=1 after= kind= port= addr= for a stream; also with
//	                          Accept: text/event-stream, of events of Server-Sent Events
//
// Lists are JSON arrays in a stable order; hosts come in columns with Accept: HostColumns. A
// failure is {"error": text, "code": word} with the HTTP status of its kind. A stream has one Event
// per line; a line {"missed": n} tells a reader that was too slow how many events it lost; in
// Server-Sent Events (WHATWG HTML section 9.2) that is an event "missed".
func Handler(src Source) http.Handler {
	h := &handler{src: src}
	mux := http.NewServeMux()
	paths := map[string]map[string]endpoint{}
	add := func(method, path string, do endpoint) {
		if paths[path] == nil {
			paths[path] = map[string]endpoint{}
		}
		paths[path][method] = do
	}
	add("GET", "/v1/why", h.why)
	add("GET", "/v1/audit", h.auditRecords)
	add("GET", "/v1/hard-zoning", bare(func(r *http.Request) (any, error) { return src.HardZoning(r.Context()) }))
	add("GET", "/v1/zoning", bare(h.zoning))
	add("GET", "/v1/zoning/history", bare(h.zoneVersions))
	add("GET", "/v1/zoning/history/{number}", bare(h.zonesAt))
	for _, a := range actions {
		add(a.endpoint(src))
	}
	for _, r := range requests {
		add(r.method, r.path, r.do(h))
	}
	for _, q := range src.Queries() {
		add("GET", "/v1/"+q.Name, func(r *http.Request) (any, error) { return q.Answer(r.Context(), r.URL.Query()) })
	}
	for path, methods := range paths {
		mux.Handle(path, route(methods))
	}
	mux.HandleFunc("/", h.noPath)
	whole := audited(src, mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := int64(MaxBody)
		if strings.HasPrefix(r.URL.Path, "/v1/zoning/") {
			limit = MaxCandidate
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		patience(w, answerTimeout)
		if r.Method == http.MethodGet && r.URL.Path == "/v1/events" && (r.URL.Query().Has("follow") || wantsEvents(r)) {
			h.follow(w, r)
			return
		}
		whole.ServeHTTP(w, r)
	})
}

// route picks the endpoint of the method and writes what it gives.
func route(methods map[string]endpoint) http.HandlerFunc {
	allowed := []string{}
	for m := range methods {
		allowed = append(allowed, m)
	}
	slices.Sort(allowed)
	return func(w http.ResponseWriter, r *http.Request) {
		do, ok := methods[r.Method]
		if !ok {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			fail(w, fmt.Errorf("%w: %s %s, allowed: %s", errMethod, r.Method, r.URL.Path, strings.Join(allowed, ", ")))
			return
		}
		v, err := do(r)
		switch {
		case err != nil:
			fail(w, err)
		case v == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			if hosts, ok := v.([]Host); ok && wantsColumns(r) {
				w.Header().Set("Content-Type", HostColumns)
				_, _ = w.Write(appendHostColumns(nil, hosts)) // an error here is the reader's
				return
			}
			answer(w, v)
		}
	}
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // an error here is the reader's: it has gone
}

// fail writes an error as JSON with its status.
func fail(w http.ResponseWriter, err error) {
	e := describe(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	json.NewEncoder(w).Encode(e)
}

type handler struct{ src Source }

func (h *handler) noPath(w http.ResponseWriter, r *http.Request) {
	fail(w, fmt.Errorf("%w: no such path %q", ErrNotFound, r.URL.Path))
}

func query(r *http.Request) *params { return &params{values: r.URL.Query()} }

// bare refuses all parameters.
func bare(do endpoint) endpoint {
	return func(r *http.Request) (any, error) {
		if err := query(r).close(); err != nil {
			return nil, err
		}
		return do(r)
	}
}

// Some makes an empty list out of none, for JSON.
func Some[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

// body reads a JSON body strictly.
func body[T any](r *http.Request) (v T, err error) {
	if err := query(r).close(); err != nil {
		return v, err
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err = dec.Decode(&v); err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("something follows the JSON value")
		}
	}
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return v, fmt.Errorf("%w: the body has more than %d bytes", errTooLarge, big.Limit)
	case err != nil:
		return v, fmt.Errorf("%w: body: %w", ErrInvalid, err)
	}
	return v, nil
}

// named reads the body of a zone change.
func named(r *http.Request, needMembers bool) (NamedMembers, error) {
	b, err := body[NamedMembers](r)
	switch {
	case err != nil:
	case b.Name == "":
		err = fmt.Errorf("%w: name is missing", ErrInvalid)
	case needMembers && len(b.Members) == 0:
		err = fmt.Errorf("%w: members are missing", ErrInvalid)
	}
	return b, err
}

// ComparePorts orders port names with their numbers as numbers: Ethernet2 before Ethernet10.
func ComparePorts(a, b string) int {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		da, db := digits(a[i:]), digits(b[j:])
		if da != "" && db != "" {
			na, nb := strings.TrimLeft(da, "0"), strings.TrimLeft(db, "0")
			if c := cmp.Or(cmp.Compare(len(na), len(nb)), cmp.Compare(na, nb)); c != 0 {
				return c
			}
			i, j = i+len(da), j+len(db)
			continue
		}
		if c := cmp.Compare(a[i], b[j]); c != 0 {
			return c
		}
		i, j = i+1, j+1
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// digits gives the decimal number s begins with.
func digits(s string) string {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}
