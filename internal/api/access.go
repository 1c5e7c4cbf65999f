package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Role is what somebody may do who does not come by the management socket.
type Role int

// The roles, each with what those before it may do.
const (
	Viewer   Role = iota + 1 // read
	Operator                 // zones, ports, hosts
	Admin                    // the cluster, the configuration
)

var roleNames = map[Role]string{Viewer: "viewer", Operator: "operator", Admin: "admin"}

func (r Role) String() string { return roleNames[r] }

// needed is the role that a request takes.
func needed(r *http.Request) Role {
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead, r.URL.Path == "/v1/zoning/check": // which changes nothing
		return Viewer
	case strings.HasPrefix(r.URL.Path, "/v1/cluster"), r.URL.Path == "/v1/reload":
		return Admin
	}
	return Operator
}

// Token is one that is taken, by its SHA-256.
type Token struct {
	Name string
	Role Role
	Sum  [sha256.Size]byte
}

// ParseTokens reads a file of tokens: lines of a name, a role and the SHA-256 of the token
// in hexadecimal. Empty lines, and those that begin with #, are left out. No error repeats
// a digest.
func ParseTokens(data []byte) (list []Token, err error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 3 {
			return nil, fmt.Errorf("line %d has %d words, want NAME ROLE SHA256", n, len(f))
		}
		t := Token{Name: f[0]}
		for role, name := range roleNames {
			if name == f[1] {
				t.Role = role
			}
		}
		sum, err := hex.DecodeString(f[2])
		switch {
		case t.Role == 0:
			return nil, fmt.Errorf("line %d: role %q, allowed: viewer, operator, admin", n, f[1])
		case err != nil || len(sum) != sha256.Size:
			return nil, fmt.Errorf("line %d: the third word is no SHA-256: 64 hexadecimal digits", n)
		case slices.ContainsFunc(list, func(o Token) bool { return o.Name == t.Name }):
			return nil, fmt.Errorf("line %d: %q is there twice", n, t.Name)
		}
		copy(t.Sum[:], sum)
		list = append(list, t)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return list, nil
}

// How many log-ins of one address may fail.
const (
	failuresPerMinute = 5
	maxFailing        = 1024 // addresses that are remembered
)

// Door lets requests in that come over a network, by their token, or by the cookie that a
// browser got for one.
type Door struct {
	// Tokens gives those that are taken now.
	Tokens func() ([]Token, error)
	// Refused is told of each log-in that fails, at most so many as are answered.
	Refused func(from netip.Addr, why string)

	mu      sync.Mutex
	failing map[netip.Addr]*rate.Limiter
	logins  map[string]login // by the value of the cookie
	counts  DoorCounters
}

// DoorCounters count requests over a network.
type DoorCounters struct {
	LetIn      uint64 `json:"let_in"`
	NoToken    uint64 `json:"no_token"`    // or one that is not known
	NotAllowed uint64 `json:"not_allowed"` // its role may not do that
	TooMany    uint64 `json:"too_many"`    // after five log-ins that failed within a minute
}

// Counters returns what was counted.
func (d *Door) Counters() DoorCounters {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

var (
	errNoToken = errors.New("no token, or one that is not known: send Authorization: Bearer TOKEN") // 401
	errRanOut  = fmt.Errorf("%w: the log-in has run out", errNoToken)
	errTooMany = errors.New("too many log-ins failed from this address: wait a minute") // 429
)

// Guard lets through who may do what is asked for.
func (d *Door) Guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := remote(r)
		word, hasWord := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		var t Token
		var err error
		if _, none := r.Cookie(LoginCookie); none == nil && !hasWord {
			t, err = d.admit(r)
		} else {
			t, err = d.enter(from, word, needed(r), r)
		}
		if err != nil {
			d.refuse(w, from, err)
			return
		}
		who := Caller{Name: t.Name, From: from.String()}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

// refuse says why somebody may not come in.
func (d *Door) refuse(w http.ResponseWriter, from netip.Addr, err error) {
	if d.Refused != nil && !errors.Is(err, errTooMany) && !errors.Is(err, errRanOut) {
		d.Refused(from, err.Error())
	}
	if errors.Is(err, errNoToken) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="inofd"`)
	}
	w.Header().Set("Connection", "close") // so that strangers do not fill the places there are
	fail(w, err)
}

// admit lets a browser in that has logged in.
func (d *Door) admit(r *http.Request) (Token, error) {
	t, err := d.byCookie(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	if errors.Is(err, errNoToken) {
		d.counts.NoToken++
		return t, errRanOut
	}
	if err != nil {
		return t, err
	}
	return d.may(t, needed(r), r)
}

// enter finds whose token it is; the error says why it is not taken.
func (d *Door) enter(from netip.Addr, word string, need Role, r *http.Request) (Token, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	source := from // an IPv6 /64 is one
	if from.Is6() {
		p, _ := from.Prefix(64) // 64 is a length of one
		source = p.Addr()
	}
	if l := d.failing[source]; l != nil && l.Tokens() < 1 {
		d.counts.TooMany++
		return Token{}, errTooMany
	}
	list, err := d.Tokens()
	if err != nil {
		return Token{}, fmt.Errorf("%w: management.token-file: %w", ErrUnavailable, err)
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(word)))
	var found Token
	for _, t := range list {
		if subtle.ConstantTimeCompare(t.Sum[:], sum[:]) == 1 {
			found = t
		}
	}
	if found.Role == 0 {
		d.counts.NoToken++
		d.failed(source)
		return found, errNoToken
	}
	return d.may(found, need, r)
}

// may says whether a role is enough; the caller has the lock.
func (d *Door) may(t Token, need Role, r *http.Request) (Token, error) {
	if t.Role < need {
		d.counts.NotAllowed++
		return t, fmt.Errorf("%w: %s is %s, and %s %s takes %s", ErrRefused, t.Name, t.Role, r.Method, r.URL.Path, need)
	}
	d.counts.LetIn++
	return t, nil
}

// failed remembers a log-in that failed. Where too many addresses are remembered, all are
// forgotten: guessing a token of 256 bits is hopeless all the same.
func (d *Door) failed(from netip.Addr) {
	if d.failing == nil || len(d.failing) >= maxFailing && d.failing[from] == nil {
		d.failing = map[netip.Addr]*rate.Limiter{}
	}
	if d.failing[from] == nil {
		d.failing[from] = rate.NewLimiter(rate.Every(time.Minute/failuresPerMinute), failuresPerMinute)
	}
	d.failing[from].Allow()
}

func remote(r *http.Request) netip.Addr {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	a, _ := netip.ParseAddr(host)
	return a.Unmap().WithZone("")
}
