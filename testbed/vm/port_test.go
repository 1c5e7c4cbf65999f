package vm

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/netnstest"
)

// inSpace runs fn in a network namespace, on a thread that is thrown away.
func inSpace(t *testing.T, s *netnstest.Space, fn func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(s.Handle); err != nil {
			done <- err
			return
		}
		done <- fn()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Frames pass as they are in both directions, tags and padding included: what the kernel
// takes out of a frame is put back.
func TestFramesPassWhole(t *testing.T) {
	a, b := netnstest.New(t), netnstest.New(t)
	a.Veth("eth1", b, "eth1")
	card, qemu := net.Pipe()
	defer qemu.Close()
	var p, peer *port
	silent, _ := net.Pipe()
	inSpace(t, a, func() (err error) { p, err = openPort("eth1", 0, card); return err })
	inSpace(t, b, func() (err error) { peer, err = openPort("eth1", 0, silent); return err })
	defer p.close()
	defer peer.close()
	over := make(chan error, 2)
	go func() { over <- p.fromLink() }()
	go func() { over <- p.toLink() }()
	deadline := time.Now().Add(40 * time.Second)
	toLink := func(frame []byte) error {
		_, err := qemu.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
		return err
	}
	toCard := make(chan []byte, 64)
	go func() {
		defer close(toCard)
		var size [4]byte
		for {
			if _, err := io.ReadFull(qemu, size[:]); err != nil {
				return
			}
			frame := make([]byte, binary.BigEndian.Uint32(size[:]))
			if _, err := io.ReadFull(qemu, frame); err != nil {
				return
			}
			toCard <- frame
		}
	}()
	atPeer := make(chan []byte, 64)
	go func() {
		defer close(atPeer)
		for {
			buf := make([]byte, maxFrame)
			n, err := peer.raw.Read(buf)
			if err != nil {
				return
			}
			atPeer <- buf[:n]
		}
	}()
	head := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}

	// Until its queue is there, a moment after its carrier, an interface loses what it
	// is to send.
	awake := append(bytes.Clone(head), 0x88, 0xb6)
	send := func(frame []byte) error { _, err := peer.raw.Write(frame); return err }
	for _, way := range []struct {
		send func([]byte) error
		to   <-chan []byte
	}{{toLink, atPeer}, {send, toCard}} {
		for got := []byte{}; !bytes.Equal(got, awake); {
			if err := way.send(awake); err != nil || time.Now().After(deadline) {
				t.Fatalf("nothing passes: %v", err)
			}
			select {
			case got = <-way.to:
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	// next is the next frame that is neither this kernel's own nor one of those.
	next := func(from <-chan []byte) []byte {
		for {
			select {
			case f := <-from:
				if f == nil || !ofKernel(f) && !bytes.Equal(f, awake) {
					return f
				}
			case <-time.After(time.Until(deadline)):
				return nil
			}
		}
	}
	for name, frame := range map[string][]byte{
		"LLDP":                 append(append([]byte{0x01, 0x80, 0xc2, 0, 0, 0x0e}, head[6:]...), 0x88, 0xcc, 1, 2, 3),
		"a full frame":         append(append(bytes.Clone(head), 0x88, 0xb5), make([]byte, 1500)...),
		"a VLAN tag":           append(append(bytes.Clone(head), 0x81, 0x00, 0x60, 0x07, 0x88, 0xb5), 1, 2, 3, 4),
		"a provider's tag":     append(append(bytes.Clone(head), 0x88, 0xa8, 0x20, 0x09, 0x88, 0xb5), 5, 6),
		"priority, no VLAN id": append(append(bytes.Clone(head), 0x81, 0x00, 0xe0, 0x00, 0x88, 0xb5), 7, 8, 9),
	} {
		if err := send(frame); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := next(toCard); !bytes.Equal(got, frame) {
			t.Errorf("%s to the card: % x", name, got)
		}
		// On its way to the link this kernel takes the tag out again.
		if err := toLink(frame); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := bytes.Clone(frame)
		if tpid := binary.BigEndian.Uint16(frame[12:]); tpid == unix.ETH_P_8021Q || tpid == unix.ETH_P_8021AD {
			want = append(want[:12], frame[16:]...)
		}
		if got := next(atPeer); !bytes.Equal(got, want) {
			t.Errorf("%s to the link: % x", name, got)
		}
	}
	select {
	case err := <-over:
		t.Errorf("it ended: %v", err)
	default:
	}
}

// ofKernel reports whether a frame is this kernel's own IPv6, which begins before it is
// switched off.
func ofKernel(frame []byte) bool { return bytes.HasPrefix(frame, []byte{0x33, 0x33}) }
