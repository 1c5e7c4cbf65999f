package bfdd

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openinof/inof/bfd"
)

// Options are what a BFD process is started with.
type Options struct {
	Socket string
	Local  netip.Addr    // device id: packets are received on it alone
	Grace  time.Duration // without an owner; 0: DefaultGrace
	// Wait is how long to wait for another process that has the socket to end; 0: as
	// long as it takes.
	Wait   time.Duration
	Format string // of the log: text or json
	Level  string
	Build  string
	Log    *slog.Logger
}

// ProcessName is what the process is called, in ps and top too.
const ProcessName = "inofd-bfd"

// Main is the BFD process. It ends with ctx, without an owner, or told by one.
func Main(ctx context.Context, o Options) error {
	waiting, done := ctx, func() {}
	if o.Wait > 0 {
		waiting, done = context.WithTimeout(ctx, o.Wait)
	}
	l, err := Listen(waiting, o.Socket)
	done()
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, ErrTaken):
		o.Log.Info("BFD process is not needed", "reason", err)
		return nil
	case err != nil:
		return err
	}
	if err := os.WriteFile("/proc/self/comm", []byte(ProcessName), 0); err != nil {
		o.Log.Warn("the BFD process keeps the name it was started with", "err", err)
	}
	o.Log.Info("BFD process is running", "socket", o.Socket, "device", o.Local, "build", o.Build)
	return NewServer(ServerConfig{
		Conn: func() (bfd.Conn, error) {
			return bfd.NewSockets(bfd.SocketConfig{Listen: []netip.Addr{o.Local}, MultihopOnly: true})
		},
		Holders:  holders(),
		Priority: bfd.PriorityThread, Grace: o.Grace, Device: o.Local.String(), Build: o.Build, Log: o.Log,
	}).Run(ctx, l)
}

// holdersFresh is how long a list of the sockets on the port is good: health asks each second.
const holdersFresh = 10 * time.Second

// holders lists who else is on the port, seldom. Several owners may ask at once.
func holders() func() ([]bfd.Holder, error) {
	var mu sync.Mutex
	var at time.Time
	var list []bfd.Holder
	return func() (_ []bfd.Holder, err error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); at.IsZero() || now.Sub(at) >= holdersFresh {
			at = now
			list, err = bfd.Holders(bfd.PortMultihop, list)
		}
		return list, err
	}
}

// args are the arguments of `inofd bfd` for these options.
func (o *Options) args() []string {
	return []string{"bfd", "--socket", o.Socket, "--device", o.Local.String(), "--grace", o.Grace.String(), "--wait", o.Wait.String(),
		"--log-format", o.Format, "--log-level", o.Level}
}

// Start starts a process of the running program, even where that was replaced on disk
// meanwhile. It has a session of its own (setsid), so that neither a terminal nor the
// end of this process ends it, and writes its log where this one does.
func Start(o Options) error {
	c := exec.Command("/proc/self/exe", o.args()...)
	c.Args[0] = ProcessName
	c.Stderr = os.Stderr
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for _, e := range os.Environ() { // what is between this process and its service manager
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID":
		default:
			c.Env = append(c.Env, e)
		}
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("BFD process: %w", err)
	}
	go func() { _ = c.Wait() }() // reaped as long as this process lasts
	return nil
}

// Build names a build of the program: its version and the build id that the linker
// wrote into it.
func Build(version string) string {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return version
	}
	defer f.Close()
	s := f.Section(".note.go.buildid")
	if s == nil {
		return version
	}
	b, err := s.Data()
	if err != nil || len(b) < 24 {
		return version
	}
	// The content hash is the last part of a build id.
	id := strings.Trim(string(b[16:]), "\x00")
	id = id[strings.LastIndexByte(id, '/')+1:]
	if len(id) > 64 {
		id = id[:64]
	}
	return version + " " + id
}
