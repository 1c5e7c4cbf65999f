package testbed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// benchBound is the way itself: TCP from tor1 to spine, TCP from there to tor2, a
// raw frame from there to the host.
type benchBound struct {
	stop []func()
	conn net.Conn
	rx   *rawReader
	msg  [boundSize]byte
}

func (b *bench) openBound() (m *benchBound, err error) {
	m = &benchBound{}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	to := b.truth.info(b.truth.of(benchTold, "B"))
	last := fmt.Sprintf("10.0.0.12:%d", benchPort)
	first := fmt.Sprintf("10.0.0.1:%d", benchPort)
	for _, r := range [][]string{{"tor2", "--listen", last, "--raw", to.Port}, {"spine", "--listen", first, "--dial", last}} {
		stop, err := b.relay(r[0], r[1:]...)
		if err != nil {
			return m, err
		}
		m.stop = append(m.stop, stop)
	}
	if err := b.lab.Do("tor1", func() (err error) {
		m.conn, err = net.DialTimeout("tcp", first, demoWait)
		return err
	}); err != nil {
		return m, err
	}
	return m, b.lab.Do(to.Node, func() (err error) {
		m.rx, err = newRawReader(to.NIC)
		return err
	})
}

// relay starts a relay in a node and waits until it listens.
func (b *bench) relay(node string, args ...string) (stop func(), err error) {
	c := b.lab.Command(node, append(slices.Clone(b.Relay), args...)...)
	c.Env = append(c.Env, b.RelayEnv...)
	c.Stderr, c.priority = os.Stderr, b.priority(node)
	r, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	stop = func() { _ = c.Process.Kill(); _ = c.Wait() }
	line := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(r, line); err != nil || string(line) != "ready\n" {
		stop()
		return nil, fmt.Errorf("relay in %s: %q, %w", node, line, err)
	}
	return stop, nil
}

// rawReader takes the bound's frames with the kernel's receive time stamps.
type rawReader struct {
	fd       int
	buf, oob []byte
}

func newRawReader(name string) (*rawReader, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	proto := boundEtherType>>8 | boundEtherType&0xff<<8 // network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return nil, fmt.Errorf("raw socket: %w", err)
	}
	limit := unix.NsecToTimeval(demoWait.Nanoseconds())
	err = errors.Join(
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(proto), Ifindex: ifi.Index}),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit))
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("raw socket at %s: %w", name, err)
	}
	return &rawReader{fd: fd, buf: make([]byte, 2048), oob: make([]byte, 256)}, nil
}

func (r *rawReader) next() (time.Time, error) {
	for {
		_, n, _, _, err := unix.Recvmsg(r.fd, r.buf, r.oob, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return time.Time{}, err
		}
		msgs, err := unix.ParseSocketControlMessage(r.oob[:n])
		if err != nil {
			return time.Time{}, err
		}
		for _, m := range msgs {
			if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
				return time.Unix(int64(binary.NativeEndian.Uint64(m.Data[0:8])), int64(binary.NativeEndian.Uint64(m.Data[8:16]))), nil
			}
		}
		return time.Time{}, errors.New("frame without a time stamp")
	}
}

func (r *rawReader) close() { unix.Close(r.fd) }

func (m *benchBound) trial(ctx context.Context) (time.Duration, error) {
	if err := pause(ctx, 20*time.Millisecond); err != nil {
		return 0, err
	}
	at := time.Now()
	if _, err := m.conn.Write(m.msg[:]); err != nil {
		return 0, err
	}
	got, err := m.rx.next()
	return got.Sub(at), err
}

func (m *benchBound) close() {
	if m.rx != nil {
		m.rx.close()
	}
	if m.conn != nil {
		_ = m.conn.Close()
	}
	for _, stop := range m.stop {
		stop()
	}
}
