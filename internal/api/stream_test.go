package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
	"github.com/openinof/inof/testbed/wires"
)

// dial serves on a network in memory, so that time can be a fake one, and connects.
func dial(t *testing.T, serve func(net.Listener)) net.Conn {
	var n wires.Net
	l, err := n.Listen(t.Context(), netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	go serve(l)
	c, err := n.Dial(t.Context(), netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAReaderThatTakesNothingIsCutOff(t *testing.T) {
	for path, patience := range map[string]time.Duration{"/v1/events?follow=1": 10 * time.Second, "/v1/hosts": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			src := apitest.Sample()
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error)
			here := dial(t, func(l net.Listener) { served <- api.Serve(ctx, l, api.Handler(src)) })
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
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		here := dial(t, func(l net.Listener) { served <- api.Serve(ctx, l, api.Handler(apitest.Sample())) })
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

// A browser follows events as Server-Sent Events, and says with the ID of the last one where it
// was when it comes back. A stream in which nothing happens says that it is alive.
func TestABrowserFollowsEventsAndGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := apitest.Sample()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		first := src.Append(api.Event{Kind: "host", Text: "one\nline <img src=x onerror=alert(1)>"})
		second := src.Append(api.Event{Kind: "host", Text: "two"})
		here := dial(t, func(l net.Listener) { served <- api.Serve(ctx, l, api.Handler(src)) })
		if _, err := fmt.Fprintf(here, "GET /v1/events?kind=host HTTP/1.1\r\nHost: inofd\r\nAccept: text/event-stream\r\nLast-Event-ID: %d\r\n\r\n", first.ID-1); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(here), nil)
		if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Fatal(resp, err)
		}
		lines := bufio.NewScanner(resp.Body)
		expect := func(want ...string) {
			t.Helper()
			for _, w := range want {
				if !lines.Scan() || !strings.HasPrefix(lines.Text(), w) {
					t.Fatalf("%q, want %q, %v", lines.Text(), w, lines.Err())
				}
			}
		}
		expect(": alive", "", fmt.Sprintf("id: %d", first.ID), `data: {"id":`, "", fmt.Sprintf("id: %d", second.ID), `data: {"id":`, "")
		start := time.Now()
		expect(": alive", "") // fake time
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("it says that it is alive after %v", d)
		}
		third := src.Append(api.Event{Kind: "host", Text: "three"})
		expect(fmt.Sprintf("id: %d", third.ID), `data: {"id":`, "")
		cancel()
		<-served
	})
}
