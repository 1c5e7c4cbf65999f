package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/internal/cgroup"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/daemon"
)

// request is one line on the standard input of the reflector's process.
type request struct {
	Op    string   `json:"op"` // stats, send, profile, heap, trace, priority; join, flood, burn, rest
	GC    bool     `json:"gc,omitempty"`
	Reset bool     `json:"reset,omitempty"` // the peak begins anew
	Bytes uint64   `json:"bytes,omitempty"`
	File  string   `json:"file,omitempty"`  // of a profile that begins; empty: the one that runs ends
	Flood *floodOf `json:"flood,omitempty"` // join, flood, burn: see floodProcess
}

// reply is one line on its standard output.
type reply struct {
	Err   string        `json:"error,omitempty"`
	Ready bool          `json:"ready,omitempty"`
	Bare  string        `json:"bare,omitempty"` // where the bare loop listens
	Stats *stats        `json:"stats,omitempty"`
	Sent  uint64        `json:"sent,omitempty"`  // messages of a flood that has ended
	CPU   time.Duration `json:"cpu,omitempty"`   // of the process of floods, so far
	Where string        `json:"where,omitempty"` // it may run
}

// stats is what the reflector's process has used so far.
type stats struct {
	Heap      uint64                 `json:"heap"`  // bytes of objects
	Stack     uint64                 `json:"stack"` // bytes of goroutines
	RSS       uint64                 `json:"rss"`
	Peak      uint64                 `json:"peak"` // most RSS since the last reset
	CPU       time.Duration          `json:"cpu"`  // user and system
	Transport link.TransportCounters `json:"transport"`
}

// Main is one of the benchmark's processes, by its role: the reflector, or who floods it. It runs
// until its standard input ends.
func Main(ctx context.Context, role, dir string, in io.Reader, out io.Writer) error {
	if err := raiseFiles(0); err != nil {
		return err
	}
	switch role {
	case "reflector":
		return reflectorProcess(ctx, dir, in, out)
	case "flooder":
		return floodProcess(ctx, dir, in, out)
	}
	return fmt.Errorf("%q is no process of a benchmark: want reflector or flooder", role)
}

// reflectorProcess is a daemon with the configuration inofd.yaml of a directory, and a bare loop
// beside it.
func reflectorProcess(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	cfg, err := config.Load(filepath.Join(dir, "inofd.yaml"))
	if err != nil {
		return err
	}
	daemon.TuneRuntime(cgroup.Limit{}) // as inofd does
	ready := make(chan struct{})
	level := slog.LevelWarn
	d, err := daemon.New(cfg, daemon.Env{
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})), Ready: func() { close(ready) },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	select {
	case <-ready:
	case err := <-ended:
		return errors.Join(err, errors.New("the reflector has ended before it was ready"))
	}
	b, err := newBare()
	if err != nil {
		return err
	}
	defer b.close()
	if err := json.NewEncoder(out).Encode(reply{Ready: true, Bare: b.l.Addr().String()}); err != nil {
		return err
	}
	err = answers(in, out, func(q request) (reply, error) { return answer(ctx, d, b, q) })
	cancel()
	return errors.Join(err, <-ended)
}

func answer(ctx context.Context, d *daemon.Daemon, b *bare, q request) (reply, error) {
	switch q.Op {
	case "send":
		b.send(q.Bytes)
		return reply{}, nil
	case "profile":
		if q.File == "" {
			pprof.StopCPUProfile()
			return reply{}, nil
		}
		f, err := os.Create(q.File)
		if err != nil {
			return reply{}, err
		}
		return reply{}, pprof.StartCPUProfile(f) // written when it ends
	case "trace":
		if q.File == "" {
			trace.Stop()
			return reply{}, nil
		}
		f, err := os.Create(q.File)
		if err != nil {
			return reply{}, err
		}
		return reply{}, trace.Start(f)
	case "priority":
		with, err := asUnit()
		return reply{Where: with}, err
	case "heap":
		f, err := os.Create(q.File)
		if err != nil {
			return reply{}, err
		}
		runtime.GC()
		return reply{}, errors.Join(pprof.WriteHeapProfile(f), f.Close())
	case "stats":
		s, err := measure(ctx, d, q.GC)
		if err == nil && q.Reset {
			err = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
		}
		return reply{Stats: &s}, err
	}
	return reply{}, fmt.Errorf("%q is none of stats, send, profile, heap", q.Op)
}

func measure(ctx context.Context, d *daemon.Daemon, gc bool) (stats, error) {
	var s stats
	st, err := d.Status(ctx)
	if err != nil {
		return s, err
	}
	if t, ok := st.Counters["inof_server_1"].(link.TransportCounters); ok {
		s.Transport = t
	}
	if s.RSS, s.Peak, err = residentSet(); err != nil {
		return s, err
	}
	if gc {
		// Twice: what a pool holds survives once.
		runtime.GC()
		debug.FreeOSMemory()
		if s.RSS, _, err = residentSet(); err != nil {
			return s, err
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.Heap, s.Stack = m.HeapAlloc-daemon.Ballast(), m.StackInuse
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return s, err
	}
	s.CPU = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return s, nil
}

// residentSet reads VmRSS and VmHWM, in bytes.
func residentSet() (now, peak uint64, err error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, _ := strconv.ParseUint(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			now = kib << 10
		case "VmHWM:":
			peak = kib << 10
		}
	}
	return now, peak, nil
}
