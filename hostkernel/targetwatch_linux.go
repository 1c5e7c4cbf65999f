package hostkernel

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// TargetWatch knows the TCP sockets of this kernel's NVMe target that still exist, also those that
// are closed. The target (nvmet_tcp_release_queue_work) releases the socket of a queue only after
// its worker has stopped to read from it and nvmet_sq_destroy has waited for each command of the
// queue. The end of a socket (tracepoint tcp:tcp_destroy_sock) therefore says that nothing that
// came in by it can still be executed; a socket that is closed but not released says nothing.
//
// Every change of state of a socket at a port of the target (tracepoint sock:inet_sock_set_state)
// enters it into a map, tcp_destroy_sock takes it out. A socket from before the watch that has not
// changed its state since is still in the list of open sockets (package function Connections): what
// exists is what one of both has. The kernel takes a socket out of its list just before the tracepoint,
// with software interrupts off: both must be empty twice, with a GracePeriod between.
//
// Both tracepoints exist since Linux 4.16, and neither BTF nor offsets of structures are needed:
// the format files describe the records.
type TargetWatch struct {
	sockets *ebpf.Map
	ports   *ebpf.Map
	state   *ebpf.Map
	links   []link.Link
	pinned  error // why it does not outlive this process
}

// Limits of the watch.
const (
	maxWatchedSockets = 1 << 16
	maxWatchedPorts   = 1 << 10
)

// Entries of the map state.
const (
	stateLost  = iota // sockets that found no room
	stateBlind        // when the watch began beside a target that served already: ns of the monotonic clock, else 0
	stateEntries
)

// watchPins is where the watch outlives the process: after a restart of the agent nothing is
// forgotten. The number changes with what is pinned.
const watchPins = "/sys/fs/bpf/snsd-target-1"

// socketKey is a socket in the map: its address in the kernel.
type socketKey uint64

// socketEnds are the ends of one, as the tracepoint has them: IPv4 as ::ffff:a.b.c.d.
type socketEnds struct {
	Local, Remote [16]byte
	Port          uint16 // of the local end
	_             [6]byte
}

// OpenTargetWatch begins to watch, or goes on with the watch of an earlier process. served says that
// the target serves already: then there may be sockets that are closed and that the watch never saw.
func OpenTargetWatch(served bool) (*TargetWatch, error) {
	_ = rlimit.RemoveMemlock() // needed before Linux 5.11 only; what it prevents says itself
	if w, err := adoptTargetWatch(); err == nil {
		return w, nil
	}
	_ = os.RemoveAll(watchPins)
	w, err := newTargetWatch(served)
	if err != nil {
		return nil, fmt.Errorf("watch the target's sockets: %w", err)
	}
	w.pinned = w.pin()
	return w, nil
}

// maps lists the maps by the names of their pins.
func (w *TargetWatch) maps() map[string]**ebpf.Map {
	return map[string]**ebpf.Map{"sockets": &w.sockets, "ports": &w.ports, "state": &w.state}
}

func (w *TargetWatch) pin() error {
	if err := os.MkdirAll(watchPins, 0o700); err != nil {
		return err
	}
	var errs []error
	for name, m := range w.maps() {
		errs = append(errs, (*m).Pin(filepath.Join(watchPins, name)))
	}
	for i, l := range w.links {
		errs = append(errs, l.Pin(filepath.Join(watchPins, "link"+strconv.Itoa(i))))
	}
	err := errors.Join(errs...)
	if err != nil {
		_ = os.RemoveAll(watchPins) // part of it would look like all
	}
	return err
}

func adoptTargetWatch() (*TargetWatch, error) {
	w := &TargetWatch{}
	for name, m := range w.maps() {
		var err error
		if *m, err = ebpf.LoadPinnedMap(filepath.Join(watchPins, name), nil); err != nil {
			w.Close()
			return nil, err
		}
	}
	for i := range watched {
		l, err := link.LoadPinnedLink(filepath.Join(watchPins, "link"+strconv.Itoa(i)), nil)
		if err != nil {
			w.Close()
			return nil, err
		}
		w.links = append(w.links, l)
	}
	return w, nil
}

// watched are the tracepoints, in the order of their links. The end of a socket comes first:
// otherwise one could be entered that nothing takes out.
var watched = []struct {
	group, name string
	program     func(*TargetWatch, recordFormat) (asm.Instructions, error)
}{
	{"tcp", "tcp_destroy_sock", (*TargetWatch).endProgram},
	{"sock", "inet_sock_set_state", (*TargetWatch).stateProgram},
}

func newTargetWatch(served bool) (w *TargetWatch, err error) {
	w = &TargetWatch{}
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	for _, m := range []struct {
		to   **ebpf.Map
		spec ebpf.MapSpec
	}{
		{&w.sockets, ebpf.MapSpec{Name: "snsd_sockets", Type: ebpf.Hash, KeySize: 8, ValueSize: uint32(binary.Size(socketEnds{})), MaxEntries: maxWatchedSockets}},
		{&w.ports, ebpf.MapSpec{Name: "snsd_ports", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: maxWatchedPorts}},
		{&w.state, ebpf.MapSpec{Name: "snsd_watch", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: stateEntries}},
	} {
		if *m.to, err = ebpf.NewMap(&m.spec); err != nil {
			return w, err
		}
	}
	for _, t := range watched {
		format, err := readFormat(t.group, t.name)
		if err != nil {
			return w, err
		}
		code, err := t.program(w, format)
		if err != nil {
			return w, err
		}
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "snsd_target", Type: ebpf.TracePoint, License: "GPL", Instructions: code})
		if err != nil {
			return w, fmt.Errorf("%s: %w", t.name, err)
		}
		l, err := link.Tracepoint(t.group, t.name, prog, nil)
		prog.Close()
		if err != nil {
			return w, err
		}
		w.links = append(w.links, l)
	}
	if served {
		err = w.state.Put(uint32(stateBlind), uint64(monotonicNow()))
	}
	return w, err
}

// endProgram takes a socket out of the map.
func (w *TargetWatch) endProgram(f recordFormat) (asm.Instructions, error) {
	at, err := f.offset("skaddr", 8)
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, at, asm.DWord),
		asm.StoreMem(asm.RFP, -8, asm.R2, asm.DWord),
		asm.LoadMapPtr(asm.R1, w.sockets.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -8),
		asm.FnMapDeleteElem.Call(),
		asm.Mov.Imm(asm.R0, 0), asm.Return(),
	}, err
}

// stateProgram enters a socket at one of the target's ports, except a listening one, into the map.
func (w *TargetWatch) stateProgram(f recordFormat) (asm.Instructions, error) {
	var errs []error
	offset := func(name string, size int) int16 {
		at, err := f.offset(name, size)
		errs = append(errs, err)
		return at
	}
	const listening, key, ends, port = 10, -8, -48, -56 // offsets on the stack
	local, remote := offset("saddr_v6", 16), offset("daddr_v6", 16)
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, offset("protocol", 2), asm.Half),
		asm.JNE.Imm(asm.R2, unix.IPPROTO_TCP, "out"),
		asm.LoadMem(asm.R2, asm.R6, offset("newstate", 4), asm.Word),
		asm.JEq.Imm(asm.R2, listening, "out"),
		asm.LoadMem(asm.R7, asm.R6, offset("sport", 2), asm.Half),
		asm.StoreMem(asm.RFP, port, asm.R7, asm.Word),
		asm.LoadMapPtr(asm.R1, w.ports.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, port),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R2, asm.R6, offset("skaddr", 8), asm.DWord),
		asm.StoreMem(asm.RFP, key, asm.R2, asm.DWord),
	}
	for i := int16(0); i < 16; i += 4 {
		code = append(code,
			asm.LoadMem(asm.R2, asm.R6, local+i, asm.Word), asm.StoreMem(asm.RFP, ends+i, asm.R2, asm.Word),
			asm.LoadMem(asm.R2, asm.R6, remote+i, asm.Word), asm.StoreMem(asm.RFP, ends+16+i, asm.R2, asm.Word))
	}
	return append(code,
		asm.StoreMem(asm.RFP, ends+32, asm.R7, asm.DWord),
		asm.LoadMapPtr(asm.R1, w.sockets.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, ends),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.StoreImm(asm.RFP, port, stateLost, asm.Word),
		asm.LoadMapPtr(asm.R1, w.state.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, port),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return(),
	), errors.Join(errs...)
}

// Serve has the watch follow sockets at ports of the target. A port that is served no more is still
// followed: its sockets may still exist.
func (w *TargetWatch) Serve(ports []uint16) error {
	for _, p := range ports {
		if err := w.ports.Put(uint32(p), uint32(1)); err != nil {
			return fmt.Errorf("watch port %d: %w", p, err)
		}
	}
	return nil
}

// Blind returns how long ago the watch began, if the target served already then: of a socket that
// was closed before, but not released, the watch knows nothing. Otherwise ok is false.
func (w *TargetWatch) Blind() (ago time.Duration, ok bool, err error) {
	var at uint64
	err = w.state.Lookup(uint32(stateBlind), &at)
	return time.Duration(monotonicNow() - int64(at)), at != 0, err
}

// Pinned reports, by nil, that the watch outlives this process.
func (w *TargetWatch) Pinned() error { return w.pinned }

// ErrWatchFull means that more sockets exist than the watch has room for: it knows nothing for
// certain until the agent's watch begins anew.
var ErrWatchFull = fmt.Errorf("the target has had more than %d sockets at a time: too many to know which still exist", maxWatchedSockets)

// Existing counts the sockets between two addresses that exist, as far as the watch saw them change.
func (w *TargetWatch) Existing(host, array netip.Addr) (n int, err error) {
	var lost uint64
	if err := w.state.Lookup(uint32(stateLost), &lost); err != nil {
		return 0, err
	}
	if lost > 0 {
		return 0, ErrWatchFull
	}
	local, remote := array.As16(), host.As16()
	var key socketKey
	var ends socketEnds
	all := w.sockets.Iterate()
	for all.Next(&key, &ends) {
		if ends.Local == local && ends.Remote == remote {
			n++
		}
	}
	return n, all.Err()
}

// Close ends this process's part. What is pinned goes on.
func (w *TargetWatch) Close() {
	for _, l := range w.links {
		l.Close()
	}
	for _, m := range w.maps() {
		(*m).Close()
	}
}

// recordFormat are the offsets and sizes of a tracepoint's fields.
type recordFormat map[string][2]int

func (f recordFormat) offset(name string, size int) (int16, error) {
	field, ok := f[name]
	switch {
	case !ok:
		return 0, fmt.Errorf("the tracepoint of this kernel has no field %s", name)
	case field[1] != size || field[0]%min(size, 4) != 0 && size < 16:
		return 0, fmt.Errorf("field %s of the tracepoint is %d bytes at offset %d: want %d", name, field[1], field[0], size)
	}
	return int16(field[0]), nil
}

// tracefs is where tracepoints are described; it may be mounted at either place.
var tracefs = []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

func readFormat(group, name string) (recordFormat, error) {
	var errs []error
	for _, dir := range tracefs {
		b, err := os.ReadFile(filepath.Join(dir, "events", group, name, "format"))
		if err == nil {
			return parseFormat(b), nil
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w (mount -t tracefs tracefs /sys/kernel/tracing)", err)
	}
	return nil, err
}

// parseFormat reads lines such as "field:__u16 sport;	offset:16;	size:2;	signed:0;".
func parseFormat(b []byte) recordFormat {
	f := recordFormat{}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		parts := strings.Split(strings.TrimSpace(s.Text()), ";")
		if len(parts) < 3 || !strings.HasPrefix(parts[0], "field:") {
			continue
		}
		name := parts[0][strings.LastIndexByte(parts[0], ' ')+1:]
		name, _, _ = strings.Cut(name, "[")
		at, err1 := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(parts[1]), "offset:"))
		size, err2 := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(parts[2]), "size:"))
		if err1 == nil && err2 == nil {
			f[name] = [2]int{at, size}
		}
	}
	return f
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL (linux/membarrier.h): it waits for a grace period of RCU.
const membarrierGlobal = 1

// CanWait reports by nil that the kernel offers grace periods.
func CanWait() error {
	offers, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, 0, 0, 0) // MEMBARRIER_CMD_QUERY
	if errno != 0 || offers&membarrierGlobal == 0 {
		return errors.New("the kernel offers no grace period (membarrier, refused with nohz_full=)")
	}
	return nil
}

// GracePeriod waits until each processor has left the code that it runs with software interrupts
// off, or in them, now.
func GracePeriod() error {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		return fmt.Errorf("the kernel offers no grace period (membarrier, refused with nohz_full=): %w", errno)
	}
	return nil
}

func monotonicNow() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return t.Nano()
}
