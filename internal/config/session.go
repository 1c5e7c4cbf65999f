package config

import (
	"regexp"
	"time"

	"github.com/openinof/inof/internal/setting"
)

const (
	oneSource         = "exactly one of password-file, password-key-file, password-env, password-credential"
	allowedEnv        = "the name of an environment variable"
	allowedCredential = "the name of a systemd credential"
	allowedPassword   = "8 or more printable characters, at most 256 bytes"
)

func (c *Config) sessionItem() item {
	out := &c.Session
	keys := values(
		setting.Choice("auth", &out.Auth, AuthHMAC, []Auth{AuthHMAC, AuthTLS, AuthNone},
			"`tls` gives every device a certificate of its own, so that one device cannot pass for another and can be shut out alone; sessions are "+
				"encrypted too; the members of a cluster need it. `none` leaves sessions open to everybody who can reach the port: only in a lab, and only when written. Both sides need "+
				"the same.").Fixed().Documented("", "`hmac-sha256`, `tls`, `none`"),
		setting.Value(string(PasswordFile), &out.PasswordFrom, PasswordFrom{}, allowedPath,
			"The password is what the file holds, without the line end: 8 or more characters, at most 256 bytes; `check` warns of a weak one. A "+
				"second line is the old password, which is taken too while one replaces the other ([operations.md](operations.md#a-new-password)). A "+
				"new one counts for the next session, and those that stand stay; but sessions on the second line's begin anew when it is put in, and "+
				"end when it is taken out.", PasswordFile.parse(checkPath), PasswordFile.text),
		setting.Value(string(PasswordKeyFile), &out.PasswordFrom, PasswordFrom{}, allowedPath,
			"What `inofctl password-key` has made of the password, or of both: with it the daemon needs 64 MiB less of memory, as where its unit or "+
				"container has a limit below 128 MiB. As secret as the password: mode 0600, of the daemon's user.", PasswordKeyFile.parse(checkPath), PasswordKeyFile.text),
		setting.Value(string(PasswordEnv), &out.PasswordFrom, PasswordFrom{}, allowedEnv, "For containers.", PasswordEnv.parse(matches(envName)), PasswordEnv.text),
		setting.Value(string(PasswordCredential), &out.PasswordFrom, PasswordFrom{}, allowedCredential,
			"With `LoadCredential=` in a drop-in of the unit the password may stay root's; systemd hands it out at a start only, so a new one needs "+
				"a restart. It may have the second line too. Exactly one of these four is written with `hmac-sha256`.", PasswordCredential.parse(matches(credName)), PasswordCredential.text),
	)
	keys = append(keys,
		item{Setting: setting.Setting{Key: "password", Text: out.Password.String}, derived: true, secret: out.Password},
		item{Setting: setting.Setting{Key: "password-old", Text: out.OldPassword.String}, derived: true, secret: out.OldPassword})
	keys = append(keys, c.tlsItems()...)
	keys = append(keys, values(
		setting.Span("keepalive", &out.Keepalive, 3*time.Second, 100*time.Millisecond, 20*time.Minute,
			"How often an idle session says it is alive. The smaller value of both sides counts.").Fixed(),
		setting.Span("hold", &out.Hold, 9*time.Second, 300*time.Millisecond, time.Hour,
			"How long a silent session is taken to be alive. Shorter finds a dead reflector sooner; hosts are not told anything because of it. At "+
				"least three times `session.keepalive`.").Fixed(),
		setting.Span("connect-timeout", &out.ConnectTimeout, 5*time.Second, 100*time.Millisecond, 5*time.Minute,
			"How long an attempt to connect may take before the next one.").Fixed(),
	)...)
	return part("session", keys, func(s *section) {
		c.checkPasswordFrom(s)
		c.checkTLS(s)
		if c.Reflector.Cluster.Enabled() && out.Auth != AuthTLS {
			what := "makes no cluster (reflector.cluster): any device could pose as a member and change zones"
			if !s.has("auth") {
				what = "is not written, and " + string(out.Auth) + " " + what
			}
			s.problem("auth", what,
				"auth: tls with certificate-file, key-file and ca-file. `openssl req -x509` makes the CA, `openssl req` and `openssl x509 -req` the certificate of a member "+
					"for its device id (subjectAltName=IP:"+addrText(c.Device.ID)+"): the whole commands are under Certificates in operations.md")
		}
		if out.Hold < 3*out.Keepalive {
			s.problem("hold", "is less than three times session.keepalive ("+setting.Duration(out.Keepalive)+")", setting.Duration(3*out.Keepalive)+"..1h")
		}
	})
}

// parse and text are what a source of that kind is declared with.
func (k PasswordKind) parse(check func(string) string) func(string) (PasswordFrom, string) {
	return func(v string) (PasswordFrom, string) { return PasswordFrom{k, v}, check(v) }
}

func (k PasswordKind) text(f PasswordFrom) string {
	if f.Kind != k {
		return ""
	}
	return f.Name
}

var (
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	credName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,255}$`)
)

// matches gives a check for names.
func matches(re *regexp.Regexp) func(string) string {
	return func(v string) string {
		if !re.MatchString(v) || v == "." || v == ".." {
			return "is not a name"
		}
		return ""
	}
}

// checkPasswordFrom looks at where the password comes from, and takes it if that is the
// environment.
func (c *Config) checkPasswordFrom(s *section) {
	var given []PasswordKind
	for _, kind := range []PasswordKind{PasswordFile, PasswordKeyFile, PasswordEnv, PasswordCredential} {
		if s.has(string(kind)) {
			given = append(given, kind)
		}
	}
	from, auth := &c.Session.PasswordFrom, c.Session.Auth
	switch {
	case auth != AuthHMAC && len(given) > 0:
		s.problem(string(given[0]), "a password is given, but session.auth is "+string(auth), "no password, or auth: hmac-sha256")
		*from = PasswordFrom{}
	case auth == AuthHMAC && len(given) > 1:
		s.problem(string(given[1]), "is a second source of the password, beside "+string(given[0]), oneSource)
		*from = PasswordFrom{}
	case auth == AuthHMAC && len(given) == 0 && !c.Device.Roles.Standalone():
		s.problem("auth", "hmac-sha256 needs a password and none is given", oneSource+"; auth: tls with certificates; auth: none for sessions without any protection")
	}
	if from.Kind == PasswordEnv && !s.p.public {
		v := s.p.given.variable(from.Name)
		if what := checkPassword(v); what != "" {
			s.problem(string(PasswordEnv), "the password in that variable "+what, allowedPassword)
			return
		}
		c.Session.Password = Secret(v)
	}
}
