package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/internal/syslog"
)

// maxSyslogServers bounds the connections.
const maxSyslogServers = 8

// Syslog says where the events of the device are sent (RFC 5424).
type Syslog struct {
	Servers    []syslog.Server
	Facility   int // 0..23
	Enterprise int // private enterprise number
	// Of servers with tls; empty: the CAs of the system, no certificate of one's own.
	CAFile, CertificateFile, KeyFile string
}

func (c *Config) syslogItem() item {
	l := &c.Log.Syslog
	servers := words("servers", syslog.Allowed,
		"Where each event is sent, as RFC 5424 says, with what it is about as structured data; of UDP nobody tells whether it arrives. Nothing waits for a "+
			"server: what goes out of `management.events` before it could be sent is counted, and told as `events-lost`.",
		joined(&l.Servers), func(v string) string {
			one, wrong := syslog.ParseServer(v)
			if wrong == "" {
				l.Servers = append(l.Servers, one)
			}
			return wrong
		}).fixed()
	keys := append([]item{servers}, values(
		setting.Int("facility", &l.Facility, 23, 0, 23, "By this number servers sort what they get: 16 to 23 are local0 to local7.").Fixed(),
		setting.Int("enterprise", &l.Enterprise, 32473, 1, math.MaxInt32,
			"The private enterprise number (IANA) behind the name of the structured data, `inof@32473`. The default is the one for examples (RFC 5612): "+
				"write that of your own organization if it has one.").Fixed(),
		setting.Text("ca-file", &l.CAFile, "", allowedPath, "For `tls://`: the certificates (PEM) of the CAs that sign those of the servers.", checkPath).
			Fixed().Documented("those of the system", ""),
		setting.Text("certificate-file", &l.CertificateFile, "", allowedPath,
			"For `tls://`: the certificate (PEM) that is shown to servers that ask for one. The files are read again for each connection.", checkPath).Fixed(),
		setting.Text("key-file", &l.KeyFile, "", allowedPath, "The private key of that certificate (PEM).", checkPath).Fixed(),
	)...)
	return part("syslog", keys, func(s *section) {
		switch {
		case len(l.Servers) > maxSyslogServers:
			s.problem("servers", fmt.Sprintf("are %d, more than %d", len(l.Servers), maxSyslogServers), fmt.Sprintf("at most %d", maxSyslogServers))
		case (l.CertificateFile == "") != (l.KeyFile == ""):
			s.problem("key-file", "and certificate-file are needed together", allowedPath)
		}
	})
}

// Encrypted reports whether a server is reached over TLS.
func (l *Syslog) Encrypted() bool {
	for _, s := range l.Servers {
		if s.Network == "tls" {
			return true
		}
	}
	return false
}

// TLS reads the files.
func (l *Syslog) TLS() (*tls.Config, error) {
	out := &tls.Config{}
	if l.CAFile != "" {
		pem, err := os.ReadFile(l.CAFile)
		if err != nil {
			return nil, fmt.Errorf("log.syslog.ca-file: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("log.syslog.ca-file: " + l.CAFile + " holds no certificate that can be read; PEM is needed")
		}
	}
	if l.CertificateFile != "" {
		own, err := tls.LoadX509KeyPair(l.CertificateFile, l.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("log.syslog.certificate-file %s: %w", l.CertificateFile, err)
		}
		out.Certificates = []tls.Certificate{own}
	}
	return out, nil
}
