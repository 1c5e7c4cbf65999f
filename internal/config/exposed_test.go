package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASecretThatEverybodyMayReadIsAWarning(t *testing.T) {
	dir := t.TempDir()
	password, conf := filepath.Join(dir, "password"), filepath.Join(dir, "inofd.yaml")
	text := "device: {id: 192.0.2.1, roles: [reflector]}\nsession: {password-file: " + password + "}\nzones: {file: " + dir + "/zones.yaml}\n"
	for _, err := range []error{os.WriteFile(password, []byte("Xk29-vhTq-77Lm-pZr4-Wq\n"), 0o600), os.WriteFile(conf, []byte(text), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
		if err := os.Chmod(password, mode); err != nil {
			t.Fatal(err)
		}
		out, _, err := Check(conf, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out, "warning: session.password-file: everybody may read "+password+" (mode 0644)"); got != warned {
			t.Errorf("mode %04o: %s", mode, out)
		}
	}
}
