package config

import (
	"bytes"
	"fmt"
	"os"
	"slices"
)

// named is a file that a configuration names.
type named struct {
	key, file string
	secret    bool // it has one
	private   bool // a private key (PEM)
}

// named are the files that are named, in the order of their keys.
func (c *Config) named() []named {
	password := func(key string, from PasswordFrom) named {
		if from.Kind != PasswordFile && from.Kind != PasswordKeyFile {
			return named{}
		}
		return named{key: key, file: from.Name, secret: true}
	}
	t, m, h, l := &c.Session.TLS, &c.Management, &c.Management.HTTP, &c.Log.Syslog
	all := []named{
		{key: "zones.file", file: c.Zones.File},
		password("session."+string(c.Session.PasswordFrom.Kind), c.Session.PasswordFrom),
		{key: "session.certificate-file", file: t.CertificateFile},
		{key: "session.key-file", file: t.KeyFile, secret: true, private: true},
		{key: "session.ca-file", file: t.CAFile},
		{key: "management.certificate-file", file: h.CertificateFile},
		{key: "management.key-file", file: h.KeyFile, secret: true, private: true},
		{key: "management.token-file", file: h.TokenFile},
		{key: "management.user-file", file: m.UserFile, secret: true},
		{key: "management.client-ca-file", file: h.ClientCAFile},
		{key: "log.syslog.ca-file", file: l.CAFile},
		{key: "log.syslog.certificate-file", file: l.CertificateFile},
		{key: "log.syslog.key-file", file: l.KeyFile, secret: true, private: true},
	}
	for i, k := range c.BFD.Keys {
		all = append(all, password(fmt.Sprintf("bfd.keys[%d]", i), k.From))
	}
	return slices.DeleteFunc(all, func(f named) bool { return f.file == "" })
}

// Files lists the files that a configuration names and a device needs to be what it is: zones,
// passwords, keys, certificates, who may come. That they are there is not said.
func (c *Config) Files() (out []string) {
	for _, f := range c.named() {
		if !slices.Contains(out, f.file) {
			out = append(out, f.file)
		}
	}
	return out
}

// othersRead is the permission of everybody to read.
const othersRead = 0o004

// ExposedSecrets says which files with secrets everybody on this machine may read now. A
// group may: the daemon has a user of its own.
func (c *Config) ExposedSecrets() (list []string) {
	for _, f := range c.named() {
		if st, err := os.Stat(f.file); f.secret && err == nil && st.Mode().Perm()&othersRead != 0 {
			list = append(list, fmt.Sprintf("%s: everybody may read %s (mode %04o): chmod o-rwx %s, and change the secret if others use this machine",
				f.key, f.file, st.Mode().Perm(), f.file))
		}
	}
	return list
}

// leastKeyLine keeps the end of a key, of a few characters, from standing for words of a text.
const leastKeyLine = 16

// Secrets gives what must not be shown to anybody: passwords, keys, and the lines of the private
// keys.
func (c *Config) Secrets() (out [][]byte) {
	add := func(b []byte) {
		if b = bytes.TrimSpace(b); len(b) > 0 {
			out = append(out, b)
		}
	}
	add(c.Session.Password.Reveal())
	add(c.Session.OldPassword.Reveal())
	for _, k := range c.BFD.Keys {
		add(k.Secret.Reveal())
	}
	for _, f := range c.named() {
		if !f.private {
			continue
		}
		key, err := os.ReadFile(f.file)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(key) {
			if line = bytes.TrimSpace(line); len(line) >= leastKeyLine && !bytes.HasPrefix(line, []byte("-----")) {
				add(line)
			}
		}
	}
	return out
}
