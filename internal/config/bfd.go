package config

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openinof/inof/internal/setting"
)

// Limits and defaults of bfd.
const (
	BFDMinInterval = 3 * time.Millisecond
	BFDMaxInterval = time.Second
	BFDMinMult     = 3
	BFDMaxMult     = 50
	minBFDKey      = 8  // bytes
	maxBFDKey      = 20 // bytes (RFC 5880 section 4.4)
	maxBFDKeys     = 16
	// defaultMaxHops is that of a fabric of three layers, with room.
	defaultMaxHops = 8
	bfdSocketName  = "bfd.sock" // beside the management socket
)

// BFDMesh says which devices watch their paths to each other.
type BFDMesh string

// The values of bfd.mesh.
const (
	MeshZones BFDMesh = "zones" // those with hosts in a common zone
	MeshAll   BFDMesh = "all"   // all that know of each other
)

// BFDAuth is how BFD packets are authenticated.
type BFDAuth string

// The values of bfd.auth.
const (
	BFDAuthNone       BFDAuth = "none"
	BFDAuthSHA1       BFDAuth = "keyed-sha1"
	BFDAuthMeticulous BFDAuth = "meticulous-keyed-sha1"
	BFDAuthSession    BFDAuth = "session" // meticulous, with keys that the reflectors hand out
)

// BFD sets the watching of the paths between devices.
type BFD struct {
	// Enabled says on a reflector whether there is BFD in the fabric; on a client false
	// takes this device out of it in an emergency.
	Enabled bool
	// Of a reflector; zero on a device that is a client only.
	Interval   time.Duration // 3 ms..1 s
	DetectMult int           // 3..50
	Mesh       BFDMesh
	// Of a device with access ports.
	Socket string        // of the BFD process, absolute
	Grace  time.Duration // how long that goes on without the daemon, 1 s..24 h
	// MaxHops is how many routers may be between two devices, 1..255.
	MaxHops int
	Auth    BFDAuth
	Keys    []BFDKey // the first signs, all are accepted
	// PlainPeers are devices towards which there is no authentication, with BFDAuthSession.
	PlainPeers []netip.Prefix
}

// BFDKey is one key of bfd.auth.
type BFDKey struct {
	ID     uint8
	From   PasswordFrom
	Secret Secret // 8..20 bytes; empty after Parse when it comes from a file
}

func readBFD(c *Config, s *section) {
	defer s.close()
	roles := c.Device.Roles
	b := BFD{
		Enabled:    s.boolean("enabled", true),
		Interval:   s.duration("interval", 100*time.Millisecond, BFDMinInterval, BFDMaxInterval, false),
		DetectMult: s.number("detect-multiplier", 3, BFDMinMult, BFDMaxMult),
		Mesh:       BFDMesh(s.choice("mesh", string(MeshZones), string(MeshZones), string(MeshAll))),
	}
	if b.Interval%time.Microsecond != 0 {
		s.problem("interval", "is not a number of whole microseconds", "whole microseconds")
	}
	b.Socket = s.text("socket", "", fmt.Sprintf("an absolute path of at most %d bytes", maxSocketPath), func(v string) string {
		if len(v) > maxSocketPath {
			return fmt.Sprintf("has %d bytes", len(v))
		}
		return checkPath(v)
	})
	b.Grace = s.duration("grace", 120*time.Second, time.Second, 24*time.Hour, false)
	b.MaxHops = s.number("max-hops", defaultMaxHops, 1, 255)
	b.Auth = BFDAuth(s.choice("auth", string(BFDAuthSession), string(BFDAuthSession), string(BFDAuthNone), string(BFDAuthSHA1), string(BFDAuthMeticulous)))
	readBFDKeys(&b, s)
	readPlainPeers(&b, s)
	switch {
	case roles.Standalone():
		s.refuse("a standalone device knows of no other device")
		return
	case !roles.Reflector:
		s.foreign("the reflector sets it for the whole fabric", "leave it out, and set it on the reflector", "interval", "detect-multiplier", "mesh")
		b.Interval, b.DetectMult, b.Mesh = 0, 0, ""
	case !roles.Client:
		s.foreign("this device is a reflector only and watches no paths", "leave it out", "socket", "grace", "max-hops", "auth", "keys", "plain-peers")
		b.Socket, b.Grace, b.MaxHops, b.Auth, b.Keys, b.PlainPeers = "", 0, 0, "", nil, nil
	}
	if roles.Client && b.Socket == "" {
		b.Socket = filepath.Join(filepath.Dir(c.Management.Socket), bfdSocketName)
	}
	c.BFD = b
}

// readPlainPeers reads device ids and prefixes of them.
func readPlainPeers(b *BFD, s *section) {
	b.PlainPeers = readPrefixes(s, "plain-peers")
	if len(b.PlainPeers) > 0 && b.Auth != BFDAuthSession {
		s.problem("plain-peers", "are given, but bfd.auth is "+string(b.Auth), "auth: session, or no plain-peers")
	}
}

// foreign reports the keys that are set elsewhere.
func (s *section) foreign(why, allowed string, names ...string) {
	for _, name := range names {
		if v, ok := s.values[name]; ok && !isNull(v) || s.p.env(s.envName(name)) != "" {
			s.problem(name, "does not apply: "+why, allowed)
		}
	}
}

const allowedKey = "8..20 printable bytes"

func readBFDKeys(b *BFD, s *section) {
	s.sections("keys", "[]", "id: 0..255, and one of file, env, credential", func(e *section) {
		k := BFDKey{ID: uint8(e.number("id", 0, 0, 255))}
		var given []PasswordFrom
		for _, f := range []struct {
			name    string
			kind    PasswordKind
			allowed string
			check   func(string) string
		}{
			{"file", PasswordFile, allowedPath, checkPath},
			{"env", PasswordEnv, "the name of an environment variable", matches(envName)},
			{"credential", PasswordCredential, "the name of a systemd credential", matches(credName)},
		} {
			if v := e.text(f.name, "", f.allowed, f.check); v != "" {
				given = append(given, PasswordFrom{f.kind, v})
			} else if _, wrong := e.values[f.name]; wrong {
				return // it was reported
			}
		}
		if len(given) != 1 {
			e.problem("file", fmt.Sprintf("%d of file, env and credential are given", len(given)), "exactly one of them")
			return
		}
		k.From = given[0]
		if k.From.Kind == PasswordEnv && !e.p.public {
			v := e.p.env(k.From.Name)
			if what := checkBFDKey(v); what != "" {
				e.problem("env", "the key in that variable "+what, allowedKey)
			}
			k.Secret = Secret(v)
		}
		for _, o := range b.Keys {
			if o.ID == k.ID {
				e.problem("id", "is that of an earlier key", "each id once")
			}
		}
		b.Keys = append(b.Keys, k)
	})
	switch {
	case len(b.Keys) > maxBFDKeys:
		s.problem("keys", fmt.Sprintf("has %d entries", len(b.Keys)), fmt.Sprintf("at most %d", maxBFDKeys))
	case (b.Auth == BFDAuthNone || b.Auth == BFDAuthSession) && len(b.Keys) > 0:
		s.problem("keys", "are given, but bfd.auth is "+string(b.Auth), "auth: meticulous-keyed-sha1, or no keys")
	case b.Auth != BFDAuthNone && b.Auth != BFDAuthSession && len(s.values) > 0 && s.values["keys"] == nil:
		s.problem("auth", "needs keys and none is given", "keys, or auth: none")
	}
}

// checkBFDKey says what is wrong with a key without repeating it.
func checkBFDKey(v string) string {
	switch {
	case v == "":
		return "is empty or not set"
	case len(v) < minBFDKey || len(v) > maxBFDKey:
		return fmt.Sprintf("has %d bytes", len(v))
	case !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl):
		return "has characters that cannot be printed"
	}
	return ""
}

// loadBFD reads the keys that come from files; what is wrong goes to their lines.
func loadBFD(c *Config, p *parser, path string, data []byte, env func(string) string) {
	for i := range c.BFD.Keys {
		k := &c.BFD.Keys[i]
		if k.From.Kind == PasswordEnv {
			continue
		}
		v, err := readSecret(k.From, env)
		if what := checkBFDKey(v); err == nil && what != "" {
			err = errors.New("the key in that file " + what)
		}
		if err == nil {
			k.Secret = Secret(v)
			continue
		}
		pr := Problem{File: path, Key: fmt.Sprintf("bfd.keys[%d]", i), Value: k.From.Name, What: err.Error(), Allowed: allowedKey}
		if n := resolve(find(p.document(data), "bfd", "keys")); n != nil && i < len(n.Content) {
			pr.Line, pr.Column = n.Content[i].Line, n.Content[i].Column
		}
		p.add(pr)
	}
}

// settings lists everything of bfd.
func (b *BFD) settings() []Setting {
	out := []Setting{
		{Key: "bfd.enabled", Value: fmt.Sprint(b.Enabled)},
		{Key: "bfd.interval", Value: setting.Duration(b.Interval)},
		{Key: "bfd.detect-multiplier", Value: fmt.Sprint(b.DetectMult)},
		{Key: "bfd.mesh", Value: string(b.Mesh)},
		{Key: "bfd.socket", Value: b.Socket, Restart: true},
		{Key: "bfd.grace", Value: setting.Duration(b.Grace), Restart: true},
		{Key: "bfd.max-hops", Value: strconv.Itoa(b.MaxHops)},
		{Key: "bfd.auth", Value: string(b.Auth)},
		{Key: "bfd.plain-peers", Value: join(b.PlainPeers)},
	}
	var ids, secrets []string
	for _, k := range b.Keys {
		ids = append(ids, fmt.Sprintf("%d (%s %s)", k.ID, k.From.Kind, k.From.Name))
		secrets = append(secrets, string(k.Secret))
	}
	return append(out, Setting{Key: "bfd.keys", Value: strings.Join(ids, ", "), secret: Secret(strings.Join(secrets, "\x00"))})
}
