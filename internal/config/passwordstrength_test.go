package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWeakPasswordsAreToldFromStrongOnes(t *testing.T) {
	for _, v := range []string{"password1", "12345678", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abcdefghijklmnopqrstuvwxyz0123456789", "correct horse", "inof-storage-fabric-2026", "Passw0rdPassw0rdPassw0rd"} {
		if s := (Session{Password: Secret(v)}); len(s.Warnings()) != 1 {
			t.Errorf("%q is said to have %d bits", v, strength(v))
		}
	}
	for _, v := range []string{"q0zN3u8dVtqT1nJ7s4mXbW2k", "f3a91c7be0d2485f96b1", "kY7#pQ2!vL9@tR4$"} {
		if s := (Session{Password: Secret(v)}); len(s.Warnings()) != 0 {
			t.Errorf("%q: %v, %d bits", v, s.Warnings(), strength(v))
		}
	}
	s := Session{Password: "q0zN3u8dVtqT1nJ7s4mXbW2k", OldPassword: "password1"}
	if w := s.Warnings(); len(w) != 1 || strings.Contains(w[0], "password1") || !strings.Contains(w[0], "old") {
		t.Errorf("the old one: %v", w)
	}
}

func TestAPasswordFileMayHoldTheOldOneToo(t *testing.T) {
	dir := t.TempDir()
	conf, file := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "password")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "device: {id: 192.0.2.1, roles: [reflector]}\nsession: {password-file: %s}\n", file), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, password, old, problem string }{
		{"the new one\nthe old one\n", "the new one", "the old one", ""},
		{"the new one\r\nthe old one", "the new one", "the old one", ""},
		{"only one\n\n\n", "only one", "", ""},
		{"the new one\nshort\n", "", "", "its second line, has 5 characters"},
		{"the new one\n\nthe old one", "", "", "has 3 lines"},
		{"the new one\nthe new one\n", "", "", "are the same"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Load(conf)
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%q: %v", c.text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if p, o := string(got.Session.Password.Reveal()), string(got.Session.OldPassword.Reveal()); p != c.password || o != c.old {
			t.Errorf("%q: %q and %q", c.text, p, o)
		}
	}
}

// A reflector whose password lets a device in with any id says so; with a list, or certificates, not.
func TestAReflectorOpenToAnyIDIsToldSo(t *testing.T) {
	for _, c := range []struct {
		doc  string
		want int
	}{
		{"device: {id: 192.0.2.1, name: a, roles: [reflector]}\nsession: {password-file: /p}\n", 1},
		{"device: {id: 192.0.2.1, name: a, roles: [reflector]}\nsession: {password-file: /p}\nreflector: {clients: [192.0.2.2]}\n", 0},
		{"device: {id: 192.0.2.1, name: a, roles: [reflector]}\nsession: {auth: none}\n", 0},
		{"device: {id: 192.0.2.1, name: a, roles: [client]}\nclient: {reflectors: [{address: 192.0.2.2}]}\nports: {access: [e1]}\nsession: {password-file: /p}\n", 0},
	} {
		cfg, err := Parse("f", []byte(c.doc), nil)
		if err != nil {
			t.Fatal(err)
		}
		if w := cfg.openToIDs(); len(w) != c.want {
			t.Errorf("%s: %q", c.doc, w)
		}
	}
}
