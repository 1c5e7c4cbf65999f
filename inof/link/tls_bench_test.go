package link

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// tape is a connection that can be made to keep what is written, and to read what was
// kept.
type tape struct {
	net.Conn
	on   bool
	kept bytes.Buffer
}

func (t *tape) Write(b []byte) (int, error) {
	if t.on {
		return t.kept.Write(b)
	}
	return t.Conn.Write(b)
}

func (t *tape) Read(b []byte) (int, error) {
	if t.on {
		return t.kept.Read(b)
	}
	return t.Conn.Read(b)
}

// A message of a fault through TLS: what BenchmarkMAC is for mode hmac-sha256.
func BenchmarkTLS(b *testing.B) {
	ca := newCA(b, "CA")
	x, y := net.Pipe()
	cx, cy := &tape{Conn: x}, &tape{Conn: y}
	d := newTLSClient(cx, NewCredentialStore(ca.issue(inoftest.DevID(0), nil), nil), netip.Addr{})
	l := newTLSServer(cy, NewCredentialStore(ca.issue(inoftest.ReflID, nil), nil), listenerTLS(), nil)
	done := make(chan error, 1)
	go func() { done <- l.shake() }()
	if err := d.shake(); err != nil {
		b.Fatal(err)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	e, err := wire.Encode(benchUpdate())
	if err != nil {
		b.Fatal(err)
	}
	frame := (&sealer{}).seal(nil, e)
	cx.on, cy.on = true, true
	const batch = 256
	b.Run("Seal", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if _, err := d.Write(frame); err != nil {
				b.Fatal(err)
			}
			if n%batch == 0 { // what was written is read below, in the same order
				b.StopTimer()
				cx.pass(b, cy, l, len(frame))
				b.StartTimer()
			}
		}
		cx.pass(b, cy, l, len(frame))
	})
	b.Run("Open", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, len(frame))
		for n := 0; b.Loop(); n++ {
			if n%batch == 0 {
				b.StopTimer()
				for range batch {
					if _, err := d.Write(frame); err != nil {
						b.Fatal(err)
					}
				}
				_, _ = cx.kept.WriteTo(&cy.kept)
				b.StartTimer()
			}
			if _, err := io.ReadFull(l, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// pass lets the other side read all that was written.
func (t *tape) pass(b *testing.B, to *tape, l io.Reader, size int) {
	_, _ = t.kept.WriteTo(&to.kept)
	buf := make([]byte, size)
	for to.kept.Len() > 0 {
		if _, err := io.ReadFull(l, buf); err != nil {
			b.Fatal(err)
		}
	}
}
