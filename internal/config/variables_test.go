package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unknown are the unknown variables of a configuration among the named ones: the process of the
// test has an environment of its own.
func unknown(t *testing.T, text string, env map[string]string) (list []string) {
	t.Helper()
	c, err := Parse("f", []byte(text), given(t, nil, env))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range c.UnknownVariables() {
		name, _, _ := strings.Cut(strings.TrimPrefix(w, "environment "), ":")
		if _, ok := env[name]; ok {
			list = append(list, w)
		}
	}
	return list
}

func TestAVariableThatIsNoSettingIsToldOf(t *testing.T) {
	none := "environment INOF_SOMETHING_ELSE_ENTIRELY: no setting has this variable"
	for _, c := range []struct {
		why, text string
		env       map[string]string
		want      []string
	}{
		{"typing errors", small, map[string]string{"INOF_SESION_AUTH": "none", "INOF_LOG_LEVLE": "debug"}, []string{
			"environment INOF_LOG_LEVLE: no setting has this variable, did you mean INOF_LOG_LEVEL?",
			"environment INOF_SESION_AUTH: no setting has this variable, did you mean INOF_SESSION_AUTH?"}},
		{"near to nothing", small, map[string]string{"INOF_SOMETHING_ELSE_ENTIRELY": "1"}, []string{none}},
		{"in small letters it is read by nobody", small, map[string]string{"INOF_log_level": "debug"},
			[]string{"environment INOF_log_level: no setting has this variable, did you mean INOF_LOG_LEVEL?"}},
		{"settings", small, map[string]string{"INOF_SESSION_AUTH": "none", "INOF_PORTS_ACCESS": "eth1"}, nil},
		{"empty, as not set", small, map[string]string{"INOF_SESION_AUTH": ""}, nil},
		{"not ours", small, map[string]string{"INOFX_LEVEL": "1"}, nil},
		{"of the password", "device: {id: 192.0.2.1, roles: [client]}\nclient: {reflectors: [192.0.2.2]}\nports: {access: [e*]}\nsession: {password-env: INOF_PASSWORD}\n",
			map[string]string{"INOF_PASSWORD": "a long enough one", "INOF_PASSWORT": "x"}, []string{"environment INOF_PASSWORT: no setting has this variable"}},
		{"of a key of BFD", "device: {id: 192.0.2.1, roles: [client]}\nclient: {reflectors: [192.0.2.2]}\nports: {access: [e*]}\nsession: {auth: none}\n" +
			"bfd: {auth: keyed-sha1, keys: [{id: 1, env: INOF_BFD_KEY}]}\n", map[string]string{"INOF_BFD_KEY": "0123456789"}, nil},
	} {
		t.Run(c.why, func(t *testing.T) {
			if got := unknown(t, c.text, c.env); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// What is missing may be in a variable whose name is mistyped: it is told with the rest.
func TestACheckTellsOfUnknownVariables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inofd.yaml")
	if err := os.WriteFile(path, []byte("ports: {access: [e*]}\nzones: {file: "+path+".zones}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const line = "environment INOF_DEVICE_IDD: no setting has this variable, did you mean INOF_DEVICE_ID?"
	g := given(t, nil, map[string]string{"INOF_DEVICE_IDD": "192.0.2.1"})
	if _, _, err := Check(path, g); err == nil || !strings.Contains(err.Error(), "device.id") || !strings.Contains(err.Error(), path+": "+line) {
		t.Errorf("without the setting: %v", err)
	}
	t.Setenv("INOF_DEVICE_ID", "192.0.2.1")
	if text, _, err := Check(path, g); err != nil || !strings.Contains(text, path+": warning: "+line+"\n") {
		t.Errorf("with the setting: %q %v", text, err)
	}
}

// The names that the project uses beside its settings are those that its code has.
func TestVariablesThatAreNoSettingsAreInTheCode(t *testing.T) {
	settings := map[string]bool{}
	for _, one := range Flags() {
		settings[EnvName(one.Key)] = true
	}
	found := map[string]bool{}
	literal := regexp.MustCompile(`"` + variables + `_([A-Z_]+)"`)
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.Contains(path, "internal/journald/") { // which names fields of the journal
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range literal.FindAllSubmatch(data, -1) {
			if name := string(m[1]); !settings[variables+"_"+name] {
				found[name] = true
				if !slices.Contains(notSettings, name) {
					t.Errorf("%s: INOF_%s is neither a setting nor in notSettings", path, name)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range notSettings {
		if !found[name] {
			t.Errorf("no code has INOF_%s", name)
		}
	}
}
