package load

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/testbed/pki"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// ownReflector is a reflector that the benchmark has started.
type ownReflector struct {
	Target
	proc Process
	dir  string
	bare string // address of the bare loop

	child
	began time.Duration // from the start of the process until it was ready
}

var (
	ownID       = netip.MustParseAddr("192.0.2.250")
	loopback    = netip.MustParseAddr("127.0.0.1")
	ownPassword = "no secret: a reflector of a benchmark"
)

// startReflector starts a reflector with some zones, and more settings of its section.
func startReflector(ctx context.Context, proc Process, auth string, set zone.Set, settings ...string) (_ *ownReflector, err error) {
	mode, err := wire.ParseAuthMode(auth)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "inofctl-bench-")
	if err != nil {
		return nil, err
	}
	o := &ownReflector{proc: proc, dir: dir}
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	o.Target = Target{Addr: netip.AddrPortFrom(loopback, port), Auth: mode}
	session := "auth: " + mode.String()
	switch mode {
	case wire.AuthHMAC:
		if o.Password, err = link.NewPassword([]byte(ownPassword)); err != nil {
			return nil, err
		}
		session += ", password-file: " + filepath.Join(dir, "password")
		if err := os.WriteFile(filepath.Join(dir, "password"), []byte(ownPassword), 0o600); err != nil {
			return nil, err
		}
	case wire.AuthTLS:
		p, err := pki.New()
		if err != nil {
			return nil, err
		}
		if err := p.Write(dir, ownID, loopback); err != nil {
			return nil, err
		}
		o.Credentials = p.Credentials
		session += fmt.Sprintf(", certificate-file: %[1]s/cert.pem, key-file: %[1]s/key.pem, ca-file: %[1]s/ca.pem", dir)
	}
	more := ""
	for _, s := range settings {
		more += ", " + s
	}
	doc := fmt.Sprintf(`device: {id: %s, name: bench, roles: [reflector], allow-loopback: true}
reflector: {listen: [%s], monitors: [0.0.0.0/0, "::/0"], max-clients-per-address: 4096%[5]s}
session: {%[3]s}
state-directory: %[4]s/state
zones: {file: %[4]s/zones.yaml}
management: {socket: %[4]s/inofd.sock}
`, ownID, o.Addr, session, dir, more)
	if err := os.WriteFile(filepath.Join(dir, "inofd.yaml"), []byte(doc), 0o600); err != nil {
		return nil, err
	}
	if err := config.SavePlan(filepath.Join(dir, "zones.yaml"), change.PlanOf(set)); err != nil {
		return nil, err
	}
	return o, o.start(ctx)
}

// freePort finds a port that a reflector may listen on.
func freePort() (uint16, error) {
	for range 1000 {
		l, err := net.Listen("tcp", netip.AddrPortFrom(loopback, 0).String())
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if port >= config.MinPort && port <= config.MaxPort {
			return uint16(port), nil
		}
	}
	return 0, fmt.Errorf("no free port in %d..%d", config.MinPort, config.MaxPort)
}

// start starts the process and waits until it listens.
func (o *ownReflector) start(ctx context.Context) error {
	began := time.Now()
	if err := o.child.start(o.proc, "reflector", o.dir); err != nil {
		return err
	}
	r, err := o.read(ctx)
	if err != nil {
		o.kill()
		return err
	}
	o.bare, o.began = r.Bare, time.Since(began)
	return nil
}

func (o *ownReflector) stats(ctx context.Context, gc bool) (stats, error) {
	r, err := o.ask(ctx, request{Op: "stats", GC: gc})
	if err != nil {
		return stats{}, err
	}
	return *r.Stats, nil
}

// profile takes a profile of where the process spends its processor time, until stop is called:
// name.pprof in a directory. Without a directory, or a process of ours, it does nothing.
func (o *ownReflector) profile(ctx context.Context, dir, name string) (stop func() error, err error) {
	if o == nil || dir == "" {
		return func() error { return nil }, nil
	}
	file, err := filepath.Abs(filepath.Join(dir, name+".pprof"))
	if err == nil {
		_, err = o.ask(ctx, request{Op: "profile", File: file})
	}
	return func() error { _, err := o.ask(ctx, request{Op: "profile"}); return err }, err
}

// trace takes one of what the process does, until stop is called: name.trace in a directory, for go
// tool trace; nowhere without one.
func (o *ownReflector) trace(ctx context.Context, dir, name string) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	file, err := filepath.Abs(filepath.Join(dir, name+".trace"))
	if err == nil {
		_, err = o.ask(ctx, request{Op: "trace", File: file})
	}
	return func() error { _, err := o.ask(ctx, request{Op: "trace"}); return err }, err
}

// heap writes what is in use in the process's heap, by who allocated it, as name.pprof in a
// directory; nowhere without one.
func (o *ownReflector) heap(ctx context.Context, dir, name string) error {
	if dir == "" {
		return nil
	}
	file, err := filepath.Abs(filepath.Join(dir, name+".pprof"))
	if err == nil {
		_, err = o.ask(ctx, request{Op: "heap", File: file})
	}
	return err
}

// resetPeak lets the peak of memory begin anew.
func (o *ownReflector) resetPeak(ctx context.Context) (stats, error) {
	r, err := o.ask(ctx, request{Op: "stats", GC: true, Reset: true})
	if err != nil {
		return stats{}, err
	}
	return *r.Stats, nil
}

// close removes everything.
func (o *ownReflector) close() {
	o.kill()
	_ = os.RemoveAll(o.dir)
}
