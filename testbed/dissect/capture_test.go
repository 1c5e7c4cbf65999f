package dissect

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/openinof/inof/inof/wire"
)

var (
	macA = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x0a}
	macB = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x0b}
)

// capture is a capture file that is being written.
type capture struct {
	t       testing.TB
	file    string
	f       *os.File
	w       *pcapgo.Writer
	at      time.Time
	packets int
	cut     int // bytes kept of each packet; 0: all
	streams int
}

func newCapture(t testing.TB) *capture {
	t.Helper()
	c := &capture{t: t, file: filepath.Join(t.TempDir(), "test.pcap"), at: time.Unix(1_800_000_000, 0)}
	var err error
	if c.f, err = os.Create(c.file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.f.Close() })
	c.w = pcapgo.NewWriterNanos(c.f)
	if err := c.w.WriteFileHeader(262144, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	return c
}

// frame writes one frame, a millisecond after the one before.
func (c *capture) frame(data []byte) {
	c.t.Helper()
	c.packets++
	c.at = c.at.Add(time.Millisecond)
	whole := len(data)
	if c.cut > 0 {
		data = data[:min(c.cut, whole)]
	}
	if err := c.w.WritePacket(gopacket.CaptureInfo{Timestamp: c.at, CaptureLength: len(data), Length: whole}, data); err != nil {
		c.t.Fatal(err)
	}
}

// stream is a TCP connection of a client with a reflector.
type stream struct {
	c    *capture
	ends [2]netip.AddrPort // client, reflector
	seq  [2]uint32
}

const (
	fromClient    = 0
	fromReflector = 1
)

// stream begins a connection, over IPv6 every other time.
func (c *capture) stream() *stream {
	c.streams++
	s := &stream{c: c, seq: [2]uint32{1000, 5000}}
	client, reflector := "10.0.0.11", "10.0.0.1"
	if c.streams%2 == 0 {
		client, reflector = "2001:db8::11", "2001:db8::1"
	}
	s.ends[fromClient] = netip.AddrPortFrom(netip.MustParseAddr(client), uint16(20000+c.streams))
	s.ends[fromReflector] = netip.AddrPortFrom(netip.MustParseAddr(reflector), wire.DefaultPort)
	s.segment(fromClient, nil, func(t *layers.TCP) { t.SYN, t.ACK = true, false })
	s.seq[fromClient]++
	s.segment(fromReflector, nil, func(t *layers.TCP) { t.SYN = true })
	s.seq[fromReflector]++
	s.segment(fromClient, nil, func(*layers.TCP) {})
	return s
}

// send writes one segment.
func (s *stream) send(from int, payload []byte) {
	s.segment(from, payload, func(t *layers.TCP) { t.PSH = true })
	s.seq[from] += uint32(len(payload))
}

// sendIn writes segments of at most size bytes.
func (s *stream) sendIn(from, size int, payload []byte) {
	for len(payload) > 0 {
		n := min(size, len(payload))
		s.send(from, payload[:n])
		payload = payload[n:]
	}
}

func (s *stream) segment(from int, payload []byte, set func(*layers.TCP)) {
	s.c.t.Helper()
	src, dst := s.ends[from], s.ends[1-from]
	eth := &layers.Ethernet{SrcMAC: macA, DstMAC: macB, EthernetType: layers.EthernetTypeIPv4}
	tcp := &layers.TCP{SrcPort: layers.TCPPort(src.Port()), DstPort: layers.TCPPort(dst.Port()), Seq: s.seq[from], Ack: s.seq[1-from], ACK: true, Window: 65535}
	set(tcp)
	var ip interface {
		gopacket.SerializableLayer
		gopacket.NetworkLayer
	}
	if src.Addr().Is4() {
		ip = &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip = &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP, SrcIP: src.Addr().AsSlice(), DstIP: dst.Addr().AsSlice()}
	}
	if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
		s.c.t.Fatal(err)
	}
	b := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(b, opts, eth, ip, tcp, gopacket.Payload(payload)); err != nil {
		s.c.t.Fatal(err)
	}
	s.c.frame(b.Bytes())
}
