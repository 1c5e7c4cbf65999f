package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Both passwords of a file become keys in a file of mode 0600, also where there was another.
func TestPasswordKeyWritesBothKeys(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "password"), filepath.Join(dir, "key")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(from, "correct horse\nbattery staple\n")
	write(to, "older")
	code, out, errs := call(t, "password-key", from, to, "-o", "json")
	if code != 0 || !strings.Contains(out, `"keys": 2`) {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	st, err := os.Stat(to)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	b, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	form := regexp.MustCompile(`^inof-v2-key:[0-9a-f]{64}$`)
	if len(lines) != 2 || !form.MatchString(lines[0]) || !form.MatchString(lines[1]) || lines[0] == lines[1] || strings.Contains(string(b), "horse") {
		t.Errorf("%q", lines)
	}
	write(from, "short\n")
	if code, _, errs := call(t, "password-key", from, to); code != 1 || !strings.Contains(errs, from+": the password in that file has 5 characters") {
		t.Errorf("%d %s", code, errs)
	}
	if code, _, errs := call(t, "password-key", from, to, "--user", "no such user"); code != 1 || !strings.Contains(errs, "no such user") {
		t.Errorf("%d %s", code, errs)
	}
}
