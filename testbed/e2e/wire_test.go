package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/labtest"
)

// tap sends and receives raw frames on an interface of a node.
type tap struct {
	t testing.TB
	s *linux.Socket
}

func (f *fab) wire(node, ifname string) *tap {
	f.t.Helper()
	w := &tap{t: f.t}
	err := f.lab.Do(node, func() (err error) {
		w.s, err = linux.OpenSocket(ifname, []uint16{fabric.EtherTypeLLDP, fabric.EtherTypeNTS}, []fabric.MAC{fabric.MACNearestBridge, fabric.MACNTS})
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { w.s.Close() })
	return w
}

func (w *tap) mac() fabric.MAC { return w.s.MAC() }

// send sends one frame; a full transmit queue is waited for.
func (w *tap) send(dst, src fabric.MAC, etherType uint16, payload []byte) {
	w.t.Helper()
	frame := append(fabric.AppendEthernet(nil, dst, src, etherType), payload...)
	labtest.Eventually(w.t, "the frame to leave", func() error {
		err := w.s.Send(frame)
		if err != nil && !errors.Is(err, fabric.ErrPortBusy) {
			w.t.Fatal(err)
		}
		return err
	})
}

func (w *tap) lldp(payload []byte) {
	w.t.Helper()
	w.send(fabric.MACNearestBridge, w.mac(), fabric.EtherTypeLLDP, payload)
}

func (w *tap) nts(payload []byte) {
	w.t.Helper()
	w.send(fabric.MACNTS, w.mac(), fabric.EtherTypeNTS, payload)
}

// next waits for the next frame of a type and gives its payload.
func (w *tap) next(etherType uint16) []byte {
	w.t.Helper()
	if err := w.s.SetDeadline(time.Now().Add(labtest.Patience)); err != nil {
		w.t.Fatal(err)
	}
	buf := make([]byte, 2000)
	for {
		n, _, err := w.s.Recv(buf)
		if err != nil {
			w.t.Fatalf("waiting for a frame of type %#04x: %v", etherType, err)
		}
		if n >= fabric.EthernetHeaderLen && uint16(buf[12])<<8|uint16(buf[13]) == etherType {
			return buf[fabric.EthernetHeaderLen:n]
		}
	}
}

// waiting counts the frames that have come in and were not read.
func (w *tap) waiting() (n int) {
	w.t.Helper()
	if err := w.s.SetDeadline(time.Now().Add(10 * time.Millisecond)); err != nil { // a past one reads nothing
		w.t.Fatal(err)
	}
	buf := make([]byte, 2000)
	for {
		_, _, err := w.s.Recv(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return n
		}
		if err != nil {
			w.t.Fatal(err)
		}
		n++
	}
}

// registration is the LLDPDU by which a host registers the n-th address of a port.
func (w *tap) registration(addr string, n int, ttl uint16, change ...func(*snsd.Registration)) []byte {
	w.t.Helper()
	return registrationOf(w.t, w.mac(), addr, n, ttl, change...)
}

func registrationOf(t testing.TB, mac fabric.MAC, addr string, n int, ttl uint16, change ...func(*snsd.Registration)) []byte {
	t.Helper()
	r := snsd.Registration{Addr: netip.MustParseAddr(addr), ProtoVer: snsd.DefaultProtoVer,
		Service: snsd.Service{Role: snsd.RoleInitiator, Protocol: snsd.ProtocolRoCE}}
	for _, c := range change {
		c(&r)
	}
	b, err := snsd.AppendRegistrationPDU(nil, &snsd.RegistrationPDU{MAC: mac, PortID: fmt.Sprintf("snsd_eth1_%02d", n), TTL: ttl, Registration: r})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// handled waits until tor1 has dealt with every frame that came in on a port: n more
// than the given ones. Those the kernel dropped in between count.
func (f *fab) handled(port string, before, n uint64) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("%d frames on %s to be handled", n, port), func() error {
		if got := f.framesOn(port) - before; got < n {
			return fmt.Errorf("%d are", got)
		}
		return nil
	})
}

func (f *fab) framesOn(port string) (n uint64) {
	f.t.Helper()
	for _, c := range []string{"lldp", "nts", "overlong", "dropped", "errors"} {
		n += f.counter("tor1", "dataplane.ports."+port+"."+c)
	}
	return n
}
