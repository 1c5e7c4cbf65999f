package testbed

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// boundEtherType marks the frames of the bound (IEEE 802 local experimental 1).
const boundEtherType = 0x88b5

// boundSize is the size of the message that the bound passes on, in bytes: about
// what an update with one fault has.
const boundSize = 128

// RelayMain is the whole of `inofctl lab relay`, the bound beside fault-to-notice:
// it takes one TCP connection and passes every message of boundSize bytes on, by
// TCP (--dial) or as a raw frame out of an interface (--raw). It does what the
// daemons cannot do without, and nothing else.
func RelayMain(args []string) error {
	fs := flag.NewFlagSet("relay", flag.ContinueOnError)
	listen := fs.String("listen", "", "address to take the connection at")
	dial := fs.String("dial", "", "address to pass messages on to")
	raw := fs.String("raw", "", "interface to pass messages on as raw frames")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *listen == "" || (*dial == "") == (*raw == "") {
		return errors.New("relay: want --listen and one of --dial and --raw")
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	defer l.Close()
	var out io.Writer
	if *raw != "" {
		w, err := newRawWriter(*raw)
		if err != nil {
			return err
		}
		out = w
	} else {
		c, err := net.Dial("tcp", *dial)
		if err != nil {
			return err
		}
		defer c.Close()
		out = c
	}
	fmt.Fprintln(os.Stdout, "ready")
	in, err := l.Accept()
	if err != nil {
		return err
	}
	defer in.Close()
	buf := make([]byte, boundSize)
	for {
		if _, err := io.ReadFull(in, buf); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
}

// rawWriter puts messages on the wire as Ethernet frames.
type rawWriter struct {
	fd    int
	frame []byte
}

func newRawWriter(name string) (*rawWriter, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("raw socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifi.Index}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("raw socket at %s: %w", name, err)
	}
	head := fabric.AppendEthernet(nil, fabric.MACNTS, fabric.MAC(ifi.HardwareAddr), boundEtherType)
	return &rawWriter{fd: fd, frame: head}, nil
}

func (w *rawWriter) Write(b []byte) (int, error) {
	frame := append(w.frame[:fabric.EthernetHeaderLen], b...)
	w.frame = frame
	return unix.Write(w.fd, frame)
}
