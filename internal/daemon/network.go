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
func tokens(file string) func() ([]api.Token, error) {
	return (&fresh[[]api.Token]{path: file, read: func() ([]api.Token, error) { return parsed(file, api.ParseTokens) }}).get
}

func parsed[T any](file string, parse func([]byte) (T, error)) (v T, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return v, err
	}
	return parse(data)
}

// gateway is the gate of all who log in otherwise than by HTTP: log-ins that fail are counted
// together.
func (d *Daemon) gateway() *api.Gate {
	if d.gate == nil {
		m := d.cfg.Load().Management
		d.gate = &api.Gate{}
		if m.HTTP.TokenFile != "" {
			d.gate.Tokens = tokens(m.HTTP.TokenFile)
		}
		if file := m.UserFile; file != "" {
			d.gate.Users = (&fresh[[]api.User]{path: file, read: func() ([]api.User, error) { return parsed(file, api.ParseUsers) }}).get
		}
	}
	return d.gate
}

// refusedBy makes known who was not let in by what a setting names.
func (d *Daemon) refusedBy(setting string) func(from netip.Addr, why string) {
	return func(from netip.Addr, why string) {
		d.log.Append(api.Event{Time: d.env.Now(), Kind: "refused", Text: fmt.Sprintf("%s: %s: %s", setting, from, why), Addr: from.String()})
	}
}
