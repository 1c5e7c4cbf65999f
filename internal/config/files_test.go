package config

import (
	"iter"
	"slices"
	"strings"
	"testing"
)

// fileSettings are the settings that name a file, of a section and of those below it.
func fileSettings(path string, list []item) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, it := range list {
			at := strings.TrimPrefix(path+"."+it.Key, ".")
			if it.Allowed == allowedPath && strings.HasSuffix(it.Key, "file") && !yield(at) {
				return
			}
			for sub := range fileSettings(at, it.keys) {
				if !yield(sub) {
					return
				}
			}
		}
	}
}

// Whichever setting names a file, a backup has that file.
func TestABackupHasEachFileThatTheConfigurationNames(t *testing.T) {
	c := &Config{}
	names := slices.Collect(fileSettings("", c.items()))
	if len(names) < 8 || !slices.Contains(names, "log.syslog.key-file") || !slices.Contains(names, "management.client-ca-file") {
		t.Fatalf("the settings that name files: %v", names)
	}
	text := `
device: {id: 192.0.2.1, name: a, roles: [reflector, client]}
client: {reflectors: [{address: 192.0.2.2}]}
ports: {access: [e*]}
zones: {file: /zones.file}
session: {auth: tls, certificate-file: /session.certificate-file, key-file: /session.key-file, ca-file: /session.ca-file}
management: {http: 192.0.2.1, certificate-file: /management.certificate-file, key-file: /management.key-file, token-file: /management.token-file, user-file: /management.user-file, client-ca-file: /management.client-ca-file}
log: {syslog: {servers: ['tls://192.0.2.9'], ca-file: /log.syslog.ca-file, certificate-file: /log.syslog.certificate-file, key-file: /log.syslog.key-file}}
`
	parsed, err := Parse("f", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	have := parsed.Files()
	for _, name := range names {
		if name == "session.password-file" || name == "session.password-key-file" || strings.HasPrefix(name, "bfd.") { // of another way to log in; see TestABackup
			continue
		}
		if !slices.Contains(have, "/"+name) {
			t.Errorf("%s is not in %v", name, have)
		}
	}
}

// A setting that names a file is in a backup, and one with a secret must not be readable by all.
func TestEveryFileThatASettingNamesIsKnown(t *testing.T) {
	c := &Config{}
	var want []string
	for key, it := range each("", c.items()) {
		if strings.HasSuffix(key, "file") && key != string("session."+PasswordKeyFile) { // one of the sources of a password: below
			if wrong := it.Read("/f/" + key); wrong != "" {
				t.Errorf("%s %s", key, wrong)
			}
			want = append(want, key)
		}
	}
	var got []string
	for _, f := range c.named() {
		if got = append(got, f.key); f.file != "/f/"+f.key {
			t.Errorf("%s is %s", f.key, f.file)
		}
		if f.private && !f.secret {
			t.Errorf("%s has a private key and no secret", f.key)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 10 || !slices.Equal(got, want) {
		t.Errorf("known %v, settings %v", got, want)
	}
	c.Session.PasswordFrom = PasswordFrom{PasswordKeyFile, "/f/key"}
	if !slices.ContainsFunc(c.named(), func(f named) bool { return f.secret && f == named{"session.password-key-file", "/f/key", true, false} }) {
		t.Errorf("a key of a password is no file with a secret: %+v", c.named())
	}
}
