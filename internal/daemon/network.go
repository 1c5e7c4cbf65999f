package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

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
		text := fmt.Sprintf("%s: %v", setting, err)
		d.failing.note(setting, text, d.env.Now())
		if text != said { // once, not each time
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

// failing are listeners that cannot be opened, by their settings.
type failing struct {
	mu sync.Mutex
	m  map[string]failure
}

type failure struct {
	text string
	at   time.Time // the last time
}

func (f *failing) note(setting, text string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil {
		f.m = map[string]failure{}
	}
	f.m[setting] = failure{text, now}
}

// now lists those that have failed each time of late: one that is open does not fail.
func (f *failing) now(now time.Time) (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.m {
		if now.Sub(x.at) < 2*listenRetry {
			list = append(list, x.text)
		}
	}
	slices.Sort(list)
	return list
}

// visitors listens on an address. How many connections there may be is known by their door.
func (d *Daemon) visitors(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := d.descriptors.listen(func(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
		return lc.Listen(ctx, "tcp", at.String())
	})(ctx, at)
	if err != nil {
		return nil, err
	}
	return l, nil
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

// tlsWith speaks TLS with a certificate, for the protocols. That of a client is asked for where one
// counts; the gate checks it.
func tlsWith(cert *fresh[*tls.Certificate], cfg config.HTTP, protocols ...string) *tls.Config {
	out := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert.get() }}
	if cfg.ClientCAFile != "" {
		out.ClientAuth = tls.RequestClientCert
	}
	return out
}

// now is what a file says now; nil without a file.
func now[T any](file string, parse func([]byte) (T, error)) func() (T, error) {
	if file == "" {
		return nil
	}
	return (&fresh[T]{path: file, read: func() (v T, err error) {
		data, err := os.ReadFile(file)
		if err != nil {
			return v, err
		}
		return parse(data)
	}}).get
}

// authorities are the certificates of a file.
func authorities(data []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.New("there is no certificate in it")
	}
	return pool, nil
}

// door is that of the listener which a setting makes. All have one gate, so that log-ins that fail
// are counted together.
func (d *Daemon) door(setting string) *api.Door {
	if d.gate == nil {
		m := d.cfg.Load().Management
		d.gate = &api.Gate{Tokens: now(m.HTTP.TokenFile, api.ParseTokens), Users: now(m.UserFile, api.ParseUsers), Roots: now(m.HTTP.ClientCAFile, authorities)}
	}
	return &api.Door{
		Gate: d.gate,
		Refused: func(from netip.Addr, why string) {
			d.log.Append(api.Event{Time: d.env.Now(), Kind: "refused", Text: fmt.Sprintf("%s: %s: %s", setting, from, why), Addr: from.String()})
		},
		Denied: func(v api.Visitor, what string, err error) {
			d.Audit(context.Background(), api.Deed{By: v.String(), From: setting, What: what, Result: "refused", Error: err.Error()})
		},
	}
}
