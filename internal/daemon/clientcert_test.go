package daemon

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
)

// authority signs certificates of clients.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{tmpl, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// sign gives a client a certificate until a time.
func (a *authority) sign(t *testing.T, name string, until time.Time, usage x509.ExtKeyUsage) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{usage}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// By gNMI and by HTTP a client certificate stands for a token: whose it is says the CA, what they
// may do the line of the user, both as they are now.
func TestAClientCertificateLetsInWithTheRoleOfItsUser(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := newAuthority(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(free.Addr().String())
	free.Close()
	m := config.Management{GNMI: at, UserFile: file("users", "anna operator certificate\nsee viewer certificate\n"), HTTP: config.HTTP{
		CertificateFile: filepath.Join(dir, "c"), KeyFile: filepath.Join(dir, "k"), ClientCAFile: file("ca", string(ca.pem))}}
	pool := certificate(t, m.HTTP.CertificateFile, m.HTTP.KeyFile)
	d := &Daemon{env: Env{Now: time.Now}, log: api.NewEventLog(100, time.Now())}
	d.openAudit(dir)
	d.cfg.Store(&config.Config{Management: m, State: dir})
	d.known = newKnown(d)
	d.gnmi, d.web = d.newGNMI(), d.newWeb(m.HTTP)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.gnmi.Run(ctx) }()
	defer func() { stop(); <-ended }()

	site := httptest.NewUnstartedServer(d.web.handler(func(string) bool { return false }))
	cert, err := shown(m.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	site.Listener = tls.NewListener(site.Listener, tlsWith(cert, m.HTTP, "http/1.1"))
	site.Start()
	defer site.Close()

	// as asks by both, with a certificate.
	as := func(c tls.Certificate) (gnmi codes.Code, set codes.Code, http_ int) {
		conf := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		if c.Certificate != nil {
			conf.Certificates = []tls.Certificate{c}
		}
		conn, err := grpc.NewClient(at.String(), grpc.WithTransportCredentials(credentials.NewTLS(conf)))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		_, readErr := pb.NewGNMIClient(conn).Capabilities(ctx, &pb.CapabilityRequest{}, grpc.WaitForReady(true))
		// A request that asks for nothing, so that a role that is enough ends in another error.
		_, setErr := pb.NewGNMIClient(conn).Set(ctx, &pb.SetRequest{UnionReplace: []*pb.Update{{}}}, grpc.WaitForReady(true))
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}}
		resp, err := client.Get("https://" + site.Listener.Addr().String() + "/v1/nothing")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return status.Code(readErr), status.Code(setErr), resp.StatusCode
	}
	hour := time.Now().Add(time.Hour)
	anna := ca.sign(t, "anna", hour, x509.ExtKeyUsageClientAuth)
	for _, c := range []struct {
		what      string
		cert      tls.Certificate
		read, set codes.Code
		http      int
	}{
		{"an operator's", anna, codes.OK, codes.Unimplemented, 404},
		{"a viewer's", ca.sign(t, "see", hour, x509.ExtKeyUsageClientAuth), codes.OK, codes.PermissionDenied, 404},
		{"one of nobody here", ca.sign(t, "bob", hour, x509.ExtKeyUsageClientAuth), codes.Unauthenticated, codes.Unauthenticated, 401},
	} {
		if read, set, code := as(c.cert); read != c.read || set != c.set || code != c.http {
			t.Errorf("%s: %v %v %d, want %v %v %d", c.what, read, set, code, c.read, c.set, c.http)
		}
	}
	// Their line is taken out: from then on the certificate is nobody's.
	file("users", "see viewer certificate\n")
	if read, _, _ := as(anna); read != codes.Unauthenticated {
		t.Errorf("a certificate whose user is gone: %v", read)
	}
	records, err := d.audit.Newest(10)
	if err != nil || len(records) != 2 || records[0].By != "anna (certificate, from 127.0.0.1)" || records[1].By != "see (certificate, from 127.0.0.1)" || records[1].From != "management.gnmi" || records[1].What != "/gnmi.gNMI/Set" || records[1].Result != "refused" {
		t.Errorf("what was refused is not kept: %+v, %v", records, err)
	}
	if n := d.gnmi.server.Counters(); n.NotAllowed != 1 || n.NoLogin != 4 || n.LetIn != 3 {
		t.Errorf("%+v", n)
	}
}
