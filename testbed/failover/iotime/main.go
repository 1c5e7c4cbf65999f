// Command iotime reads and writes an NVMe disk without the page cache and writes down how long each
// I/O stood still, and what the kernel said of each path meanwhile. It runs in the
// virtual machine of testbed/failover.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/testbed/failover/iolog"
)

const (
	block = 4096     // bytes of an I/O
	span  = 16 << 20 // bytes of the disk that are used
	keep  = 100_000  // entries of each list
	poll  = 10 * time.Millisecond
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "iotime:", err)
		os.Exit(1)
	}
}

func run() error {
	device := flag.String("device", "", "disk")
	out := flag.String("out", "", "file for the result")
	workers := flag.Int("workers", 4, "I/Os in flight, half of them writes")
	pause := flag.Duration("pause", 4*time.Millisecond, "between two I/Os of a worker")
	answer := flag.String("answer", "", "UDP address where the state is told")
	flag.Parse()
	fd, err := unix.Open(*device, unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", *device, err)
	}
	conn, err := net.ListenPacket("udp", *answer)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	r := &recorder{began: make([]atomic.Int64, *workers)}
	r.log.IOs = make([]iolog.IO, 0, keep) // at once: to make room while I/O is timed would hold it up
	var wg sync.WaitGroup
	for w := range *workers {
		wg.Go(func() { r.work(ctx, fd, w, *pause) })
	}
	wg.Go(func() { r.watch(ctx) })
	go r.tell(conn)
	wg.Wait()
	b, err := json.Marshal(&r.log)
	if err != nil {
		return err
	}
	// Whole or not at all: somebody waits for it.
	if err := os.WriteFile(*out+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(*out+".new", *out)
}

type recorder struct {
	began []atomic.Int64 // of each worker's I/O in flight, Unix ns; 0: none
	mu    sync.Mutex
	log   iolog.Log
}

func (r *recorder) work(ctx context.Context, fd, w int, pause time.Duration) {
	buf := aligned()
	for ctx.Err() == nil {
		offset := rand.Int64N(span/block) * block
		begun := time.Now()
		r.began[w].Store(begun.UnixNano())
		var n int
		var err error
		if w%2 == 0 {
			n, err = unix.Pread(fd, buf, offset)
		} else {
			n, err = unix.Pwrite(fd, buf, offset)
		}
		ended := time.Now()
		r.began[w].Store(0)
		if err == nil && n != block {
			err = fmt.Errorf("%d bytes of %d", n, block)
		}
		r.note(w, begun, ended, err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (r *recorder) note(w int, begun, ended time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Count++
	if err != nil {
		r.log.Errors++
	}
	if len(r.log.IOs) < keep {
		s := iolog.IO{Write: w%2 == 1, Begun: begun.UnixNano(), Ended: ended.UnixNano()}
		if err != nil {
			s.Error = err.Error()
		}
		r.log.IOs = append(r.log.IOs, s)
	}
}

// aligned gives a buffer as O_DIRECT wants it.
func aligned() []byte {
	b := make([]byte, 2*block)
	off := block - int(uintptr(unsafe.Pointer(&b[0]))%block)
	return b[off : off+block]
}

// watch writes down what becomes of each controller.
func (r *recorder) watch(ctx context.Context) {
	last := map[string]string{}
	for ctx.Err() == nil {
		seen := map[string]bool{}
		files, _ := filepath.Glob("/sys/class/nvme/nvme*/state")
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil || len(b) == 0 {
				continue
			}
			name := filepath.Base(filepath.Dir(f))
			address, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "address"))
			seen[name] = true
			r.state(last, name, string(b[:len(b)-1]), string(address))
		}
		for name := range last {
			if !seen[name] {
				r.state(last, name, iolog.Gone, "")
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
}

func (r *recorder) state(last map[string]string, name, state, address string) {
	if last[name] == state {
		return
	}
	last[name] = state
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.log.States) < keep {
		r.log.States = append(r.log.States, iolog.State{At: time.Now().UnixNano(), Controller: name, Address: address, State: state})
	}
}

// tell answers every datagram by the present state.
func (r *recorder) tell(conn net.PacketConn) {
	buf := make([]byte, 64)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		now := time.Now().UnixNano()
		a := iolog.Now{Asked: string(buf[:n]), At: now}
		for i := range r.began {
			if b := r.began[i].Load(); b != 0 {
				a.Oldest = max(a.Oldest, now-b)
			}
		}
		r.mu.Lock()
		a.Count, a.Errors = r.log.Count, r.log.Errors
		r.mu.Unlock()
		b, _ := json.Marshal(a)
		_, _ = conn.WriteTo(b, from)
	}
}
