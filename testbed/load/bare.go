package load

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/testbed/pki"
)

// bare is the bound: a loop that writes what comes on one connection to many others,
// each in one write. Whoever connects says first what it is: 0, a receiver, or how many
// of the receivers get what it will send; with secured added the rest is in TLS,
// and the receivers are those in TLS.
type bare struct {
	l    net.Listener
	cert func() (tls.Certificate, error)
	mu   sync.Mutex
	to   map[bool][]net.Conn // by whether they are in TLS
}

// secured is the bit for TLS in what is said first.
const secured = 1 << 31

func newBare() (*bare, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &bare{l: l, to: map[bool][]net.Conn{}, cert: sync.OnceValues(bareCertificate)}
	go b.accept()
	return b, nil
}

func (b *bare) accept() {
	for {
		nc, err := b.l.Accept()
		if err != nil {
			return
		}
		go b.serve(nc)
	}
}

func (b *bare) serve(nc net.Conn) {
	var what [4]byte
	if _, err := io.ReadFull(nc, what[:]); err != nil {
		nc.Close()
		return
	}
	n := binary.BigEndian.Uint32(what[:])
	inTLS := n&secured != 0
	if n &^= secured; inTLS {
		cert, err := b.cert()
		if err != nil {
			nc.Close()
			return
		}
		nc = tls.Server(nc, bareTLS(cert))
	}
	if n == 0 {
		b.mu.Lock()
		b.to[inTLS] = append(b.to[inTLS], nc)
		b.mu.Unlock()
		_, _ = nc.Write([]byte{1}) // it counts
		return
	}
	defer closeBare(nc)
	b.mu.Lock()
	to := b.to[inTLS]
	to = to[:min(int(n), len(to))]
	b.mu.Unlock()
	_, _ = nc.Write([]byte{1})
	buf := make([]byte, 64<<10)
	for {
		got, err := nc.Read(buf)
		if err != nil {
			return
		}
		for _, c := range to {
			_, _ = c.Write(buf[:got])
		}
	}
}

// send gives so many bytes to one receiver as fast as it takes them: the bound of a
// full sync.
func (b *bare) send(bytes uint64) {
	b.mu.Lock()
	c := b.to[false][len(b.to[false])-1]
	b.mu.Unlock()
	buf := make([]byte, 64<<10)
	for bytes > 0 {
		n := min(bytes, uint64(len(buf)))
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
		bytes -= n
	}
}

func (b *bare) close() {
	b.l.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range b.to {
		for _, c := range list {
			closeBare(c)
		}
	}
	clear(b.to)
}

// bareCertificate is that of a bare loop; nobody checks it.
func bareCertificate() (tls.Certificate, error) {
	p, err := pki.New()
	if err != nil {
		return tls.Certificate{}, err
	}
	c, err := p.Credentials(loopback)
	if err != nil {
		return tls.Certificate{}, err
	}
	return c.Certificate, nil
}

// bareTLS is TLS as the sessions have it.
func bareTLS(certs ...tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{link.ALPN}, Certificates: certs,
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
		InsecureSkipVerify: true, // what TLS costs a message does not depend on who it is
	}
}

// closeBare closes the socket: the end of TLS would wait for a peer that does not read.
func closeBare(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	nc.Close()
}

// dialBare connects; n and inTLS are what serve reads first.
func dialBare(addr string, n int, inTLS bool) (net.Conn, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	what := uint32(n)
	if inTLS {
		what |= secured
	}
	if _, err = nc.Write(binary.BigEndian.AppendUint32(nil, what)); err == nil {
		if inTLS {
			nc = tls.Client(nc, bareTLS())
		}
		var ok [1]byte
		_, err = io.ReadFull(nc, ok[:])
	}
	if err != nil {
		closeBare(nc)
		return nil, err
	}
	return nc, nil
}
