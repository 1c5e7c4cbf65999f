package config

import (
	"bytes"
	"os"
	"slices"
)

// Files lists the files that a configuration names and a device needs to be what it is: zones,
// passwords, keys, certificates, who may come. That they are there is not said.
func (c *Config) Files() []string {
	var out []string
	add := func(names ...string) {
		for _, n := range names {
			if n != "" && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	add(c.Zones.File)
	if c.Session.PasswordFrom.Kind == PasswordFile {
		add(c.Session.PasswordFrom.Name)
	}
	add(c.Session.TLS.Files()...)
	h, l := &c.Management.HTTP, &c.Log.Syslog
	add(h.CertificateFile, h.KeyFile, h.TokenFile, c.Management.UserFile, h.ClientCAFile)
	add(l.CAFile, l.CertificateFile, l.KeyFile)
	for _, k := range c.BFD.Keys {
		if k.From.Kind == PasswordFile {
			add(k.From.Name)
		}
	}
	return out
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
	for _, name := range []string{c.Session.TLS.KeyFile, c.Management.HTTP.KeyFile, c.Log.Syslog.KeyFile} {
		key, err := os.ReadFile(name)
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
