package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/netutil"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
)

// This file has what all that the management listens with on a network shares.

// again has serve run until ctx ends: a listener that fails is made again. The setting names it.
func (d *Daemon) again(ctx context.Context, setting string, serve func(context.Context) error) error {
	for said := ""; ; {
		err := serve(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if text := fmt.Sprintf("%s: %v", setting, err); text != said { // once, not each time
			said = text
			d.log.Append(api.Event{Time: d.env.Now(), Kind: "error", Text: text, Fields: map[string]string{"room": "management"}})
		}
		select {
		case <-time.After(listenRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// visitors listens on an address for a bounded number of connections.
func visitors(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", at.String())
	if err != nil {
		return nil, err
	}
	return netutil.LimitListener(l, maxVisitors), nil
}

// shown is the certificate that is shown; nil: there is none, on loopback.
func shown(cfg config.HTTP) (*fresh[*tls.Certificate], error) {
	if cfg.CertificateFile == "" {
		return nil, nil
	}
	cert := &fresh[*tls.Certificate]{path: cfg.CertificateFile, read: func() (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(cfg.CertificateFile, cfg.KeyFile)
		return &c, err
	}}
	_, err := cert.get()
	return cert, err
}

// tlsWith speaks TLS with a certificate, for the protocols.
func tlsWith(cert *fresh[*tls.Certificate], protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert.get() }}
}

// tokens are those that are taken now.
func tokens(cfg config.HTTP) func() ([]api.Token, error) {
	f := &fresh[[]api.Token]{path: cfg.TokenFile, read: func() ([]api.Token, error) {
		data, err := os.ReadFile(cfg.TokenFile)
		if err != nil {
			return nil, err
		}
		return api.ParseTokens(data)
	}}
	return f.get
}

// refusedBy makes known who was not let in by what a setting names.
func (d *Daemon) refusedBy(setting string) func(from netip.Addr, why string) {
	return func(from netip.Addr, why string) {
		d.log.Append(api.Event{Time: d.env.Now(), Kind: "refused", Text: fmt.Sprintf("%s: %s: %s", setting, from, why), Addr: from.String()})
	}
}
