package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// Silence, bytes that are no HTTP and headers without end are counted, and requests are not.
func TestConnectionsThatAskNothingAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := &Door{Gate: &Gate{}}, bufconn.Listen(1<<20)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- Serve(ctx, d.Watch(l, 0), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }))
		}()
		defer func() { stop(); <-ended }()
		headers := "GET / HTTP/1.1\r\nHost: x\r\nX: "
		for i := range 40 << 10 {
			headers += string(rune('a' + i%26))
		}
		for n, c := range []struct {
			name, sends string
			counted     uint64
		}{
			{"a request", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0},
			{"silence", "", 1},
			{"no HTTP", "\x16\x03\x01 what is this\r\n\r\n", 1},
			{"half a request", "GET / HTTP/1.1\r\nHost:", 1},
			{"large headers", headers, 1},
		} {
			before := d.Counters().Handshakes
			conn, err := l.Dial()
			if err != nil {
				t.Fatal(err)
			}
			go io.WriteString(conn, c.sends)
			_, _ = io.Copy(io.Discard, conn) // until the server hangs up
			conn.Close()
			synctest.Wait()
			if got := d.Counters().Handshakes - before; got != c.counted {
				t.Errorf("%d, %s: %d counted, want %d", n, c.name, got, c.counted)
			}
		}
	})
}

// A connection by which nobody has been let in is closed after its time, and one by which somebody
// has is not.
func TestWhoIsNotLetInDoesNotStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, inner := &Door{Gate: &Gate{}}, bufconn.Listen(1<<10)
		l := d.Watch(inner, 10*time.Second)
		defer l.Close()
		pair := func() (theirs, ours net.Conn) {
			dialled := make(chan net.Conn, 1)
			go func() {
				c, err := inner.Dial()
				if err != nil {
					t.Error(err)
				}
				dialled <- c
			}()
			ours, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return <-dialled, ours
		}
		silent, _ := pair()
		asking, asked := pair()
		known, in := pair()
		Asked(asked.RemoteAddr())
		Asked(in.RemoteAddr())
		LetIn(in.RemoteAddr())
		began := time.Now()
		for _, c := range []net.Conn{silent, asking} {
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || time.Since(began) != 10*time.Second {
				t.Errorf("%d bytes, %v after %s", n, err, time.Since(began))
			}
		}
		time.Sleep(time.Hour)
		go in.Write([]byte{1})
		if n, err := known.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("who was let in is hung up on: %v", err)
		}
		in.Close()
		if n := d.Counters().Handshakes; n != 1 {
			t.Errorf("%d came to nothing, want the silent one", n)
		}
		for _, c := range []net.Conn{silent, asking, known} {
			c.Close()
		}
	})
}
