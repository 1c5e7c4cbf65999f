package carrier

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// Word is what the kernel said.
type Word struct {
	Index   int // of the interface
	Carrier bool
	Running bool      // open; false while an operator shuts it
	Changes uint32    // of carrier so far, this one included; it wraps
	At      time.Time // of the change, with monotonic reading
}

// Watch hears of the interfaces that are added to it. Read is for one goroutine, the other
// methods for any.
type Watch struct {
	how   fabric.CarrierSource
	prog  *ebpf.Program
	learn *ebpf.Program // nil: the other one needs no learning
	words *ebpf.Map
	ports *ebpf.Map
	lost  *ebpf.Map
	link  link.Link

	ready *os.File // the ring buffer once more, for the runtime to wait for
	raw   syscall.RawConn
	ring  *ringbuf.Reader
	rec   ringbuf.Record
}

func (w *Watch) openRing() (err error) {
	if w.ring, err = ringbuf.NewReader(w.words); err != nil {
		return fmt.Errorf("ring buffer: %w", err)
	}
	w.ring.SetDeadline(time.Unix(1, 0)) // gives what is there, without waiting
	return nil
}

// Wake lets Read wait. The runtime waits, as it does for sockets: the goroutine that hears a word
// runs on the thread that was woken, and so does the one it wakes in turn.
func (w *Watch) Wake() (err error) {
	fd, err := unix.FcntlInt(uintptr(w.words.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("dup", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	w.ready = os.NewFile(uintptr(fd), "words")
	w.raw, err = w.ready.SyscallConn()
	return err
}

// Read waits for the next word, until Stop: then the error wraps os.ErrClosed. Wake comes first.
func (w *Watch) Read() (word Word, err error) {
	waitErr := w.raw.Read(func(uintptr) bool {
		err = w.ring.ReadInto(&w.rec)
		return !errors.Is(err, os.ErrDeadlineExceeded)
	})
	if err = cmp.Or(waitErr, err); err != nil {
		return word, err
	}
	return parse(w.rec.RawSample, time.Now(), monotonic())
}

// There gives the next word if it is there already.
func (w *Watch) There() (word Word, ok bool, err error) {
	err = w.ring.ReadInto(&w.rec)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return word, false, nil
	}
	if err == nil {
		word, err = parse(w.rec.RawSample, time.Now(), monotonic())
	}
	return word, err == nil, err
}

// ErrWord says that one word was not understood; others may be.
var ErrWord = errors.New("a word that the kernel function said is not understood")

// size is that of struct word.
const size = 24

// parse reads a word; now and mono are the same moment.
func parse(b []byte, now time.Time, mono time.Duration) (Word, error) {
	if len(b) != size {
		return Word{}, fmt.Errorf("%w: %d bytes, want %d", ErrWord, len(b), size)
	}
	age := max(0, mono-time.Duration(binary.NativeEndian.Uint64(b)))
	return Word{Index: int(binary.NativeEndian.Uint32(b[8:])), Changes: binary.NativeEndian.Uint32(b[12:]),
		Carrier: b[16] != 0, Running: b[17] != 0, At: now.Add(-age)}, nil
}

// monotonic is what bpf_ktime_get_ns shows.
func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // it is always there
	return time.Duration(ts.Nano())
}

// portValue is struct port.
type portValue struct {
	Dev     uint64
	Changes uint32
	_       uint32
}

// Add begins to hear of an interface. The calling thread must be in its network namespace.
func (w *Watch) Add(index int) error {
	if err := w.ports.Put(uint32(index), portValue{}); err != nil {
		return fmt.Errorf("interface %d in the table of ports, which holds %d: %w", index, w.ports.MaxEntries(), err)
	}
	if w.learn == nil {
		return nil
	}
	// The packet is nobody's: the program only looks where it stands.
	ctx := struct {
		_       [10]uint32
		Ifindex uint32 // of struct __sk_buff
	}{Ifindex: uint32(index)}
	ret, err := w.learn.Run(&ebpf.RunOptions{Data: make([]byte, 64), Context: ctx})
	if err == nil && ret != 0 {
		err = errors.New("it is not in the table of ports")
	}
	if err != nil {
		return fmt.Errorf("find interface %d in the kernel: %w", index, err)
	}
	return nil
}

// Remove ends that.
func (w *Watch) Remove(index int) { _ = w.ports.Delete(uint32(index)) }

// Lost is how many words did not come so far: there was no room, or the kernel passed the
// program over because it ran already on that processor.
func (w *Watch) Lost() uint64 {
	var n uint64
	_ = w.lost.Lookup(uint32(0), &n)
	if st, err := w.prog.Stats(); err == nil {
		n += st.RecursionMisses
	}
	return n
}

// Source is how it hears.
func (w *Watch) Source() fabric.CarrierSource { return w.how }

// Whole reports whether each change of carrier has its word. The tracepoint has none for those
// that the kernel holds back.
func (w *Watch) Whole() bool { return w.how != fabric.CarrierTracepoint }

// Stop ends Read.
func (w *Watch) Stop() {
	if w.ready != nil {
		_ = w.ready.Close()
	}
}

// Close frees everything; no other method may be at work then.
func (w *Watch) Close() {
	w.Stop()
	if w.link != nil {
		_ = w.link.Close()
	}
	if w.ring != nil {
		_ = w.ring.Close()
	}
	_ = w.prog.Close()
	_ = w.learn.Close()
	for _, m := range []*ebpf.Map{w.words, w.ports, w.lost} {
		_ = m.Close()
	}
}
