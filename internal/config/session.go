package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/openinof/inof/internal/setting"
)

const (
	oneSource       = "exactly one of password-file, password-env, password-credential"
	allowedPassword = "8 or more printable characters, at most 256 bytes"
)

func readSession(c *Config, s *section) {
	defer s.close()
	out := &c.Session
	out.Auth = Auth(s.choice("auth", string(AuthHMAC), string(AuthHMAC), string(AuthTLS), string(AuthNone)))
	readPasswordFrom(c, s)
	readTLS(c, s)
	s.read(out.settings())
	if out.Hold < 3*out.Keepalive {
		s.problem("hold", "is less than three times session.keepalive ("+setting.Duration(out.Keepalive)+")", setting.Duration(3*out.Keepalive)+"..1h")
	}
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

func readPasswordFrom(c *Config, s *section) {
	var given []PasswordFrom
	for _, k := range []struct {
		kind    PasswordKind
		allowed string
		check   func(string) string
	}{
		{PasswordFile, allowedPath, checkPath},
		{PasswordEnv, "the name of an environment variable", matches(envName)},
		{PasswordCredential, "the name of a systemd credential", matches(credName)},
	} {
		wrong := len(s.p.problems)
		v := s.text(string(k.kind), "", k.allowed, k.check)
		if v != "" || len(s.p.problems) > wrong {
			given = append(given, PasswordFrom{k.kind, v})
		}
	}
	roles, auth := c.Device.Roles, c.Session.Auth
	switch {
	case auth != AuthHMAC && len(given) > 0:
		s.problem(string(given[0].Kind), "a password is given, but session.auth is "+string(auth), "no password, or auth: hmac-sha256")
	case auth == AuthHMAC && len(given) > 1:
		s.problem(string(given[1].Kind), "is a second source of the password, beside "+string(given[0].Kind), oneSource)
	case auth == AuthHMAC && len(given) == 0 && !roles.Standalone():
		s.problem("auth", "hmac-sha256 needs a password and none is given", oneSource+"; auth: tls with certificates; auth: none for sessions without any protection")
	case len(given) == 1:
		c.Session.PasswordFrom = given[0]
	}
	if c.Session.PasswordFrom.Kind == PasswordEnv && !s.p.public {
		name := c.Session.PasswordFrom.Name
		v := s.p.env(name)
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
func Load(path string) (*Config, error) {
	return load(path, os.Getenv)
}

// LoadPublic is Load without passwords, keys and certificates, for those who need none
// of them and should not be able to read them.
func LoadPublic(path string) (*Config, error) {
	data, err := readLimited(path, MaxFileSize)
	if err != nil {
		return nil, err
	}
	c, p := (&parser{file: path, env: os.Getenv, public: true}).config(path, data)
	if err := p.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func load(path string, env func(string) string) (*Config, error) {
	data, err := readLimited(path, MaxFileSize)
	if err != nil {
		return nil, err
	}
	c, p := parse(path, data, env)
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
