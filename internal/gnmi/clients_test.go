package gnmi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/internal/telemetry"
	"github.com/openinof/inof/zone/change"
)

// listen serves a device on a port of this machine; with TLS or without.
func listen(t *testing.T, withTLS bool) (*device, *Server, string) {
	t.Helper()
	src := &device{EventLog: api.NewEventLog(100, time.Now()), book: change.NewBook(&change.Plan{}, change.Meta{})}
	src.s.Status.Name, src.s.Inconsistent = "tor-1", -1
	src.s.Ports = []api.Port{port("eth1", 100), port("eth2", 200)}
	src.s.CountersAt = time.Now()
	list, err := api.ParseTokens([]byte("robot operator " + sumOf("robot-token")))
	if err != nil {
		t.Fatal(err)
	}
	s := New(src, &api.Door{Gate: &api.Gate{Tokens: func() ([]api.Token, error) { return list, nil }}}, time.Now)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conf *tls.Config
	if withTLS {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
		der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		conf = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, conf) }()
	t.Cleanup(func() { stop(); <-done })
	return src, s, l.Addr().String()
}

// gnmi_cli, which is of those who write gNMI, gets what it asks for in each way.
func TestGnmiCliIsServed(t *testing.T) {
	netnstest.Programs(t, "gnmi_cli")
	src, s, addr := listen(t, true)
	cli := func(env []string, args ...string) (string, error) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		cmd := exec.CommandContext(ctx, "gnmi_cli", append([]string{"-address", addr, "-tls_skip_verify", "-with_user_pass", "-timeout", "20s"}, args...)...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	known := []string{"GNMI_USER=robot", "GNMI_PASS=robot-token"}
	for _, c := range []struct{ want, args string }{
		{`name: "openinof-inof"`, "-capabilities"},
		{`\"openconfig-interfaces:in-octets\":\"100\"`, "-get|-proto|path: <elem: <name: 'interfaces'> elem: <name: 'interface' key: <key: 'name' value: 'eth1'>> elem: <name: 'state'> elem: <name: 'counters'>> encoding: JSON_IETF"},
		{`"in-octets": {Deprecated TypedValue_JsonVal 200}`, "-query|/interfaces/interface[name=eth2]/state/counters|-query_type|once"},
		{`"in-octets": {Deprecated TypedValue_JsonVal 200}`, "-query|/interfaces/interface/state/counters|-query_type|polling|-polling_interval|100ms|-count|2"},
		{`"in-octets": {Deprecated TypedValue_JsonVal 200}`, "-query|/interfaces/*/state/counters/in-octets|-query_type|streaming|-streaming_duration|2s"},
		{`op: UPDATE`, "-set|-proto|update: <path: <elem: <name: 'inof'> elem: <name: 'zones'> elem: <name: 'zone' key: <key: 'name' value: 'blue'>> elem: <name: 'config'>> val: <json_ietf_val: '{\"name\":\"blue\",\"member\":[\"192.0.2.1\"]}'>>"},
	} {
		out, err := cli(known, strings.Split(c.args, "|")...)
		if strings.Contains(c.args, "streaming") && strings.Contains(out, "DeadlineExceeded") {
			err = nil // so it ends
		}
		if err != nil || !strings.Contains(strings.ReplaceAll(out, "  ", " "), c.want) {
			t.Errorf("gnmi_cli %s: %v\n%s", c.args, err, out)
		}
	}
	if len(src.book.Plan().Zones) != 1 {
		t.Error("the zone is not there")
	}
	out, err := cli([]string{"GNMI_USER=robot", "GNMI_PASS=wrong"}, "-capabilities")
	if err == nil || !strings.Contains(out, "Unauthenticated") || s.Counters().NoLogin == 0 {
		t.Errorf("a stranger: %v\n%s", err, out)
	}
}

// telegraf gets samples, several within a second where it asks for that, and events, with the
// configuration that is shipped.
func TestTelegrafIsServed(t *testing.T) {
	netnstest.Programs(t, "telegraf")
	src, _, addr := listen(t, false)
	dir := t.TempDir()
	conf, err := os.ReadFile("../../dist/telegraf/inof.conf")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "metrics")
	text := strings.NewReplacer(
		`"192.0.2.11:9339", "192.0.2.12:9339"`, `"`+addr+`"`, `"${INOF_TOKEN_NAME}"`, `"robot"`, `"${INOF_TOKEN}"`, `"robot-token"`,
		"tls_enable = true", "tls_enable = false", `"stdout"`, `"`+file+`"`, `"10s"`, `"1s"`).Replace(string(conf))
	text = strings.Replace(text, `sample_interval = "1s"`, `sample_interval = "50ms"`, 1) // of the counters
	path := filepath.Join(dir, "telegraf.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "telegraf", "--config", path)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); _ = cmd.Wait() }()
	for i, end := 0, time.Now().Add(time.Minute); ; i++ {
		src.Append(api.Event{Time: time.Now(), Kind: "port", Text: fmt.Sprint("eth1 is down ", i)})
		src.change(func(s *telemetry.Snapshot) {
			s.Ports, s.CountersAt = []api.Port{port("eth1", 100+uint64(i)), port("eth2", 200)}, time.Now()
		})
		got, _ := os.ReadFile(file)
		missing := ""
		for _, want := range []string{"inof_port_counters,", "name=eth1", "in_octets=10", "inof_event,", `text="eth1 is down `, "inof_port,", `oper_status="UP"`} {
			if !strings.Contains(string(got), want) {
				missing = want
			}
		}
		if missing == "" && !severalInASecond(string(got), "inof_port_counters,", "name=eth1") {
			missing = "five counters of one second"
		}
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("no %q in\n%s\n%s", missing, got, said)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// severalInASecond reports whether five lines with these words were read at as many times within
// one second.
func severalInASecond(lines string, words ...string) bool {
	const several = 5
	var times []int64
	for line := range strings.Lines(lines) {
		f := strings.Fields(line)
		if len(f) == 0 || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			continue
		}
		if at, err := strconv.ParseInt(f[len(f)-1], 10, 64); err == nil {
			times = append(times, at)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	for i := several - 1; i < len(times); i++ {
		if times[i]-times[i-several+1] < int64(time.Second) {
			return true
		}
	}
	return false
}
