package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openinof/inof/internal/setting"
)

const (
	oneSource         = "exactly one of password-file, password-env, password-credential"
	allowedEnv        = "the name of an environment variable"
	allowedCredential = "the name of a systemd credential"
	allowedPassword   = "8 or more printable characters, at most 256 bytes"
)

func (c *Config) sessionItem() item {
	out := &c.Session
	keys := values(
		setting.Choice("auth", &out.Auth, AuthHMAC, []Auth{AuthHMAC, AuthTLS, AuthNone},
			"`tls` gives every device a certificate of its own, so that one device cannot pass for another and can be shut out alone; sessions are "+
				"encrypted too. `none` leaves sessions open to everybody who can reach the port: only in a lab, and only when written. Both sides need "+
				"the same.").Fixed().Documented("", "`hmac-sha256`, `tls`, `none`"),
		setting.Value(string(PasswordFile), &out.PasswordFrom, PasswordFrom{}, allowedPath,
			"The password is what the file holds, without the line end: 8 or more characters, at most 256 bytes; `check` warns of a weak one. A "+
				"second line is the old password, which is taken too while one replaces the other ([operations.md](operations.md#a-new-password)). A "+
				"new one counts for the next session, and those that stand stay; but sessions on the second line's begin anew when it is put in, and "+
				"end when it is taken out.", PasswordFile.parse(checkPath), PasswordFile.text),
		setting.Value(string(PasswordEnv), &out.PasswordFrom, PasswordFrom{}, allowedEnv, "For containers.", PasswordEnv.parse(matches(envName)), PasswordEnv.text),
		setting.Value(string(PasswordCredential), &out.PasswordFrom, PasswordFrom{}, allowedCredential,
			"With `LoadCredential=` in a drop-in of the unit the password may stay root's; systemd hands it out at a start only, so a new one needs "+
				"a restart. It may have the second line too. Exactly one of these three is written with `hmac-sha256`.", PasswordCredential.parse(matches(credName)), PasswordCredential.text),
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
	for _, kind := range []PasswordKind{PasswordFile, PasswordEnv, PasswordCredential} {
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
		v := s.p.env(from.Name)
		if what := checkPassword(v); what != "" {
			s.problem(string(PasswordEnv), "the password in that variable "+what, allowedPassword)
			return
		}
		c.Session.Password = Secret(v)
	}
}

// checkPassword says what is wrong with a password without repeating it.
func checkPassword(v string) string {
	switch {
	case v == "":
		return "is empty or not set"
	case len(v) > MaxPassword:
		return fmt.Sprintf("has %d bytes", len(v))
	case !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl):
		return "has characters that cannot be printed"
	case utf8.RuneCountInString(v) < MinPassword:
		return fmt.Sprintf("has %d characters", utf8.RuneCountInString(v))
	}
	return ""
}

// Load reads and validates the configuration file and the password it names, with
// the process's environment. The error is an *Error when the content is wrong.
func Load(path string) (*Config, error) { return LoadWith(path, nil) }

// LoadWith is Load with flags, by key. Of NoFile nothing but these and the environment is read.
func LoadWith(path string, flags map[string]string) (*Config, error) {
	return load(path, flags, os.Getenv)
}

// LoadPublic is Load without passwords, keys and certificates, for those who need none
// of them and should not be able to read them.
func LoadPublic(path string) (*Config, error) {
	data, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	p := newParser(path, os.Getenv)
	p.public = true
	c, _ := p.config(path, data)
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func readConfig(path string) ([]byte, error) {
	if path == NoFile {
		return nil, nil
	}
	return readLimited(path, MaxFileSize)
}

func load(path string, flags map[string]string, env func(string) string) (*Config, error) {
	data, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	return loadText(path, data, flags, env)
}

// LoadText is LoadWith for what a file says, or said: path is what errors call it.
func LoadText(path string, data []byte, flags map[string]string) (*Config, error) {
	return loadText(path, data, flags, os.Getenv)
}

// ReadText gives what a configuration file says, within its limit.
func ReadText(path string) ([]byte, error) { return readConfig(path) }

func loadText(path string, data []byte, flags map[string]string, env func(string) string) (_ *Config, err error) {
	p := newParser(path, env)
	p.flags = flags
	c, _ := p.config(path, data)
	if from := c.Session.PasswordFrom; from.Kind == PasswordFile || from.Kind == PasswordCredential {
		if c.Session.Password, c.Session.OldPassword, err = readPasswords(from, env); err != nil {
			pr := Problem{File: path, Key: "session." + string(from.Kind), Value: from.Name, What: err.Error(), Allowed: allowedPassword}
			if n := find(p.document(data), "session", string(from.Kind)); n != nil {
				pr.Line, pr.Column = n.Line, n.Column
			}
			p.add(pr)
		}
	}
	loadTLS(c, p, path, data)
	loadBFD(c, p, path, data, env)
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// readPasswords reads the password of a file, and from a second line the old one.
func readPasswords(from PasswordFrom, env func(string) string) (password, old Secret, err error) {
	v, err := readSecret(from, env)
	if err != nil {
		return "", "", err
	}
	lines := strings.Split(v, "\n")
	if len(lines) > 2 {
		return "", "", fmt.Errorf("that file has %d lines, want the password, and in a second line the old one while devices are moved", len(lines))
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, "\r")
		if what := checkPassword(lines[i]); what != "" && i == 0 {
			return "", "", fmt.Errorf("the password in that file %s", what)
		} else if what != "" {
			return "", "", fmt.Errorf("the old password in that file, its second line, %s", what)
		}
	}
	if len(lines) == 1 {
		return Secret(lines[0]), "", nil
	}
	if lines[0] == lines[1] {
		return "", "", errors.New("the two passwords in that file are the same")
	}
	return Secret(lines[0]), Secret(lines[1]), nil
}

// readSecret reads the one line of a file or credential.
func readSecret(from PasswordFrom, env func(string) string) (string, error) {
	file := from.Name
	if from.Kind == PasswordCredential {
		dir := env("CREDENTIALS_DIRECTORY")
		if dir == "" {
			return "", errors.New("CREDENTIALS_DIRECTORY is not set: the unit has no LoadCredential= or the daemon was not started by systemd")
		}
		file = filepath.Join(dir, from.Name)
	}
	data, err := readLimited(file, 4096)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// readLimited reads a regular file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s is a directory, not a file", path)
	} else if err == nil && st.Size() > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: %d", path, limit, st.Size())
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, nil
}
