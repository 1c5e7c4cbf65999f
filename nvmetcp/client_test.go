package nvmetcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// controller is a discovery controller for tests. answer may replace any answer.
type controller struct {
	d       digests
	log     []byte
	align   byte                                                   // CPDA
	answer  func(n int, p pdu, w io.Writer) (done bool, err error) // n counts what the host sent
	change  func(reads int, log []byte)                            // before each read of the log
	reads   int
	control uint64 // CC
}

func (c *controller) serve(conn net.Conn) error {
	defer conn.Close()
	for n := 0; ; n++ {
		head := make([]byte, commonLen)
		if _, err := io.ReadFull(conn, head); err != nil {
			return err
		}
		size, err := pduSize(head)
		if err != nil {
			return err
		}
		b := append(head, make([]byte, size-commonLen)...)
		if _, err := io.ReadFull(conn, b[commonLen:]); err != nil {
			return err
		}
		p, err := decode(b, c.d)
		if err != nil {
			return err
		}
		if c.answer != nil {
			if done, err := c.answer(n, p, conn); done || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		if _, err := conn.Write(c.reply(p)); err != nil {
			return err
		}
	}
}

func (c *controller) reply(p pdu) []byte {
	if p.kind == pduICReq {
		r := &pdu{kind: pduICResp, header: bytes.Clone(p.header)}
		r.header[10] = c.align
		binary.LittleEndian.PutUint32(r.header[12:], 8192)
		return r.encode(nil, c.d, 4)
	}
	sqe := p.header[commonLen:]
	id := binary.LittleEndian.Uint16(sqe[2:])
	switch {
	case sqe[0] == opFabrics && sqe[4] == fabricsConnect:
		if !strings.HasPrefix(string(p.data[256:]), DiscoveryNQN) {
			return c.done(id, 1<<16|256, 1<<8|0x82)
		}
		return c.done(id, 7, 0)
	case sqe[0] == opFabrics && sqe[4] == fabricsPropertyGet && sqe[44] == propCAP:
		return c.done(id, 0x200f01007f, 0)
	case sqe[0] == opFabrics && sqe[4] == fabricsPropertyGet && sqe[44] == propCSTS:
		return c.done(id, c.control&1, 0)
	case sqe[0] == opFabrics && sqe[4] == fabricsPropertySet:
		c.control = binary.LittleEndian.Uint64(sqe[48:])
		return c.done(id, 0, 0)
	case sqe[0] == opKeepAlive:
		return c.done(id, 0, 0)
	case sqe[0] == opGetLogPage && sqe[40] == logDiscovery:
		if c.reads++; c.change != nil {
			c.change(c.reads, c.log)
		}
		n, at := (int(binary.LittleEndian.Uint16(sqe[42:]))+1)*4, int(binary.LittleEndian.Uint64(sqe[48:]))
		data := make([]byte, n)
		if at < len(c.log) {
			copy(data, c.log[at:])
		}
		return append(c.data(id, 0, data, flagLastData), c.done(id, 0, 0)...)
	}
	return c.done(id, 0, 1)
}

func (c *controller) data(id uint16, offset int, b []byte, flags uint8) []byte {
	r := &pdu{kind: pduC2HData, flags: flags, header: make([]byte, 24), data: b}
	binary.LittleEndian.PutUint16(r.header[8:], id)
	binary.LittleEndian.PutUint32(r.header[12:], uint32(offset))
	binary.LittleEndian.PutUint32(r.header[16:], uint32(len(b)))
	return r.encode(nil, c.d, 4)
}

func (c *controller) done(id uint16, result uint64, status uint16) []byte {
	r := &pdu{kind: pduCapsuleResp, header: make([]byte, 24)}
	binary.LittleEndian.PutUint64(r.header[8:], result)
	binary.LittleEndian.PutUint16(r.header[20:], id)
	binary.LittleEndian.PutUint16(r.header[22:], status<<1)
	return r.encode(nil, c.d, 4)
}

var testHost = Host{NQN: "nqn.2014-08.org.nvmexpress:uuid:1b4e28ba-2fa1-11d2-883f-0016d3cca427", ID: [16]byte{1}}

// testLog makes a log of n subsystems.
func testLog(generation uint64, n int) []byte {
	b := make([]byte, logHeader+n*entryLen)
	binary.LittleEndian.PutUint64(b, generation)
	binary.LittleEndian.PutUint64(b[8:], uint64(n))
	for i := range n {
		e := b[logHeader+i*entryLen:]
		e[0], e[1], e[2] = byte(TCP), 1, byte(Subsystem)
		copy(e[32:64], "4420"+strings.Repeat(" ", 28))
		copy(e[256:], "nqn.2026-01.net.example:s"+string(rune('a'+i%26)))
		copy(e[512:768], "192.0.2.1"+strings.Repeat(" ", 247))
	}
	return b
}

func openTest(t *testing.T, c *controller, o Options) (*Conn, error) {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.serve(far) }()
	t.Cleanup(func() { near.Close(); <-ended })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return Open(ctx, near, testHost, o)
}

func TestLogIsRead(t *testing.T) {
	for _, d := range []digests{{}, {header: true}, {data: true}, {header: true, data: true}} {
		for _, n := range []int{0, 1, 4, 5, 200} {
			c := &controller{d: d, log: testLog(5, n), align: 3}
			conn, err := openTest(t, c, Options{HeaderDigest: d.header, DataDigest: d.data})
			if err != nil {
				t.Fatal(err)
			}
			log, err := conn.Log(t.Context())
			if err != nil || len(log.Entries) != n || log.Generation != 5 || log.Refused != 0 {
				t.Fatalf("%+v, %d entries: %+v, %v", d, n, log, err)
			}
			if n > 4 {
				want := Entry{Transport: TCP, Kind: Subsystem, NQN: "nqn.2026-01.net.example:se", Addr: netip.MustParseAddr("192.0.2.1"), Port: 4420}
				if log.Entries[4] != want {
					t.Errorf("entry %+v, want %+v", log.Entries[4], want)
				}
			}
			if err := conn.KeepAlive(t.Context()); err != nil {
				t.Error(err)
			}
			if err := conn.Close(); err != nil || c.control>>14&3 != 1 {
				t.Errorf("closed with %v, CC %#x", err, c.control)
			}
		}
	}
}

// The kernel's own target, as captured, answers our client.
func TestKernelLogThroughTheClient(t *testing.T) {
	log := kernelLog(t, "nvmet-discovery.pcap", digests{})
	conn, err := openTest(t, &controller{log: log}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := conn.Log(t.Context())
	if err != nil || len(got.Entries) == 0 || got.Refused > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
}

// A log that changes while it is read is read again; one that never rests is an error.
func TestChangingLogIsReadAgain(t *testing.T) {
	grow := func(until int) func(int, []byte) {
		return func(reads int, log []byte) {
			if reads <= until {
				binary.LittleEndian.PutUint64(log, uint64(reads))
			}
		}
	}
	conn, err := openTest(t, &controller{log: testLog(1, 3), change: grow(5)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if log, err := conn.Log(t.Context()); err != nil || log.Generation != 5 {
		t.Errorf("%+v, %v", log, err)
	}
	if conn, err = openTest(t, &controller{log: testLog(1, 3), change: grow(1 << 20)}, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Log(t.Context()); err == nil || !strings.Contains(err.Error(), "changed ten times") {
		t.Errorf("got %v", err)
	}
}

// One record that makes no sense does not hide the others.
func TestBadRecordsAreCounted(t *testing.T) {
	log := testLog(1, 4)
	copy(log[logHeader+entryLen+512:], "not an address")
	clear(log[logHeader+2*entryLen+256:][:256])
	conn, err := openTest(t, &controller{log: log}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := conn.Log(t.Context()); err != nil || len(got.Entries) != 2 || got.Refused != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Whatever a controller does wrong is an error that says what.
func TestBadControllers(t *testing.T) {
	replace := func(at int, answer func(c *controller, id uint16, w io.Writer) error) func(*controller) {
		return func(c *controller) {
			c.answer = func(n int, p pdu, w io.Writer) (bool, error) {
				if n != at {
					return false, nil
				}
				return true, answer(c, binary.LittleEndian.Uint16(p.header[commonLen+2:]), w)
			}
		}
	}
	write := func(f func(c *controller, id uint16) []byte) func(*controller, uint16, io.Writer) error {
		return func(c *controller, id uint16, w io.Writer) error {
			_, err := w.Write(f(c, id))
			return err
		}
	}
	raw := func(b ...byte) func(*controller, uint16) []byte {
		return func(*controller, uint16) []byte { return append(b, make([]byte, max(0, 128-len(b)))...) }
	}
	// The host sends: 0 ICReq, 1 Connect, 2 Get CAP, 3 Set CC, 4 Get CSTS, 5 the log's header, 6
	// its records.
	for _, c := range []struct {
		name string
		set  func(*controller)
		want string
	}{
		{"another protocol", replace(0, write(raw([]byte("HTTP/1.1 400 Bad Request\r\n")...))), "PDU type 0x48"},
		{"wrong header length", replace(0, write(raw(1, 0, 64, 0, 128))), "ICResp: HLEN is 64"},
		{"length beyond all", replace(0, write(raw(1, 0, 128, 0, 0xff, 0xff, 0xff, 0xff))), "ICResp: PLEN is 4294967295"},
		{"other version", replace(0, write(raw(1, 0, 128, 0, 128, 0, 0, 0, 1, 0))), "ICResp: PFV is 1"},
		{"digests that were not asked for", replace(0, write(raw(1, 0, 128, 0, 128, 0, 0, 0, 0, 0, 0, 3))), "ICResp: DGST is 3"},
		{"alignment beyond all", replace(0, write(raw(1, 0, 128, 0, 128, 0, 0, 0, 0, 0, 99))), "ICResp: CPDA is 99"},
		{"an end", replace(1, func(_ *controller, _ uint16, w io.Writer) error { return io.EOF }), "Connect: nvme/tcp: unexpected EOF"},
		{"termination", replace(1, write(func(c *controller, _ uint16) []byte {
			p := &pdu{kind: pduC2HTerm, header: make([]byte, 24)}
			p.header[8], p.header[10] = 1, 4
			return p.encode(nil, digests{}, 4)
		})), "bad header field (FES 1, FEI 4)"},
		{"host not allowed", replace(1, write(func(c *controller, id uint16) []byte { return c.done(id, 0, 1<<8|0x84|1<<14) })), "Connect refused with status type 1 code 0x84: host not allowed"},
		{"authentication", replace(1, write(func(c *controller, id uint16) []byte { return c.done(id, 1<<17|1, 0) })), "wants authentication"},
		{"another command's answer", replace(2, write(func(c *controller, id uint16) []byte { return c.done(id+1, 0, 0) })), "CapsuleResp: CID is 3 (0x3), want 2"},
		{"fatal", replace(4, write(func(c *controller, id uint16) []byte { return c.done(id, 2, 0) })), "fatal error (CSTS.CFS)"},
		{"never ready", func(c *controller) {
			c.answer = func(n int, p pdu, w io.Writer) (bool, error) {
				if n < 4 {
					return false, nil
				}
				_, err := w.Write(c.done(binary.LittleEndian.Uint16(p.header[commonLen+2:]), 0, 0))
				return true, err
			}
		}, "does not become ready"},
		{"data for a command without", replace(2, write(func(c *controller, id uint16) []byte { return c.data(id, 0, []byte{1, 2, 3, 4}, flagLastData) })), "C2HData: DATAL is 4 (0x4), want at most 0"},
		{"too much data", replace(5, write(func(c *controller, id uint16) []byte { return c.data(id, 0, make([]byte, 2048), flagLastData) })), "C2HData: DATAL is 2048"},
		{"data with a gap", replace(5, write(func(c *controller, id uint16) []byte { return c.data(id, 512, make([]byte, 512), 0) })), "C2HData: DATAO is 512 (0x200), want 0"},
		{"half of the data", replace(5, write(func(c *controller, id uint16) []byte {
			return append(c.data(id, 0, make([]byte, 512), flagLastData), c.done(id, 0, 0)...)
		})), "data is 512"},
		{"too many records", func(c *controller) { binary.LittleEndian.PutUint64(c.log[8:], 1<<40) }, "records, at most 4096"},
		{"another record format", func(c *controller) { c.log[16] = 1 }, "record format 1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctl := &controller{log: testLog(1, 2)}
			c.set(ctl)
			conn, err := openTest(t, ctl, Options{})
			if err == nil {
				_, err = conn.Log(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v\nwant %s", c.name, err, c.want)
			}
		})
	}
}

func TestBadDigestsAreRefused(t *testing.T) {
	for _, at := range []int{-1, -5} { // the data digest, the last byte of the data
		c := &controller{d: digests{header: true, data: true}, log: testLog(1, 1)}
		c.answer = func(n int, p pdu, w io.Writer) (bool, error) {
			if n != 5 {
				return false, nil
			}
			b := c.data(binary.LittleEndian.Uint16(p.header[commonLen+2:]), 0, make([]byte, logHeader), flagLastData)
			b[len(b)+at] ^= 1
			_, err := w.Write(b)
			return true, err
		}
		conn, err := openTest(t, c, Options{HeaderDigest: true, DataDigest: true})
		if err != nil {
			t.Fatal(err)
		}
		var broken *ProtocolError
		if _, err := conn.Log(t.Context()); !errors.As(err, &broken) || broken.Field != "data digest" {
			t.Errorf("got %v", err)
		}
	}
}

// A controller that says nothing is left when the caller's time is over.
func TestSilentController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		go io.Copy(io.Discard, far)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := Open(ctx, near, testHost, Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// The CRC of RFC 3720 appendix B.4, and the capsule of a Linux host as captured.
func TestDigest(t *testing.T) {
	if got := digest([]byte("123456789")); got != 0xe3069283 {
		t.Errorf("%#x", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(icReq(digests{}).encode(nil, digests{}, 4), false, false)
	c := &controller{d: digests{true, true}}
	f.Add(c.data(1, 0, []byte("data"), flagSuccess), true, true)
	f.Add(c.done(1, 0, 0), true, false)
	f.Fuzz(func(t *testing.T, b []byte, header, data bool) {
		if len(b) < commonLen {
			return
		}
		n, err := pduSize(b)
		if err != nil || n > len(b) {
			return
		}
		p, err := decode(b[:n], digests{header, data})
		if err == nil && len(p.header)+len(p.data) > n {
			t.Fatalf("%d bytes of %d", len(p.header)+len(p.data), n)
		}
	})
}

// No answer of a controller makes the client hang, panic or take what it did not ask for.
func FuzzClient(f *testing.F) {
	c := &controller{log: testLog(1, 2)}
	ic := c.reply(pdu{kind: pduICReq, header: icReq(digests{}).header})
	good := append(append(append(append(bytes.Clone(ic), c.done(1, 7, 0)...), c.done(2, 0x200f01007f, 0)...), c.done(3, 0, 0)...), c.done(4, 1, 0)...)
	good = append(append(good, c.data(5, 0, c.log[:logHeader], flagSuccess)...), c.data(6, 0, c.log[logHeader:], flagSuccess)...)
	f.Add(append(good, c.data(7, 0, c.log[:logHeader], flagSuccess)...))
	f.Add(ic)
	f.Fuzz(func(t *testing.T, b []byte) {
		near, far := net.Pipe()
		go io.Copy(io.Discard, far)
		go func() { _, _ = far.Write(b); far.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		conn, err := Open(ctx, near, testHost, Options{})
		if err != nil {
			return
		}
		defer conn.Close()
		if log, err := conn.Log(ctx); err == nil && len(log.Entries)+log.Refused > MaxEntries {
			t.Fatalf("%d entries", len(log.Entries))
		}
	})
}
