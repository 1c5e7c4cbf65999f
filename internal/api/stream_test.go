package api_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
)

// pipes is a listener of in-memory connections, so that time can be a fake one.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func TestAReaderThatTakesNothingIsCutOff(t *testing.T) {
	for path, patience := range map[string]time.Duration{"/v1/events?follow=1": 10 * time.Second, "/v1/hosts": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			src := apitest.Sample()
			l := &pipes{make(chan net.Conn), make(chan struct{})}
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error)
			go func() { served <- api.Serve(ctx, l, api.Handler(src)) }()
			here, there := net.Pipe()
			l.conns <- there
			if _, err := io.WriteString(here, "GET "+path+" HTTP/1.1\r\nHost: inofd\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			// Take the beginning of the answer, then nothing more.
			r := bufio.NewReaderSize(here, 16)
			if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "200 OK") {
				t.Fatal(line, err)
			}
			synctest.Wait()
			start := time.Now()
			src.Append(api.Event{Kind: "x", Text: strings.Repeat("x", 100_000)})
			for range 3 {
				time.Sleep(patience / 2) // fake time
				synctest.Wait()
			}
			if _, err := io.ReadAll(r); err != nil {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
			cancel()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStreamsEndWhenTheDaemonStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- api.Serve(ctx, l, api.Handler(apitest.Sample())) }()
		here, there := net.Pipe()
		l.conns <- there
		go io.WriteString(here, "GET /v1/events?follow=1 HTTP/1.1\r\nHost: inofd\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(here), nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		cancel()
		if b, err := io.ReadAll(resp.Body); err != nil || len(b) > 0 {
			t.Errorf("%q, %v", b, err)
		}
		here.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("stopping took %v", d)
		}
	})
}
