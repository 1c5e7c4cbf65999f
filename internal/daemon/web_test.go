package daemon

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/telemetry"
)

// scrape gives what Prometheus gets of a node.
func (n *node) scrape(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	n.d.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil).WithContext(t.Context()))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// Prometheus gets what is true, with what drivers tell while somebody asks, and without what
// they do not.
func TestPrometheusGetsWhatIsTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["tor3"]
		if err := n.fake.SetHealth("eth1", fabric.Health{Valid: fabric.FieldRxPower | fabric.FieldCRC, RxPower: -3000, RxCRC: 4}); err != nil {
			t.Fatal(err)
		}
		has := func(text, line string, want bool) {
			t.Helper()
			if strings.Contains(text, "\n"+line+"\n") != want {
				t.Errorf("%q is there: %v", line, !want)
			}
		}
		first := n.scrape(t)
		has(first, `inof_peer_up{peer="`+reflectorID+`",role="reflector"} 1`, true)
		has(first, `inof_port_up{port="eth2"} 1`, true)
		has(first, `inof_hosts{type="local"} 2`, true)
		has(first, `inof_synced 1`, true)
		has(first, `inof_zones_inconsistent 0`, true)
		settle(3 * time.Second)
		n.fake.SetCarrier("eth2", false)
		settle(time.Second)
		text := n.scrape(t)
		has(text, `inof_optic_rx_power_dbm{port="eth1"} -3`, true)
		has(text, `inof_port_crc_errors_total{port="eth1"} 4`, true)
		has(text, `inof_port_error_down{cause="link-down",port="eth2"} 1`, true)
		has(text, `inof_port_up{port="eth2"} 0`, true)
		if strings.Contains(text, "pfc") {
			t.Error("what the driver does not tell is there")
		}
		if spine := f.nodes["spine"].scrape(t); strings.Contains(spine, "inof_port_up") || strings.Contains(spine, "zones_inconsistent") || !strings.Contains(spine, `inof_peer_up{peer="10.0.0.3",role="client"} 1`) {
			t.Error("a reflector tells of what it does not have, or not of its clients")
		}
		leaves, err := ask[[]api.Leaf](t.Context(), n.d, "telemetry", "path", "/inof/interfaces/interface[name=eth1]/state/optic-input-power")
		if err != nil || len(leaves) != 1 || leaves[0].Value != -3.0 || time.Since(leaves[0].Time) > modulePeriod {
			t.Errorf("%+v, %v", leaves, err)
		}
		settle(idleAfter + time.Second)
		n.d.known.readings.Lock()
		if left := len(n.d.known.health); left != 0 {
			t.Errorf("%d readings of nobody's present are kept", left)
		}
		n.d.known.readings.Unlock()
	})
}

// What somebody wants faster is read faster, that alone and while it is wanted.
func TestThePlatformIsReadAsFastAsItIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		n := f.nodes["tor1"]
		k := n.d.known
		if err := n.fake.SetHealth("eth1", fabric.Health{Valid: fabric.FieldSpeed | fabric.FieldRxPower, Speed: 1e9}); err != nil {
			t.Fatal(err)
		}
		// paces gives how often the times of reading change within a second.
		paces := func() (kernel, driver, module, machine int) {
			var last [4]time.Time
			var count [4]int
			for range 1000 {
				settle(time.Millisecond)
				s, err := k.Quick(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var at [4]time.Time
				at[3] = s.Machine.At
				for _, h := range s.Health {
					if h.Port != "eth1" {
						continue
					}
					if h.Has(fabric.FieldCounters) && h.At.After(at[0]) {
						at[0] = h.At
					}
					if h.Has(fabric.FieldSpeed) {
						at[1] = h.At
					}
					if h.Has(fabric.FieldRxPower) {
						at[2] = h.At
					}
				}
				for i := range at {
					if at[i] != last[i] {
						count[i]++
					}
				}
				last = at
			}
			return count[0], count[1], count[2], count[3]
		}
		within := func(what string, got, least, most int) {
			t.Helper()
			if got < least || got > most {
				t.Errorf("%s: %d readings in a second, want %d to %d", what, got, least, most)
			}
		}
		if _, err := k.Snapshot(t.Context(), 0, time.Time{}); err != nil {
			t.Fatal(err)
		}
		settle(modulePeriod + 2*time.Second)
		kernel, driver, module, machine := paces()
		within("totals of nobody", kernel, 1, 2)
		within("drivers of nobody", driver, 1, 2)
		within("modules of nobody", module, 1, 2)
		within("machine of nobody", machine, 1, 1)

		end := k.Hasten(telemetry.Pace{telemetry.ReadTotals: 10 * time.Millisecond})
		kernel, driver, module, machine = paces()
		within("totals", kernel, 99, 102)
		within("drivers with totals", driver, 1, 3)
		within("modules with totals", module, 1, 2)
		within("machine with totals", machine, 1, 1)

		other := k.Hasten(telemetry.Pace{telemetry.ReadDrivers: 50 * time.Millisecond, telemetry.ReadMachine: 20 * time.Millisecond})
		end()
		kernel, driver, _, machine = paces()
		within("totals with drivers", kernel, 19, 22)
		within("drivers", driver, 19, 22)
		within("machine", machine, 49, 51)
		other()
		kernel, driver, _, _ = paces()
		within("totals afterwards", kernel, 1, 3)
		within("drivers afterwards", driver, 1, 3)
		if v, err := k.Quick(t.Context()); err != nil || v.Machine.At.IsZero() {
			t.Errorf("%+v, %v", v.Machine, err)
		}
	})
}

// However many ask, a device is read once a second.
func TestASnapshotServesAllWhoAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		n := f.nodes["tor1"]
		a, err := n.d.known.Snapshot(t.Context(), 0, time.Time{})
		b, _ := n.d.known.Snapshot(t.Context(), 0, time.Time{})
		if err != nil || a != b {
			t.Errorf("read twice within a moment: %v", err)
		}
		settle(leastSnapshot)
		if c, _ := n.d.known.Snapshot(t.Context(), 0, time.Time{}); c == a || !c.At.After(a.At) {
			t.Error("an old snapshot is given again")
		}
	})
}

// certificate writes a certificate for 127.0.0.1, and its key, and returns what trusts it.
func certificate(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, data := range map[string][]byte{certFile: certPEM, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return pool
}

// Over a network only TLS 1.2 and later, with a token of the file as it is now.
func TestTheNetworkTakesTLSAndATokenOfNow(t *testing.T) {
	dir := t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(free.Addr().String())
	free.Close()
	cfg := config.HTTP{Listen: at, CertificateFile: filepath.Join(dir, "c"), KeyFile: filepath.Join(dir, "k"), TokenFile: filepath.Join(dir, "t")}
	tokens := func(token string) {
		sum := sha256.Sum256([]byte(token))
		if err := os.WriteFile(cfg.TokenFile, []byte("me viewer "+hex.EncodeToString(sum[:])+strings.Repeat("\n", len(token))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tokens("first")
	pool := certificate(t, cfg.CertificateFile, cfg.KeyFile)
	d := &Daemon{env: Env{Now: time.Now}, log: api.NewEventLog(10, time.Now())}
	d.cfg.Store(&config.Config{Management: config.Management{HTTP: cfg}})
	d.known = newKnown(d)
	d.web = d.newWeb(cfg)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.web.Run(ctx) }()
	defer func() { stop(); <-ended }()
	get := func(c *tls.Config, token string) (int, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
		req, _ := http.NewRequest("GET", "https://"+at.String()+"/v1/nothing", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		resp.Body.Close()
		return resp.StatusCode, nil
	}
	for i := 0; ; i++ { // it listens soon
		code, err := get(&tls.Config{RootCAs: pool}, "first")
		if code == 404 {
			break
		}
		if i > 3000 {
			t.Fatal(code, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if code, err := get(&tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11}, "first"); err == nil {
		t.Errorf("TLS 1.1 is taken: %d", code)
	}
	if code, err := get(&tls.Config{RootCAs: pool}, "guess"); code != 401 {
		t.Error(code, err)
	}
	tokens("another")
	if code, err := get(&tls.Config{RootCAs: pool}, "first"); code != 401 {
		t.Errorf("the old token: %d %v", code, err)
	}
	if code, err := get(&tls.Config{RootCAs: pool}, "another"); code != 404 {
		t.Errorf("the new token: %d %v", code, err)
	}
	next := certificate(t, cfg.CertificateFile, cfg.KeyFile)
	if code, err := get(&tls.Config{RootCAs: next}, "another"); code != 404 {
		t.Errorf("the new certificate: %d %v", code, err)
	}
	if err := os.WriteFile(cfg.TokenFile, []byte("broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, err := get(&tls.Config{RootCAs: next}, "another"); code != 404 {
		t.Errorf("a file that cannot be read ends what stood: %d %v", code, err)
	}
	if n := len(d.log.Events(0).Events); n != 2 {
		t.Errorf("%d events, want one of each refusal", n)
	}
}
