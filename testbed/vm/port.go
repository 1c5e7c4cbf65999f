package vm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxFrame is the size of the largest frame that is passed on, in bytes: a jumbo frame
// of 65,535 bytes with its header and a VLAN tag.
const maxFrame = 65535 + 18

// port passes frames between an interface here and a card of the machine.
type port struct {
	ifi    *net.Interface
	device string      // what QEMU calls the card
	conn   net.Conn    // to the card: each frame behind its length, 4 bytes, big-endian
	raw    *os.File    // AF_PACKET
	up     atomic.Bool // the card has carrier
}

func openPort(name string, number int, conn net.Conn) (*port, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("port %s: %w", name, err)
	}
	// The machine speaks here, not this kernel.
	_ = os.WriteFile(filepath.Join("/proc/sys/net/ipv6/conf", name, "disable_ipv6"), []byte("1"), 0)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("port %s: raw socket: %w", name, err)
	}
	for _, o := range []int{unix.PACKET_IGNORE_OUTGOING, unix.PACKET_AUXDATA} {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, o, 1); err != nil {
			unix.Close(fd)
			return nil, fmt.Errorf("port %s: raw socket: %w", name, err)
		}
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20)
	all := uint16(unix.ETH_P_ALL)<<8 | uint16(unix.ETH_P_ALL)>>8 // network byte order
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifi.Index}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("port %s: raw socket: %w", name, err)
	}
	p := &port{ifi: ifi, device: fmt.Sprintf("card%d", number), conn: conn, raw: os.NewFile(uintptr(fd), name)}
	p.up.Store(true) // as QEMU starts it
	return p, nil
}

func (p *port) close() { p.raw.Close() }

// passing reports whether an error of the raw socket is about the link, which may come
// back, and not about the socket.
func passing(err error) bool {
	return errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EMSGSIZE)
}

// fromLink passes on what comes in here, until something ends.
func (p *port) fromLink() error {
	rc, err := p.raw.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 8+maxFrame) // room for the length and a tag before the frame
	oob := make([]byte, 64)
	for {
		var n, oobn int
		var rerr error
		if err := rc.Read(func(fd uintptr) bool {
			n, oobn, _, _, rerr = unix.Recvmsg(int(fd), buf[8:], oob, 0)
			return !errors.Is(rerr, unix.EAGAIN)
		}); err != nil {
			return err
		}
		switch {
		case rerr != nil && passing(rerr):
			continue
		case rerr != nil:
			return rerr
		case n < 14 || !p.up.Load():
			continue
		}
		frame := buf[8 : 8+n]
		if tag, ok := vlanTag(oob[:oobn]); ok { // the kernel took it out
			copy(buf[4:], frame[:12])
			frame = buf[4 : 8+n]
			copy(frame[12:], tag[:])
			// The length stands before the frame, wherever that begins.
			binary.BigEndian.PutUint32(buf[0:], uint32(len(frame)))
			if _, err := p.conn.Write(buf[:4+len(frame)]); err != nil {
				return err
			}
			continue
		}
		binary.BigEndian.PutUint32(buf[4:], uint32(n))
		if _, err := p.conn.Write(buf[4 : 8+n]); err != nil {
			return err
		}
	}
}

// vlanTag finds the VLAN tag that the kernel took out of a frame (packet(7),
// PACKET_AUXDATA).
func vlanTag(oob []byte) (tag [4]byte, ok bool) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return tag, false
	}
	for _, m := range msgs {
		if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA || len(m.Data) < int(unsafe.Sizeof(unix.TpacketAuxdata{})) {
			continue
		}
		aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0]))
		if aux.Status&unix.TP_STATUS_VLAN_VALID == 0 {
			return tag, false
		}
		tpid := uint16(unix.ETH_P_8021Q)
		if aux.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
			tpid = aux.Vlan_tpid
		}
		binary.BigEndian.PutUint16(tag[0:], tpid)
		binary.BigEndian.PutUint16(tag[2:], aux.Vlan_tci)
		return tag, true
	}
	return tag, false
}

// toLink passes on what the card sends, until something ends.
func (p *port) toLink() error {
	in := bufio.NewReaderSize(p.conn, 256<<10)
	frame := make([]byte, maxFrame)
	var head [4]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(head[:])
		if n > maxFrame {
			return fmt.Errorf("QEMU sends a frame of %d bytes, at most %d", n, maxFrame)
		}
		if _, err := io.ReadFull(in, frame[:n]); err != nil {
			return err
		}
		if _, err := p.raw.Write(frame[:n]); err != nil && !passing(err) {
			return err
		}
	}
}
