package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/dashboard"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/model/remote"
)

// dashboardFlags are what the command takes.
type dashboardFlags struct {
	targets, fabrics, records []string
	listen, tokenFile, caFile string
	open                      bool
}

func (a *app) dashboardCmd() *cobra.Command {
	var f dashboardFlags
	c := &cobra.Command{Use: "dashboard", Short: "A page in the browser: topology, zones, events, notices, queues", Args: arguments(0, 0),
		Long: `Serves a page on this machine's loopback for one browser: the address that is printed works once.
It shows the device of --socket, or those of --targets: management sockets (of a switch elsewhere:
ssh -N -L /tmp/tor1.sock:/run/inof/inofd.sock tor1) and, where management.http is on, https
addresses with a token. Nothing is installed or listens on a switch, and the page changes nothing.
See docs/dashboard.md.`,
		Example: "  inofctl dashboard --open\n  inofctl dashboard --targets /tmp/tor1.sock,https://192.0.2.253:19518 --token-file token",
		RunE: func(cmd *cobra.Command, _ []string) error {
			targets, err := a.dashboardTargets(&f)
			if err != nil {
				return err
			}
			return a.serveDashboard(cmd.Context(), &f, targets)
		}}
	fl := c.Flags()
	fl.StringSliceVar(&f.targets, "targets", nil, "devices to show: paths of management sockets, https://HOST:PORT (default that of --socket)")
	fl.StringSliceVar(&f.fabrics, "fabric", nil, "sockets of `fabric serve` to show")
	fl.StringSliceVar(&f.records, "record", nil, "files of `fabric run --record` to replay")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:0", "address of the loopback to listen on; port 0: any")
	fl.StringVar(&f.tokenFile, "token-file", "", "file with the token for https targets")
	fl.StringVar(&f.caFile, "ca-file", "", "certificates that those of https targets are checked by, instead of the system's")
	fl.BoolVar(&f.open, "open", false, "open the browser (xdg-open)")
	return c
}

// dashboardTargets gives what is to be shown.
func (a *app) dashboardTargets(f *dashboardFlags) (list []dashboard.Target, err error) {
	token, roots := "", (*x509.CertPool)(nil)
	if f.tokenFile != "" {
		data, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(data))
	}
	if f.caFile != "" {
		data, err := os.ReadFile(f.caFile)
		if err != nil {
			return nil, err
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s: there is no certificate in it", f.caFile)
		}
	}
	if len(f.targets)+len(f.fabrics)+len(f.records) == 0 {
		f.targets = []string{a.socket}
	}
	for _, t := range f.targets {
		socket, at, err := dashboard.ParseTarget(t)
		if err != nil {
			return nil, usageError{err}
		}
		if at != nil && token == "" {
			return nil, usagef("target %s takes a token: --token-file", t)
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
		list = append(list, dashboard.Target{Name: t, Kind: dashboard.Daemon, Handler: dashboard.NewUpstream(socket, at, token, transport)})
	}
	for _, socket := range f.fabrics {
		list = append(list, dashboard.Target{Name: socket, Kind: dashboard.Fabric, Handler: servedFabric(socket)})
	}
	for _, file := range f.records {
		if st, err := os.Stat(file); err != nil {
			return nil, err
		} else if !st.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no file", file)
		}
		list = append(list, dashboard.Target{Name: filepath.Base(file), Kind: dashboard.Record, Handler: recordedRun(file)})
	}
	return list, nil
}

// servedFabric answers /v1/fabric with the status of a model that runs.
func servedFabric(socket string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/fabric", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		reply, err := remote.Do(ctx, socket, remote.Request{Status: true})
		if err == nil && reply.Error != "" {
			err = errors.New(reply.Error)
		}
		if err != nil {
			dashboard.Refuse(w, http.StatusBadGateway, "the fabric cannot be reached: "+err.Error(), "unreachable")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(reply.Status) // an error is the reader's
	})
	return mux
}

// recordedRun answers /v1/record with a file.
func recordedRun(file string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/record", func(w http.ResponseWriter, _ *http.Request) {
		data, err := os.ReadFile(file)
		if err == nil && !json.Valid(data) {
			err = fmt.Errorf("%s is no recording: inofctl fabric run --record makes one", file)
		}
		if err != nil {
			dashboard.Refuse(w, http.StatusBadGateway, err.Error(), "unreachable")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data)
	})
	return mux
}

// serveDashboard serves the page until ctx ends.
func (a *app) serveDashboard(ctx context.Context, f *dashboardFlags, targets []dashboard.Target) error {
	at, err := netip.ParseAddrPort(f.listen)
	if err != nil || !at.Addr().IsLoopback() {
		return usagef("--listen %s: want an address of the loopback with a port, as 127.0.0.1:8080", f.listen)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", at.String())
	if err != nil {
		return err
	}
	if at, err = netip.ParseAddrPort(l.Addr().String()); err != nil {
		return err
	}
	p, err := dashboard.NewProxy(at, targets, api.Changes)
	if err != nil {
		return err
	}
	if a.format == "json" {
		err = json.NewEncoder(a.out).Encode(map[string]string{"url": p.Enter()})
	} else {
		_, err = fmt.Fprintf(a.out, "%s\nopens the dashboard, once, in one browser on this machine; Ctrl-C ends it\n", p.Enter())
	}
	if err != nil {
		return err
	}
	if f.open {
		go a.browse(ctx, p.Enter())
	}
	return api.Serve(ctx, l, p.Handler())
}

// browse opens a browser.
func (a *app) browse(ctx context.Context, url string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := exec.CommandContext(ctx, "xdg-open", url).Run(); err != nil && ctx.Err() == nil {
		fmt.Fprintf(a.err, "inofctl: no browser could be opened (xdg-open: %v): open the address yourself\n", err)
	}
}
