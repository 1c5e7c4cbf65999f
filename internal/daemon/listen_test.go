package daemon

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/testbed/wires"
)

// starting runs a reflector whose listener is opened by listen; told is when it was ready.
func starting(t *testing.T, listen func(context.Context, netip.AddrPort) (net.Listener, error)) (told <-chan struct{}, stop func() error) {
	t.Helper()
	cfg, err := config.Parse("r", []byte("device: {id: 10.0.0.100, name: r, roles: [reflector]}\nstate-directory: "+t.TempDir()+"\nsession: {auth: none}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	d, err := New(cfg, Env{Listen: listen, Ready: func() { close(ready) }, Manage: func(config.Management) (net.Listener, error) {
		return new(wires.Net).Listen(t.Context(), netip.AddrPort{})
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return ready, func() error { cancel(); return <-ended }
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestADaemonIsReadyOnceItListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, n := make(chan struct{}), new(wires.Net)
		told, stop := starting(t, func(ctx context.Context, addr netip.AddrPort) (net.Listener, error) {
			<-open
			return n.Listen(ctx, addr)
		})
		settle(time.Minute)
		if isClosed(told) {
			t.Error("it is ready before it listens")
		}
		close(open)
		settle(time.Second)
		if !isClosed(told) {
			t.Error("it listens and is not ready")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAListenerThatCannotBeOpenedEndsTheDaemonWithASentence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, stop := starting(t, func(context.Context, netip.AddrPort) (net.Listener, error) { return nil, syscall.EADDRINUSE })
		settle(time.Second)
		err := stop()
		if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "reflector.listen 10.0.0.100:19516 cannot be opened: ") {
			t.Errorf("it ends with: %v", err)
		}
		if isClosed(told) {
			t.Error("it was ready")
		}
	})
}
