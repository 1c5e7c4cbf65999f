package nvmetcp

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"os"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// stream is what one side of a TCP connection of a capture sent.
type stream struct {
	toController bool
	data         []byte
}

// streams reads the TCP connections of a capture, whose segments are in order.
func streams(t *testing.T, file string) []stream {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	type key struct {
		net  gopacket.Flow
		port gopacket.Flow
	}
	var order []key
	have, next := map[key][]byte{}, map[key]uint32{}
	for {
		data, _, err := r.ReadPacketData()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		p := gopacket.NewPacket(data, r.LinkType(), gopacket.Default)
		tcp, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if !ok {
			continue
		}
		k := key{p.NetworkLayer().NetworkFlow(), tcp.TransportFlow()}
		if tcp.SYN {
			order, next[k] = append(order, k), tcp.Seq+1
			continue
		}
		if tcp.Seq == next[k] {
			have[k] = append(have[k], tcp.Payload...)
			next[k] += uint32(len(tcp.Payload))
		}
	}
	var out []stream
	for _, k := range order {
		out = append(out, stream{binary.BigEndian.Uint16(k.port.Dst().Raw()) == DiscoveryPort, have[k]})
	}
	return out
}

// pdus cuts a stream into PDUs.
func pdus(t *testing.T, b []byte, d digests) (out []pdu) {
	t.Helper()
	for len(b) >= commonLen {
		n, err := pduSize(b)
		if err != nil || n > len(b) {
			t.Fatalf("PDU %d of %d bytes, %d left: %v", len(out), n, len(b), err)
		}
		p, err := decode(b[:n], d)
		if err != nil {
			t.Fatalf("PDU %d: %v", len(out), err)
		}
		out, b = append(out, p), b[n:]
	}
	return out
}

var captures = []struct {
	file string
	d    digests
}{{"nvmet-discovery.pcap", digests{}}, {"nvmet-discovery-digest.pcap", digests{header: true, data: true}}}

// Every PDU of the Linux kernel, host and controller, is read, and written again byte for byte.
func TestKernelPDUsAreReadAndWritten(t *testing.T) {
	for _, c := range captures {
		n := 0
		for _, s := range streams(t, c.file) {
			rest := s.data
			for _, p := range pdus(t, s.data, c.d) {
				n++
				size, _ := pduSize(rest)
				again := p
				again.header, again.flags = bytes.Clone(p.header), p.flags&^(flagHeaderDigest|flagDataDigest)
				if got := again.encode(nil, c.d, 4); !bytes.Equal(got, rest[:size]) {
					t.Errorf("%s: %v\n got %x\nwant %x", c.file, p.kind, got, rest[:size])
				}
				rest = rest[size:]
			}
		}
		if n < 30 {
			t.Errorf("%s: %d PDUs", c.file, n)
		}
	}
}

// What we send is what the kernel sends in the same place: the commands differ in nothing.
func TestCommandsAreTheKernels(t *testing.T) {
	for _, c := range captures {
		var host *Host
		seen := map[string]int{}
		for _, s := range streams(t, c.file) {
			if !s.toController {
				continue
			}
			for _, p := range pdus(t, s.data, c.d) {
				if p.kind == pduICReq {
					if want := icReq(c.d).encode(nil, digests{}, 4); !bytes.Equal(p.header, want) {
						t.Errorf("ICReq %x, kernel %x", want, p.header)
					}
					continue
				}
				sqe := p.header[commonLen:]
				var ours *command
				switch {
				case sqe[0] == opFabrics && sqe[4] == fabricsConnect:
					host = &Host{NQN: string(bytes.TrimRight(p.data[512:768], "\x00"))}
					copy(host.ID[:], p.data)
					ours = connect(*host, string(bytes.TrimRight(p.data[256:512], "\x00")), binary.LittleEndian.Uint32(sqe[48:]))
					if !bytes.Equal(ours.data, p.data) {
						t.Errorf("Connect's data differ:\n got %x\nwant %x", ours.data, p.data)
					}
				case sqe[0] == opFabrics && sqe[4] == fabricsPropertyGet:
					ours = propertyGet(binary.LittleEndian.Uint32(sqe[44:]), sqe[40] == 1)
				case sqe[0] == opFabrics && sqe[4] == fabricsPropertySet:
					ours = propertySet(binary.LittleEndian.Uint32(sqe[44:]), binary.LittleEndian.Uint64(sqe[48:]))
				case sqe[0] == opGetLogPage:
					n := (int(binary.LittleEndian.Uint16(sqe[42:])) + 1) * 4
					ours = getLog(sqe[40], binary.LittleEndian.Uint64(sqe[48:]), n, sqe[41]&0x80 != 0)
				case sqe[0] == opKeepAlive:
					ours = keepAlive()
				default:
					continue
				}
				seen[ours.name]++
				got := ours.capsule(binary.LittleEndian.Uint16(sqe[2:])).header[commonLen:]
				// The kernel gives the address of its own memory, and a key for it; over TCP they
				// mean nothing. Its log page command names all namespaces.
				kernel := bytes.Clone(sqe)
				clear(kernel[24:32])
				if sqe[0] == opGetLogPage {
					clear(kernel[4:8])
				}
				if !bytes.Equal(got, kernel) {
					t.Errorf("%s:\n got %x\nwant %x", ours.name, got, kernel)
				}
			}
		}
		for _, name := range []string{"Connect", "Property Get", "Property Set", "Get Log Page"} {
			if seen[name] == 0 {
				t.Errorf("%s has no %s", c.file, name)
			}
		}
	}
}

// kernelLog gives the longest discovery log that a controller of a capture sent.
func kernelLog(t *testing.T, file string, d digests) (log []byte) {
	t.Helper()
	for _, s := range streams(t, file) {
		if s.toController {
			continue
		}
		for _, p := range pdus(t, s.data, d) {
			if p.kind == pduC2HData && len(p.data) > len(log) && len(p.data)%1024 == 0 && len(p.data) != 4096 {
				log = bytes.Clone(p.data)
			}
		}
	}
	return log
}

// The log of the kernel's target is read as nvme-cli shows it.
func TestKernelLogIsRead(t *testing.T) {
	log := kernelLog(t, "nvmet-discovery.pcap", digests{})
	_, n, err := parseLogHeader(log)
	if err != nil || n == 0 || len(log) != logHeader+n*entryLen {
		t.Fatalf("%d records in %d bytes, %v", n, len(log), err)
	}
	kinds := map[Kind]int{}
	for i := range n {
		e, err := parseEntry(log[logHeader+i*entryLen:][:entryLen])
		if err != nil {
			t.Fatal(err)
		}
		kinds[e.Kind]++
		if e.Transport != TCP || e.Port == 0 || e.NQN == "" || e.Addr == (netip.Addr{}) {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	if kinds[Subsystem] == 0 || kinds[Itself] == 0 {
		t.Errorf("kinds %v", kinds)
	}
}
