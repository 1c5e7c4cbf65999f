package config

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
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

func (c *Config) bfdItem() item {
	b := &c.BFD
	keys := values(
		setting.Bool("enabled", &b.Enabled, true,
			"On a reflector: whether there is BFD in the fabric; of two reflectors both must say so (with `zone-agreement: union` one is enough). On "+
				"a client `false` takes this device out of it in an emergency: it believes nothing of the paths, and the others see AdminDown, which "+
				"is no fault."),
		setting.Span("interval", &b.Interval, 100*time.Millisecond, BFDMinInterval, BFDMaxInterval,
			"On a reflector, for every device: the distance of packets of each session, both ways. Shorter finds a failed path sooner and costs "+
				"more. Of two reflectors the larger value counts."),
		setting.Int("detect-multiplier", &b.DetectMult, 3, BFDMinMult, BFDMaxMult,
			"On a reflector, for every device: so many intervals without a packet are a failed path. Of two reflectors the larger value counts."),
		setting.Choice("mesh", &b.Mesh, MeshZones, []BFDMesh{MeshZones, MeshAll},
			"On a reflector, for every device: `all` has devices watch the paths to all devices whose hosts they know, with those of other zones "+
				"too (see `client.interest: all`)."),
		setting.Text("socket", &b.Socket, "", allowedSocket, "On a client: where its BFD process listens.", checkSocket).Fixed().
			Documented("`bfd.sock` beside `management.socket`", ""),
		setting.Span("grace", &b.Grace, 120*time.Second, time.Second, 24*time.Hour,
			"On a client: how long the BFD process goes on without the daemon before it says AdminDown to all and ends. Longer than the longest "+
				"restart of the daemon.").Fixed(),
		setting.Int("max-hops", &b.MaxHops, defaultMaxHops, 1, 255,
			"On a client: how many routers may be between two devices. BFD packets that came over more are dropped (their TTL, which begins at 255, "+
				"says so): 1 in a fabric of leaves and spines shuts out hosts behind other leaves."),
		setting.Choice("auth", &b.Auth, BFDAuthSession, []BFDAuth{BFDAuthSession, BFDAuthNone, BFDAuthSHA1, BFDAuthMeticulous},
			"On a client: authentication of BFD packets (RFC 5880 section 6.7), the same on all devices. With `session` the reflectors hand out a "+
				"key for each pair of devices; until one has, the path is not watched, and nothing is told of it. The others need `bfd.keys`; "+
				"meticulous refuses repeated packets too.").Documented("", "`session`, `none`, `keyed-sha1`, `meticulous-keyed-sha1`"),
	)
	keys = append(keys,
		prefixes("plain-peers", "On a client with `bfd.auth: session`: devices towards which there is no authentication, since they are of another make.", &b.PlainPeers).
			documented("", "device ids, and prefixes of them"),
		bfdKeys(b))
	return part("bfd", keys, func(s *section) { c.checkBFD(s) })
}

// checkBFD sees that what is set fits together and belongs on a device of these roles.
func (c *Config) checkBFD(s *section) {
	b, roles := &c.BFD, c.Device.Roles
	if b.Interval%time.Microsecond != 0 {
		s.problem("interval", "is not a number of whole microseconds", "whole microseconds")
	}
	handMade := b.Auth != BFDAuthNone && b.Auth != BFDAuthSession
	switch {
	case len(b.Keys) > maxBFDKeys:
		s.problem("keys", fmt.Sprintf("has %d entries", len(b.Keys)), fmt.Sprintf("at most %d", maxBFDKeys))
	case !handMade && len(b.Keys) > 0:
		s.problem("keys", "are given, but bfd.auth is "+string(b.Auth), "auth: meticulous-keyed-sha1, or no keys")
	case handMade && !s.has("keys"):
		s.problem("auth", "needs keys and none is given", "keys, or auth: none")
	}
	if len(b.PlainPeers) > 0 && b.Auth != BFDAuthSession {
		s.problem("plain-peers", "are given, but bfd.auth is "+string(b.Auth), "auth: session, or no plain-peers")
	}
	switch {
	case roles.Standalone():
		s.refuse("a standalone device knows of no other device")
		*b = BFD{}
	case !roles.Reflector:
		s.foreign("the reflector sets it for the whole fabric", "leave it out, and set it on the reflector", "interval", "detect-multiplier", "mesh")
		b.Interval, b.DetectMult, b.Mesh = 0, 0, ""
	case !roles.Client:
		s.foreign("this device is a reflector only and watches no paths", "leave it out", "socket", "grace", "max-hops", "auth", "keys", "plain-peers")
		*b = BFD{Enabled: b.Enabled, Interval: b.Interval, DetectMult: b.DetectMult, Mesh: b.Mesh}
	}
	if roles.Client && b.Socket == "" {
		b.Socket = filepath.Join(filepath.Dir(c.Management.Socket), bfdSocketName)
	}
}

const allowedKey = "8..20 printable bytes"

// bfdKeys is bfd.keys.
func bfdKeys(b *BFD) item {
	text := func() string {
		var ids []string
		for _, k := range b.Keys {
			ids = append(ids, fmt.Sprintf("%d (%s %s)", k.ID, k.From.Kind, k.From.Name))
		}
		return strings.Join(ids, ", ")
	}
	type entry struct {
		BFDKey
		id, given int
	}
	it := entries("keys", "id: 0..255, and one of file, env, credential",
		"The first key signs, all are accepted: add the new one on every device, then make it the first on every device, then take out the old "+
			"one.", text,
		func(k *entry) []item {
			source := func(key string, kind PasswordKind, allowed, doc string, check func(string) string) setting.Setting {
				return setting.Value(key, &k.From, PasswordFrom{}, allowed, doc, kind.parse(check), kind.text)
			}
			return values(
				setting.Int("id", &k.id, 0, 0, 255, "Tells the keys apart on the wire; each once."),
				source("file", PasswordFile, allowedPath, "The key is what the file holds, without the line end: 8..20 bytes.", checkPath),
				source("env", PasswordEnv, allowedEnv, "For containers.", matches(envName)),
				source("credential", PasswordCredential, allowedCredential, "As `session.password-credential`. Exactly one of these three is written.", matches(credName)))
		}, func(e *section, k *entry) {
			k.ID = uint8(k.id)
			for _, name := range []string{"file", "env", "credential"} {
				if e.has(name) {
					k.given++
				}
			}
			if k.given != 1 {
				e.problem("file", fmt.Sprintf("%d of file, env and credential are given", k.given), "exactly one of them")
				return
			}
			if k.From.Kind == PasswordEnv && !e.p.public {
				v := e.p.given.variable(k.From.Name)
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
			if k.From.Kind != "" { // else reported
				b.Keys = append(b.Keys, k.BFDKey)
			}
		}).documented("", fmt.Sprintf("a list of up to %d", maxBFDKeys))
	var secrets []string
	for _, k := range b.Keys {
		secrets = append(secrets, string(k.Secret))
	}
	it.secret = Secret(strings.Join(secrets, "\x00"))
	return it
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
func loadBFD(c *Config, p *parser, path string, data []byte, given *Given) {
	for i := range c.BFD.Keys {
		k := &c.BFD.Keys[i]
		if k.From.Kind == PasswordEnv {
			continue
		}
		v, err := readSecret(k.From, given)
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
