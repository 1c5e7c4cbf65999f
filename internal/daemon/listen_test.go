package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
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

// aReflector runs one whose configuration says more than it needs.
func aReflector(t *testing.T, more string, env Env) (d *Daemon, stop func() error) {
	t.Helper()
	text := "device: {id: 10.0.0.100, name: r, roles: [reflector]}\nstate-directory: " + t.TempDir() + "\nsession: {auth: none}\n" + more
	cfg, err := config.Parse("r", []byte(text), config.Environment())
	if err != nil {
		t.Fatal(err)
	}
	env.Manage = func(config.Management) (net.Listener, error) {
		return new(wires.Net).Listen(t.Context(), netip.AddrPort{})
	}
	d, err = New(cfg, env)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return d, func() error { cancel(); return <-ended }
}

// starting runs a reflector whose listener is opened by listen; told is when it was ready.
func starting(t *testing.T, listen func(context.Context, netip.AddrPort) (net.Listener, error)) (told <-chan struct{}, stop func() error) {
	t.Helper()
	ready := make(chan struct{})
	_, stop = aReflector(t, "", Env{Listen: listen, Ready: func() { close(ready) }})
	return ready, stop
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

func TestTheLogWarnsOfAVariableThatIsNoSetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Setenv("INOF_SESION_AUTH", "none")
		var log bytes.Buffer
		_, stop := aReflector(t, "", Env{Listen: new(wires.Net).Listen, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err := stop(); err != nil {
			t.Error(err)
		}
		const want = `level=WARN msg="environment INOF_SESION_AUTH: no setting has this variable, did you mean INOF_SESSION_AUTH?"`
		if !strings.Contains(log.String(), want) {
			t.Error(log.String())
		}
	})
}
