package config

import (
	"fmt"
	"os"
)

// othersRead is the permission of everybody to read.
const othersRead = 0o004

// ExposedSecrets says which files with secrets everybody on this machine may read now. A
// group may: the daemon has a user of its own.
func (c *Config) ExposedSecrets() []string {
	type secret struct{ key, file string }
	var files []secret
	if c.Session.PasswordFrom.Kind == PasswordFile {
		files = append(files, secret{"session.password-file", c.Session.PasswordFrom.Name})
	}
	for _, s := range []secret{{"session.key-file", c.Session.TLS.KeyFile}, {"management.user-file", c.Management.UserFile},
		{"management.key-file", c.Management.HTTP.KeyFile}, {"log.syslog.key-file", c.Log.Syslog.KeyFile}} {
		if s.file != "" {
			files = append(files, s)
		}
	}
	for i, k := range c.BFD.Keys {
		if k.From.Kind == PasswordFile {
			files = append(files, secret{fmt.Sprintf("bfd.keys[%d]", i), k.From.Name})
		}
	}
	var list []string
	for _, f := range files {
		if st, err := os.Stat(f.file); err == nil && st.Mode().Perm()&othersRead != 0 {
			list = append(list, fmt.Sprintf("%s: everybody may read %s (mode %04o): chmod o-rwx %s, and change the secret if others use this machine",
				f.key, f.file, st.Mode().Perm(), f.file))
		}
	}
	return list
}
