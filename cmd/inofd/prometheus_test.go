package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
)

// asInofd makes the test program inofd.
const asInofd = "INOFD_TEST_IS_INOFD"

func TestMain(m *testing.M) {
	if os.Getenv(asInofd) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// freeAddress gives an address of this machine where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// begin starts a program until the end of the test; what it said is shown if that fails.
func begin(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s:\n%s", cmd.Path, text)
		}
		log.Close()
	})
}

// Debian's Prometheus scrapes a switch that has no file, by its token, and the alert of one
// without a reflector fires.
func TestPrometheusScrapesASwitchUntilAnAlertFires(t *testing.T) {
	netnstest.Programs(t, "prometheus")
	if os.Getuid() != 0 {
		netnstest.Require(t, "inofd with access ports needs root", errors.New("not root"))
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const token = "a token of this test"
	sum := sha256.Sum256([]byte(token))
	tokens, at := write("tokens", "prometheus viewer "+hex.EncodeToString(sum[:])+"\n"), freeAddress(t)
	inofd := exec.Command(os.Args[0], "run", "--config", "", "--device.id", "127.0.0.1", "--ports.access", "no-such-port*")
	inofd.Env = append(os.Environ(), asInofd+"=1", "INOF_DEVICE_ALLOW_LOOPBACK=true", "INOF_DEVICE_ROLES=client",
		"INOF_SESSION_AUTH=none", "INOF_LLDP_TRANSMIT=off", "INOF_BFD_ENABLED=false", "INOF_STATE_DIRECTORY="+filepath.Join(dir, "state"),
		"INOF_MANAGEMENT_SOCKET="+filepath.Join(dir, "s"), "INOF_MANAGEMENT_HTTP="+at, "INOF_MANAGEMENT_TOKEN_FILE="+tokens)
	inofd.Env = append(inofd.Env, "INOF_CLIENT_REFLECTORS=127.99.0.2")
	begin(t, inofd)

	rules, err := os.ReadFile("../../dist/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write("rules.yaml", regexp.MustCompile(`(?m)^ +for: .*\n`).ReplaceAllString(string(rules), "")) // seconds, not minutes
	write("token", token)
	conf := write("prometheus.yml", fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
  - job_name: inof
    authorization: {credentials_file: token}
    static_configs: [{targets: [%q]}]
`, at))
	page := freeAddress(t)
	begin(t, exec.Command("prometheus", "--config.file="+conf, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+page))

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for seen := ""; ; {
		var answer struct {
			Data struct {
				Alerts []struct {
					Labels map[string]string
					State  string
				}
			}
		}
		if resp, err := http.Get("http://" + page + "/api/v1/alerts"); err == nil {
			err = json.NewDecoder(resp.Body).Decode(&answer)
			resp.Body.Close()
			seen = fmt.Sprint(answer, err)
		}
		firing := map[string]bool{}
		for _, a := range answer.Data.Alerts {
			firing[a.Labels["alertname"]] = a.State == "firing"
		}
		if firing["InofNoReflector"] && !firing["InofDown"] {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the alert does not fire: %s", seen)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
