package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/testbed/labtest"
)

// intruderFabric is the fabric with a machine that can reach the reflector.
func intruderFabric(t *testing.T, name string) *fab {
	f := newFabric(t, spec{
		name:  name,
		nodes: "    intruder: {kind: linux, exec: [ip addr add 10.1.3.1/31 dev eth1, ip route add 10.0.0.1/32 via 10.1.3.0]}\n",
		links: "    - endpoints: [\"spine:eth3\", \"intruder:eth1\"]\n",
	})
	f.run("spine", "ip", "addr", "add", "10.1.3.0/31", "dev", "eth3")
	return f
}

// dial connects from the intruder to the reflector's port.
func (f *fab) dial() net.Conn {
	f.t.Helper()
	var c net.Conn
	err := f.lab.Do("intruder", func() (err error) {
		c, err = net.DialTimeout("tcp4", fmt.Sprintf("%s:%d", spineID, wire.DefaultPort), labtest.Patience)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(labtest.Patience)); err != nil {
		f.t.Fatal(err)
	}
	return c
}

// answer reads what the reflector says until it closes the connection.
func answer(t testing.TB, c net.Conn) []byte {
	t.Helper()
	b, err := io.ReadAll(c)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatalf("the connection is not closed; so far it said %q", b)
	}
	return b
}

// sessionConfig is what a client with the right password would begin with.
func sessionConfig(device string) link.SessionConfig {
	c := link.SessionConfig{Self: netip.MustParseAddr(device), Dialer: true, Roles: wire.RoleClient, Epoch: 1,
		Auth: link.Auth{Mode: wire.AuthHMAC, Passwords: []link.Password{goodKey()}}}
	_, _ = rand.Read(c.Nonce[:])
	return c
}

// goodKey is the password as sessions use it.
var goodKey = sync.OnceValue(func() link.Password {
	p, err := link.NewPassword([]byte(goodPassword))
	if err != nil {
		panic(err)
	}
	return p
})

// openOf gives the Open of a client, changed in one way.
func openOf(t testing.TB, change func(*link.SessionConfig)) []byte {
	t.Helper()
	c := sessionConfig("10.0.0.99")
	if change != nil {
		change(&c)
	}
	s, err := link.NewSession(c, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Start(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TLVs of an Open whose values the tests change (docs/protocol.md, "Open").
const (
	tlvVersions = 2
	tlvTimers   = 5
)

// withTLV gives an Open in which the value of a TLV begins with other bytes.
func withTLV(t testing.TB, open []byte, typ byte, value ...byte) []byte {
	t.Helper()
	b := bytes.Clone(open)
	for at := wire.HeaderLen; at+4 <= len(b); {
		n := int(b[at+1])<<16 | int(b[at+2])<<8 | int(b[at+3])
		if b[at] == typ {
			copy(b[at+4:at+4+n], value)
			return b
		}
		at += 4 + n
	}
	t.Fatalf("the Open has no TLV %d", typ)
	return nil
}

// header is a bare message header.
func header(length uint32, version, typ byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, length)
	return append(b, version, typ, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
}

// rogue is a client that knows the password and does as it likes.
type rogue struct {
	t    testing.TB
	c    net.Conn
	sess *link.Session
}

// rogue establishes a session as some device.
func (f *fab) rogue(device string) *rogue {
	f.t.Helper()
	r, err := f.tryRogue(device)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// rogueRefused gives the reason why a session as some device is refused.
func (f *fab) rogueRefused(device string) error {
	f.t.Helper()
	_, err := f.tryRogue(device)
	return err
}

func (f *fab) tryRogue(device string) (*rogue, error) {
	f.t.Helper()
	s, err := link.NewSession(sessionConfig(device), time.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	r := &rogue{t: f.t, c: f.dial(), sess: s}
	out, err := s.Start(nil, time.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	r.write(out)
	for state, _ := s.State(); state != link.StateEstablished; state, _ = s.State() {
		if err := r.read(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *rogue) write(b []byte) {
	r.t.Helper()
	if _, err := r.c.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

// read takes one message and answers as the session asks for.
func (r *rogue) read() error {
	r.t.Helper()
	frame, err := readMessage(r.c)
	if err != nil {
		return err
	}
	_, out, err := r.sess.Receive(frame, nil, time.Now())
	if err == nil && len(out) > 0 {
		r.write(out)
	}
	return err
}

// send seals and sends a message.
func (r *rogue) send(m wire.Message) []byte {
	r.t.Helper()
	e, err := wire.Encode(m)
	if err != nil {
		r.t.Fatal(err)
	}
	b := r.sess.Seal(nil, e, time.Now())
	r.write(b)
	return b
}

func readMessage(c net.Conn) ([]byte, error) {
	b := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(b))
	b = append(b, make([]byte, max(0, n-len(b)))...)
	_, err := io.ReadFull(c, b[wire.HeaderLen:])
	return b, err
}
