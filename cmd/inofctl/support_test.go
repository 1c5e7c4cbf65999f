package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone/change"
)

// untar gives the files of a tar.gz.
func untar(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(b)
	}
}

// secretDevice writes a configuration with secrets of all kinds that need no certificate.
func secretDevice(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"inofd.yaml": "device: {id: 192.0.2.250, name: r1, roles: [reflector, client]}\nclient: {reflectors: [{address: 192.0.2.251}]}\nports: {access: [eth1]}\nstate-directory: " + dir + "/state\n" +
			"session: {password-file: " + dir + "/password}\nzones: {file: " + dir + "/zones.yaml}\n" +
			"bfd:\n  auth: meticulous-keyed-sha1\n  keys:\n    - {id: 1, file: " + dir + "/bfd.key}\n",
		"password":          "first-Secret/of<all>&\"more\"!\nold secret with spaces\n",
		"bfd.key":           "bfd-key-12345678\n",
		"zones.yaml":        "zones:\n  - {name: blue, members: [192.0.2.1]}\n",
		"state/path-secret": "0123456789abcdef0123456789abcdef",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, filepath.Join(dir, "inofd.yaml")
}

// Whatever a secret of the configuration got into, it is not in the bundle.
func TestABundleForSupportHasNoSecret(t *testing.T) {
	dir, file := secretDevice(t)
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	secrets := cfg.Secrets()
	if len(secrets) != 3 {
		t.Fatalf("%d secrets are known", len(secrets))
	}
	src := apitest.Sample()
	src.UseZones(&change.Plan{})
	for _, s := range secrets {
		src.Append(api.Event{Time: apitest.Now, Kind: "error", Text: "somebody wrote " + string(s) + " here"})
	}
	socket, _ := apitest.Serve(t, src)
	bundle := filepath.Join(dir, "b.tar.gz")
	out := ok(t, "support", bundle, "--config", file, "--socket", socket)
	if !strings.Contains(out, "without the passwords and keys") {
		t.Error(out)
	}
	files := untar(t, bundle)
	for name, text := range files {
		for _, s := range secrets {
			if strings.Contains(text, string(s)) {
				t.Errorf("%s has the secret %q", name, s)
			}
			if part := "first-Secret"; strings.Contains(text, part) {
				t.Errorf("%s has %q, the beginning of a secret", name, part)
			}
		}
	}
	for _, name := range []string{"contents.json", "configuration.json", "daemon/status.json", "daemon/hosts.json", "daemon/events.json", "daemon/zoning.json", "system/uname_-a.txt", "version.txt"} {
		if files["inof-support/"+name] == "" {
			t.Errorf("%s is not there", name)
		}
	}
	if !strings.Contains(files["inof-support/daemon/events.json"], "somebody wrote [secret] here") {
		t.Error("the events are not those of the daemon")
	}
	if info, _ := os.Stat(bundle); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if code, _, _ := call(t, "support", bundle, "--config", file, "--socket", socket); code != 1 {
		t.Error("a file that is there is written over")
	}
	// Without a daemon there is still what the system says.
	alone := filepath.Join(dir, "alone.tar.gz")
	if out := ok(t, "support", alone, "--config", file, "--socket", dir+"/none"); !strings.Contains(out, "daemon.txt: inofd is not running") {
		t.Error(out)
	}
}

func TestABackupMakesAnotherMachineTheSameDevice(t *testing.T) {
	dir, file := secretDevice(t)
	backup := filepath.Join(dir, "r1.tar.gz")
	if out := ok(t, "backup", backup, "--config", file); !strings.Contains(out, "has 5 files of device 192.0.2.250 (r1)") {
		t.Error(out)
	}
	if info, _ := os.Stat(backup); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	root := t.TempDir()
	if out := ok(t, "restore", backup, "--outside", "--root", root, "--socket", dir+"/none"); !strings.Contains(out, "5 files of device 192.0.2.250 (r1)") || !strings.Contains(out, "inofd check "+file) {
		t.Error(out)
	}
	for _, name := range []string{"inofd.yaml", "password", "bfd.key", "zones.yaml", "state/path-secret"} {
		want, _ := os.ReadFile(filepath.Join(dir, name))
		got, err := os.ReadFile(filepath.Join(root, dir, name))
		if err != nil || !bytes.Equal(want, got) {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(filepath.Join(root, dir, name)); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	ok(t, "restore", backup, "--outside", "--root", root) // the same again
	if err := os.Chmod(filepath.Join(dir, "bfd.key"), 0o4777); err != nil {
		t.Fatal(err)
	}
	wide, open := filepath.Join(dir, "wide.tar.gz"), t.TempDir()
	ok(t, "backup", wide, "--config", file)
	if out := ok(t, "restore", wide, "--outside", "--root", open); !strings.Contains(out, "-rw-r--r-- "+filepath.Join(open, dir, "bfd.key")) {
		t.Errorf("not listed: %s", out)
	}
	if info, err := os.Stat(filepath.Join(open, dir, "bfd.key")); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	zones := filepath.Join(root, dir, "zones.yaml")
	if err := os.WriteFile(zones, []byte("zones: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call(t, "restore", backup, "--outside", "--root", root); code != 1 || !strings.Contains(errs, "nothing was written") || !strings.Contains(errs, zones+" is there and differs") {
		t.Errorf("%d %s", code, errs)
	}
	ok(t, "restore", backup, "--outside", "--root", root, "--force")
	if b, _ := os.ReadFile(zones); !strings.Contains(string(b), "blue") {
		t.Errorf("forced, and the zones are %s", b)
	}
	if err := os.Remove(filepath.Join(dir, "password")); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := call(t, "backup", filepath.Join(dir, "half.tar.gz"), "--config", file); code != 1 {
		t.Error("a backup without its password is taken")
	}
}

// A backup that is damaged, or made by somebody else, writes nothing.
func TestABackupIsCheckedBeforeAnythingIsWritten(t *testing.T) {
	dir, file := secretDevice(t)
	backup := filepath.Join(dir, "r1.tar.gz")
	ok(t, "backup", backup, "--config", file)
	files := untar(t, backup)
	var m manifest
	if err := json.Unmarshal([]byte(files[manifestName]), &m); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(m *manifest){
		"another content": func(m *manifest) { m.text[1] = []byte("other") },
		"up and away":     func(m *manifest) { m.Files[0].Path = "/x/../../etc/passwd" },
		"not absolute":    func(m *manifest) { m.Files[0].Path = "etc/passwd" },
		"another format":  func(m *manifest) { m.Format = 9 },
		"what its configuration does not name": func(m *manifest) {
			m.Files[1].Path = "/etc/cron.d/x"
		},
		"beside the state": func(m *manifest) { m.Files[len(m.Files)-1].Path = filepath.Join(dir, "state", "authorized_keys") },
		"a file twice": func(m *manifest) {
			m.Files[2].Path, m.Files[2].Sum, m.text[2] = m.Files[1].Path, m.Files[1].Sum, m.text[1]
		},
		"another configuration first": func(m *manifest) { m.Config = m.Files[1].Path },
	} {
		bad := m
		bad.Files = append([]backupFile{}, m.Files...)
		for _, f := range m.Files {
			bad.text = append(bad.text, []byte(files["files"+f.Path]))
		}
		change(&bad)
		path := filepath.Join(t.TempDir(), "bad.tar.gz")
		f, err := os.Create(path)
		if err == nil {
			err = bad.write(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		root := t.TempDir()
		code, _, errs := call(t, "restore", path, "--outside", "--root", root)
		if entries, _ := os.ReadDir(root); code != 1 || len(entries) > 0 || !strings.Contains(errs, "is no sound backup") {
			t.Errorf("%s: %d %s, %d files", name, code, errs, len(entries))
		}
	}
	if code, _, errs := call(t, "restore", backup, "--root", t.TempDir()); code != 1 || !strings.Contains(errs, "--outside") || !strings.Contains(errs, file) {
		t.Errorf("files elsewhere than where a device has them: %d %s", code, errs)
	}
	whole, _ := os.ReadFile(backup)
	for _, n := range []int{0, 10, len(whole) / 2, len(whole) - 1} {
		path := filepath.Join(t.TempDir(), "cut.tar.gz")
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		code, _, _ := call(t, "restore", path, "--outside", "--root", root)
		if entries, _ := os.ReadDir(root); n < len(whole)-1 && (code != 1 || len(entries) > 0) {
			t.Errorf("%d of %d bytes: %d, %d files", n, len(whole), code, len(entries))
		}
	}
}

func TestDoctorSaysWhatIsWrongAndWhatIsNot(t *testing.T) {
	src := apitest.Sample()
	src.UseZones(&change.Plan{}).Review.Warnings = []string{"zone blue has 2 initiators and no target"}
	src.AuditValue = api.AuditList{Records: 4, Trouble: "record 3 is not what was written"}
	socket, _ := apitest.Serve(t, src)
	code, out, _ := call(t, "doctor", "--socket", socket)
	for _, want := range []string{"hint zone blue has 2 initiators", "bad  the record of what operators did was tampered with", "     do: "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
	if code != exitFinding {
		t.Errorf("exit code %d", code)
	}
	src.AuditValue = api.AuditList{Records: 4, Whole: true}
	var list []advice
	code, out, _ = call(t, "doctor", "--socket", socket, "-o", "json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) < 7 {
		t.Errorf("%v, %d, %s", err, code, out)
	}
	src.SetErr(os.ErrDeadlineExceeded)
	if code, _, _ := call(t, "doctor", "--socket", socket); code != 1 {
		t.Errorf("a daemon that answers nothing: exit code %d", code)
	}
}

// What cannot be known is not good.
func TestDoctorFindsNothingGoodWhereThereIsNothing(t *testing.T) {
	src := apitest.Sample()
	src.PortValues, src.HostValues, src.NoticeValues, src.PeerValues, src.LatencyValue = []api.Port{}, []api.Host{}, []api.Notice{}, []api.Peer{}, api.Latency{}
	src.UseZones(&change.Plan{})
	src.AuditValue = api.AuditList{Whole: true}
	socket, _ := apitest.Serve(t, src)
	_, out, _ := call(t, "doctor", "--socket", socket)
	for _, want := range []string{"no clock of a reflector", "no session has a certificate", "no access ports", "no target is known", "no host was told", "no zones", "no operator"} {
		if !strings.Contains(out, "none nothing to check: "+want) && !strings.Contains(out, "none nothing to check: this device has "+want) && !strings.Contains(out, "none nothing to check: there are "+want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
	for _, good := range []string{"ok   every", "ok   all", "ok   no certificate", "ok   the clocks"} {
		if strings.Contains(out, good) {
			t.Errorf("%q about nothing:\n%s", good, out)
		}
	}
	// The only target is down.
	src.HostValues = []api.Host{{NQN: "nqn.2026-11.test:array", Role: snsd.RoleTarget, State: snsd.Inactive, Device: netip.MustParseAddr("192.0.2.11")}}
	if _, out, _ = call(t, "doctor", "--socket", socket); !strings.Contains(out, "hint nqn.2026-11.test:array cannot be reached at any switch now") {
		t.Errorf("the only target is down:\n%s", out)
	}
}

func TestTopShowsRates(t *testing.T) {
	src := apitest.Sample()
	socket, _ := apitest.Serve(t, src)
	out := ok(t, "top", "-n", "1", "--interval", "100ms", "--socket", socket)
	if !strings.Contains(out, "PORT") || !strings.Contains(out, "ports up") || strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
	before, now := append([]api.Port{}, src.PortValues[:1]...), append([]api.Port{}, src.PortValues[:1]...)
	var b, c fabric.Counters
	b.RxBytes, c.RxBytes, b.TxBytes, c.TxBytes, b.RxCRC, c.RxCRC = 1000, 251000, 500, 100, 1, 4
	before[0].Counters, now[0].Counters = &b, &c
	p := pageOf(before, now, 2e9)
	if r := p.Ports[0]; r.RxRate != 125000 || r.TxRate != 50 || r.CRC != 3 || rate(r.RxRate) != "1.0 Mbit" {
		t.Errorf("%+v", r)
	}
}

// The least memory of a configuration is named, whatever the limit.
func TestDoctorNamesTheLeastMemory(t *testing.T) {
	for _, c := range []struct {
		limit uint64
		level string
		says  string
	}{
		{0, "ok", "the daemon's memory has no limit; the least for this configuration is 128 MiB"},
		{512 << 20, "ok", "the daemon may take 512 MiB of memory; the least for this configuration is 128 MiB"},
		{64 << 20, "bad", "the daemon may take 64 MiB of memory (/x/memory.max); the least for this configuration is 128 MiB"},
	} {
		var got checkup
		got.memory(&api.Memory{Limit: c.limit, File: "/x/memory.max", Least: 128 << 20})
		if len(got.list) != 1 || got.list[0].Level != c.level || got.list[0].What != c.says {
			t.Errorf("%+v", got.list)
		}
	}
}
