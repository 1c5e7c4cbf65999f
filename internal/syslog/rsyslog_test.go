package syslog

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
)

// One rsyslogd takes the same messages over UDP, TCP and TLS, and reads the structured data.
func TestRsyslogReadsWhatWeSend(t *testing.T) {
	netnstest.Programs(t, "rsyslogd")
	drivers, _ := filepath.Glob("/usr/lib/*/rsyslog/lmnsd_gtls.so")
	dir := t.TempDir()
	pool := certificate(t, dir)
	udp, tcp, secure := freePort(t), freePort(t), freePort(t)
	out := filepath.Join(dir, "out")
	overTLS := ""
	if len(drivers) > 0 {
		overTLS = fmt.Sprintf(`input(type="imtcp" address="127.0.0.1" port="%d" streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="anon" ruleset="keep")`, secure)
	}
	conf := fmt.Sprintf(`
global(workDirectory="%[1]s" maxMessageSize="16k" defaultNetstreamDriverCAFile="%[1]s/cert.pem"
  defaultNetstreamDriverCertFile="%[1]s/cert.pem" defaultNetstreamDriverKeyFile="%[1]s/key.pem")
module(load="imudp")
module(load="mmpstrucdata")
module(load="imtcp")
module(load="imptcp")
input(type="imudp" address="127.0.0.1" port="%[2]d" ruleset="keep")
input(type="imptcp" address="127.0.0.1" port="%[3]d" ruleset="keep")
%[4]s
template(name="line" type="list") {
  constant(value="{\"severity\":\"") property(name="syslogseverity-text")
  constant(value="\",\"facility\":\"") property(name="syslogfacility-text")
  constant(value="\",\"host\":\"") property(name="hostname")
  constant(value="\",\"app\":\"") property(name="app-name")
  constant(value="\",\"id\":\"") property(name="msgid")
  constant(value="\",\"time\":\"") property(name="timereported" dateformat="rfc3339")
  constant(value="\",\"text\":\"") property(name="msg" format="json")
  constant(value="\",\"data\":") property(name="$!rfc5424-sd")
  constant(value="}\n")
}
ruleset(name="keep") {
  action(type="mmpstrucdata")
  action(type="omfile" file="%[5]s" template="line" asyncWriting="off")
}
`, dir, udp, tcp, overTLS, out)
	file := filepath.Join(dir, "rsyslog.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("rsyslogd", "-n", "-f", file, "-i", filepath.Join(dir, "pid"))
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()

	for _, c := range []struct {
		network string
		port    uint16
	}{{"udp", udp}, {"tcp", tcp}, {"tls", secure}} {
		t.Run(c.network, func(t *testing.T) {
			if c.network == "tls" && overTLS == "" {
				netnstest.LeftOut(t, "TLS", "rsyslog over TLS")
				return
			}
			m := example()
			m.ID, m.Params = c.network, []Param{{"port", "eth1"}, {"nqn", `nqn.2014-08.org:"a"]\`}, {"reason", "link-down"}}
			sender := New(Config{
				Server: Server{Network: c.network, Host: "localhost", Port: c.port}, From: repeated{m},
				TLS: func() (*tls.Config, error) { return &tls.Config{RootCAs: pool}, nil },
			})
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = sender.Run(ctx) }()
			defer func() { stop(); <-done }()
			line := waitLine(t, out, `"id":"`+c.network, func() string { return sender.Trouble() + "\n" + said.String() })
			want := map[string]any{
				"severity": "warning", "facility": "local7", "host": "tor-1", "app": "inofd", "id": c.network,
				"time": "2026-05-04T10:00:00.123456+00:00", "text": "two hosts",
				"data": map[string]any{"inof@32473": map[string]any{"port": "eth1", "nqn": `nqn.2014-08.org:"a"]\`, "reason": "link-down"}},
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			got["time"] = strings.Replace(got["time"].(string), "Z", "+00:00", 1)
			a, _ := json.Marshal(got)
			b, _ := json.Marshal(want)
			if string(a) != string(b) {
				t.Errorf("got  %s\nwant %s", a, b)
			}
		})
	}
}

// repeated is a log that has the same message again and again, since a datagram may come before
// the server listens.
type repeated struct{ m Message }

func (r repeated) After(number uint64) Batch {
	r.m.Number = number + 1
	return Batch{Messages: []Message{r.m}, Last: r.m.Number}
}

func (r repeated) Wait(ctx context.Context, number uint64) (Batch, error) {
	select {
	case <-time.After(50 * time.Millisecond):
		return r.After(number), nil
	case <-ctx.Done():
		return Batch{}, ctx.Err()
	}
}

// waitLine gives the first whole line of a file that has a text.
func waitLine(t *testing.T, file, text string, trouble func() string) string {
	t.Helper()
	for range 1200 {
		if b, err := os.ReadFile(file); err == nil {
			for line := range strings.Lines(string(b)) {
				if strings.HasSuffix(line, "\n") && strings.Contains(line, text) {
					return line
				}
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("rsyslogd wrote nothing within a minute: " + trouble())
	return ""
}

func freePort(t *testing.T) uint16 {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// certificate writes cert.pem and key.pem for localhost, and gives what trusts it.
func certificate(t *testing.T, dir string) *x509.CertPool {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, b := range map[string][]byte{"cert.pem": cert, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}
