package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netconf"
)

// netconfDoor speaks NETCONF with who comes over a network.
type netconfDoor struct {
	d   *Daemon
	at  netip.AddrPort
	srv *netconf.Server
}

// newNetconf makes the NETCONF server of the configuration.
func (d *Daemon) newNetconf() (*netconfDoor, error) {
	cfg := d.cfg.Load()
	m := cfg.Management
	key, err := netconf.HostKey(cfg.State)
	if err != nil {
		return nil, fmt.Errorf("management.netconf: %w", err)
	}
	gate := &api.Gate{}
	if file := m.HTTP.TokenFile; file != "" {
		gate.Tokens = (&fresh[[]api.Token]{path: file, read: func() ([]api.Token, error) { return parsed(file, api.ParseTokens) }}).get
	}
	if file := m.UserFile; file != "" {
		gate.Users = (&fresh[[]api.User]{path: file, read: func() ([]api.User, error) { return parsed(file, api.ParseUsers) }}).get
	}
	return &netconfDoor{d, m.Netconf, netconf.New(d, netconf.Config{HostKey: key, Gate: gate, Refused: func(from netip.Addr, why string) {
		d.log.Append(api.Event{Time: d.env.Now(), Kind: "refused", Text: fmt.Sprintf("management.netconf: %s: %s", from, why), Addr: from.String()})
	}})}, nil
}

func parsed[T any](file string, parse func([]byte) (T, error)) (v T, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return v, err
	}
	return parse(data)
}

func (n *netconfDoor) String() string { return "NETCONF" }

// Run listens until ctx ends; a listener that fails is made again.
func (n *netconfDoor) Run(ctx context.Context) error {
	for said := ""; ; {
		l, err := n.d.listenFor("management.netconf")(ctx, n.at)
		if err == nil {
			err = n.srv.Serve(ctx, l)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if text := err.Error(); text != said { // once, not each time
			said = text
			n.d.log.Append(api.Event{Time: n.d.env.Now(), Kind: "error", Text: text, Fields: map[string]string{"room": "management"}})
		}
		select {
		case <-time.After(listenRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
