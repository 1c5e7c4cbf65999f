package carrier

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

//go:embed bpf/carrier.o
var object []byte

// Symbols of the kernel.
const (
	function = "linkwatch_fire_event" // is called when the carrier has changed
	handler  = "linkwatch_event"      // tells netlink, in the work queue
)

// Ways are those to hear, the best first.
func Ways() []fabric.CarrierSource {
	return []fabric.CarrierSource{fabric.CarrierFentry, fabric.CarrierKprobe, fabric.CarrierTracepoint}
}

// Open hears in the network namespace of the calling thread, by the first of some ways that this
// kernel and these rights allow. The error says why those before it did not go, also where one did.
func Open(ways ...fabric.CarrierSource) (*Watch, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	_ = rlimit.RemoveMemlock() // needed before Linux 5.11 only; what it prevents says itself
	var why []error
	for _, how := range ways {
		w, err := open(how, uint32(st.Ino))
		if err == nil {
			return w, errors.Join(why...)
		}
		why = append(why, fmt.Errorf("%s: %w", how, brief(err)))
	}
	return nil, errors.Join(why...)
}

// brief leaves out what the verifier printed.
func brief(err error) error {
	if ve, ok := errors.AsType[*ebpf.VerifierError](err); ok {
		return ve.Cause
	}
	return err
}

// program is the name in the object of that of a way.
func program(how fabric.CarrierSource) (string, error) {
	switch how {
	case fabric.CarrierFentry:
		return "entry", nil
	case fabric.CarrierKprobe:
		if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
			return "", fmt.Errorf("not on %s", runtime.GOARCH)
		}
		return "probe_" + runtime.GOARCH, nil
	case fabric.CarrierTracepoint:
		return "queued", nil
	}
	return "", errors.New("no such way")
}

func open(how fabric.CarrierSource, space uint32) (w *Watch, err error) {
	name, err := program(how)
	if err != nil {
		return nil, err
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	for other := range spec.Programs {
		if other != name && (how != fabric.CarrierTracepoint || other != "learn") {
			delete(spec.Programs, other)
		}
	}
	if err := spec.Variables["space"].Set(space); err != nil {
		return nil, err
	}
	if how == fabric.CarrierTracepoint {
		at, err := address(handler)
		if err != nil {
			return nil, err
		}
		if err := spec.Variables["handler"].Set(at); err != nil {
			return nil, err
		}
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, err
	}
	w = &Watch{how: how, prog: coll.DetachProgram(name), learn: coll.DetachProgram("learn"),
		words: coll.DetachMap("words"), ports: coll.DetachMap("ports"), lost: coll.DetachMap("lost")}
	coll.Close()
	if err = w.openRing(); err == nil {
		w.link, err = attach(how, w.prog)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func attach(how fabric.CarrierSource, prog *ebpf.Program) (link.Link, error) {
	switch how {
	case fabric.CarrierFentry:
		return link.AttachTracing(link.TracingOptions{Program: prog})
	case fabric.CarrierKprobe:
		return link.Kprobe(function, prog, nil)
	}
	return link.AttachRawTracepoint(link.RawTracepointOptions{Name: "workqueue_queue_work", Program: prog})
}

// address looks a symbol of the kernel up.
func address(symbol string) (uint64, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		at, rest, _ := strings.Cut(s.Text(), " ")
		if len(rest) < 2 || rest[2:] != symbol {
			continue
		}
		n, err := strconv.ParseUint(at, 16, 64)
		if err != nil || n == 0 {
			return 0, fmt.Errorf("the kernel hides the address of %s: want CAP_SYSLOG, or kernel.kptr_restrict 0", symbol)
		}
		return n, nil
	}
	return 0, fmt.Errorf("/proc/kallsyms has no %s", symbol)
}
