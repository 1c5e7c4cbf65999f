package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/telemetry"
)

// gNMI takes the certificate and the tokens of the other listeners, as they are now.
func TestGNMITakesTLSAndATokenOfNow(t *testing.T) {
	dir := t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(free.Addr().String())
	free.Close()
	m := config.Management{GNMI: at, HTTP: config.HTTP{CertificateFile: filepath.Join(dir, "c"), KeyFile: filepath.Join(dir, "k"), TokenFile: filepath.Join(dir, "t")}}
	write := func(token string) {
		sum := sha256.Sum256([]byte(token))
		if err := os.WriteFile(m.HTTP.TokenFile, []byte("me-"+token+" viewer "+hex.EncodeToString(sum[:])+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	pool := certificate(t, m.HTTP.CertificateFile, m.HTTP.KeyFile)
	d := &Daemon{env: Env{Now: time.Now}, log: api.NewEventLog(10, time.Now())}
	d.cfg.Store(&config.Config{Management: m})
	d.known = newKnown(d)
	d.gnmi = d.newGNMI()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.gnmi.Run(ctx) }()
	defer func() { stop(); <-ended }()
	conn, err := grpc.NewClient(at.String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask := func(token string) codes.Code {
		ctx, done := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), time.Minute)
		defer done()
		_, err := pb.NewGNMIClient(conn).Capabilities(ctx, &pb.CapabilityRequest{}, grpc.WaitForReady(true))
		return status.Code(err)
	}
	if c := ask("first"); c != codes.OK {
		t.Error(c)
	}
	write("another")
	if c := ask("first"); c != codes.Unauthenticated {
		t.Errorf("the old token: %v", c)
	}
	if c := ask("another"); c != codes.OK {
		t.Errorf("the new token: %v", c)
	}
	if n := len(d.log.Events(0).Events); n != 1 {
		t.Errorf("%d events, want one of the refusal", n)
	}
}

// Large tables are read for who asks for them, and again only when something has happened.
func TestLargeTablesAreReadWhenSomethingHasHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["tor3"]
		read := func(need telemetry.Need) *telemetry.Snapshot {
			t.Helper()
			settle(leastSnapshot)
			s, err := n.d.Snapshot(t.Context(), need, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		all := telemetry.NeedHosts | telemetry.NeedZones | telemetry.NeedNeighbours
		if s := read(0); s.Hosts.Rows != nil || s.Zones.Rows != nil || s.Neighbours.Rows != nil {
			t.Error("they are read for nobody")
		}
		first := read(all)
		if len(first.Hosts.Rows) == 0 || len(first.Neighbours.Rows) == 0 || len(telemetry.Read(first)) <= len(telemetry.Read(read(0))) {
			t.Errorf("%d hosts, %d neighbours", len(first.Hosts.Rows), len(first.Neighbours.Rows))
		}
		if s := read(all); !s.Hosts.At.Equal(first.Hosts.At) || !s.At.After(first.At) {
			t.Errorf("nothing has happened: %v, then %v", first.Hosts.At, s.Hosts.At)
		}
		n.fake.SetCarrier("eth2", false)
		settle(time.Second)
		if s := read(all); !s.Hosts.At.After(first.Hosts.At) {
			t.Error("something has happened")
		}
	})
}
