package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Whoever connects to the reflector and speaks something else is told why and cut
// off; the log names him and the value, a counter counts.
func TestThoseWhoSpeakAnotherProtocolAreCutOff(t *testing.T) {
	t.Parallel()
	f := intruderFabric(t, "strangers")
	since := f.marks("t1", "i1", "i2")
	rnd := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 4096)
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	random[0] = 0xa5
	short := bytes.Clone(random)
	short[0] = 0 // as a length of ours begins
	say := func(b []byte) func(net.Conn) {
		return func(c net.Conn) { _, _ = c.Write(b) }
	}
	good := openOf(t, nil)
	for _, c := range []struct {
		name    string
		speak   func(net.Conn)
		counter string
		words   []string
	}{
		{"random bytes", say(random), "not_inof", []string{"not iNOF", "another protocol", "a5"}},
		{"one byte", say([]byte("Q")), "handshake_timeouts", []string{"handshake timeout", "state Connect after 1s"}},
		{"HTTP", say([]byte("GET / HTTP/1.1\r\nHost: reflector\r\n\r\n")), "not_inof", []string{"not iNOF", "HTTP"}},
		{"TLS", func(c net.Conn) { _ = tls.Client(c, &tls.Config{ServerName: "reflector"}).Handshake() }, "not_inof", []string{"not iNOF", "TLS"}},
		{"SSH", say([]byte("SSH-2.0-OpenSSH_9.9\r\n")), "not_inof", []string{"not iNOF", "SSH"}},
		{"an old version", say(header(16, 0, 1)), "bad_version", []string{"unsupported version", "in version 0", "speaks version 2"}},
		{"a newer version", say(header(16, 9, 1)), "bad_version", []string{"unsupported version", "in version 9", "speaks version 2"}},
		{"an Open of newer versions", say(withTLV(t, good, tlvVersions, 3, 4)), "bad_version", []string{"unsupported version", "3..4, want 2"}},
		{"random bytes behind a zero", say(short), "bad_version", []string{"unsupported version"}},
		{"a short length", say(header(8, 2, 1)), "bad_length", []string{"bad length", "length 8, want 16..4096"}},
		{"a huge length", say(header(1<<24-1, 2, 1)), "bad_length", []string{"bad length", "length 16777215, want 16..4096"}},
		{"an unknown type", say(header(16, 2, 99)), "bad_type", []string{"unknown message type", "type 99"}},
		{"a Keepalive first", say(header(16, 2, 2)), "unexpected_messages", []string{"unexpected message", "Keepalive", "state Connect"}},
		{"an Open of nothing", say(header(16, 2, 1)), "malformed", []string{"malformed", "TLV type 1 is missing"}},
		{"half an Open", func(c net.Conn) { _, _ = c.Write(good[:40]); _ = c.(*net.TCPConn).CloseWrite() }, "accepted", []string{"was closed", "EOF"}},
		{"our own device id", say(openOf(t, func(c *link.SessionConfig) { c.Self = netip.MustParseAddr(spineID) })), "bad_device", []string{"own device id", spineID}},
		{"another reflector", say(openOf(t, func(c *link.SessionConfig) { c.Roles = wire.RoleReflector })), "bad_device", []string{"roles do not fit", "reflector, want client"}},
		{"a hold time of 1 ms", say(withTLV(t, good, tlvTimers, 0, 0, 0, 1)), "bad_timers", []string{"unacceptable timers", "1ms, want 300ms..1h"}},
		{"no authentication", say(openOf(t, func(c *link.SessionConfig) { c.Auth = link.Auth{Mode: wire.AuthNone} })), "auth_mode_mismatch", []string{"authentication mode mismatch", "hmac-sha256", "none"}},
		{"silence", func(net.Conn) {}, "handshake_timeouts", []string{"handshake timeout", "after 1s"}},
	} {
		counter := "inof_server_1." + c.counter
		before := f.counter("spine", counter)
		nc := f.dial()
		from := nc.LocalAddr().String()
		c.speak(nc)
		said := answer(t, nc)
		// A whole Open cut off is the only thing that gets no answer: nobody listens any more.
		if c.counter != "accepted" && c.name != "TLS" && !bytes.Contains(said, []byte(c.words[len(c.words)-1])) && !strings.Contains(c.name, "random") {
			t.Errorf("%s: it was answered %q, want %q in it", c.name, said, c.words)
		}
		f.logLine("spine", append(c.words, "session ended", from)...)
		if n := f.counter("spine", counter); n != before+1 {
			t.Errorf("%s: counter %s went from %d to %d", c.name, counter, before, n)
		}
	}
	f.stillTells()
	f.quietButTarget(since)
}

// A flood of connections that say nothing keeps nobody out.
func TestAFloodOfConnectionsKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	f := intruderFabric(t, "flood")
	since := f.marks("t1", "i1", "i2")
	const flood = 700 // more than twice of what may be pending
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { // and ever new ones
		defer close(done)
		for {
			_ = f.lab.Do("intruder", func() error {
				c, err := net.DialTimeout("tcp4", fmt.Sprintf("%s:%d", spineID, wire.DefaultPort), time.Second)
				if err == nil {
					time.AfterFunc(2*time.Second, func() { c.Close() })
				}
				return err
			})
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	f.awaitCounter("spine", "inof_server_1.accepted", flood)
	f.awaitCounter("spine", "inof_server_1.pending_refused", 1)
	// A client that comes while the flood lasts gets its session.
	f.kept()
	f.kill("tor2")
	f.start("tor2")
	f.established("tor2")
	f.stillTells()
	close(stop)
	<-done
	f.awaitCounter("spine", "inof_server_1.pending_refused", flood/2)
	f.stillTells()
	f.quietButTarget(since)
}

// Somebody who knows the password still speaks for his own device only, in order
// and whole.
func TestAClientSpeaksForItselfOnly(t *testing.T) {
	t.Parallel()
	f := intruderFabric(t, "rogue")
	since := f.marks("t1", "i1", "i2")
	self := netip.MustParseAddr("10.0.0.99")
	host := func(dev, addr string) wire.HostRecord {
		return wire.HostRecord{Op: wire.Put, Host: zone.Host{
			HostKey: zone.HostKey{Addr: netip.MustParseAddr(addr), Device: netip.MustParseAddr(dev), Port: "eth7"},
			Service: snsd.Service{Role: snsd.RoleTarget}, Since: time.Now().Add(-time.Hour)}}
	}
	r := f.rogue(self.String())
	after := f.lastEvent("spine")
	r.send(&wire.Update{Origin: self, Epoch: 1, Seq: 1, Hosts: []wire.HostRecord{host(tor1ID, "203.0.113.1"), host(self.String(), "203.0.113.2")},
		Downs: []wire.DownRecord{{Device: netip.MustParseAddr(tor1ID), Port: "eth1", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: time.Now()}, Addrs: []netip.Addr{netip.MustParseAddr(target)}}}})
	f.awaitEvent("spine", after, "error", "from device 10.0.0.99", "203.0.113.1", "belongs to device "+tor1ID)
	f.awaitHost("spine", "203.0.113.2")
	if n := f.counter("spine", "core.records_refused"); n != 2 {
		t.Errorf("%d records refused, want 2", n)
	}
	if hs := f.host("spine", "203.0.113.1"); len(hs) != 0 {
		t.Errorf("a host of another device was taken: %+v", hs)
	}

	for _, c := range []struct {
		name, counter string
		send          func(r *rogue)
		words         []string
	}{
		{"altered bytes", "auth_failed", func(r *rogue) {
			e, err := wire.Encode(&wire.EndOfSync{Epoch: 1, Seq: 1})
			if err != nil {
				t.Fatal(err)
			}
			b := r.sess.Seal(nil, e, time.Now())
			b[wire.HeaderLen+5] ^= 1
			r.write(b)
		}, []string{"authentication failed"}},
		{"a message sent twice", "bad_sequence", func(r *rogue) { r.write(r.send(&wire.Keepalive{})) }, []string{"bad sequence number"}},
		{"random bytes", "not_inof", func(r *rogue) { r.write(bytes.Repeat([]byte{0xee}, 64)) }, []string{"not iNOF"}},
		{"a length above the limit", "bad_length", func(r *rogue) { r.write(header(1<<20+1, 2, 3)) }, []string{"bad length", "length 1048577"}},
		{"silence", "hold_expired", func(*rogue) {}, []string{"hold time expired"}},
	} {
		r := f.rogue(self.String())
		before, after := f.counter("spine", "inof_server_1."+c.counter), f.lastEvent("spine")
		c.send(r)
		f.awaitEvent("spine", after, "peer", append(c.words, "session with client 10.0.0.99 is down")...)
		if n := f.counter("spine", "inof_server_1."+c.counter); n != before+1 {
			t.Errorf("%s: counter %s went from %d to %d", c.name, c.counter, before, n)
		}
	}

	// One who takes an honest device's id is refused, and named: the device answers.
	after = f.lastEvent("spine")
	replaced := f.counter("spine", "inof_server_1.replaced")
	if err := f.rogueRefused(tor1ID); err == nil || !strings.Contains(err.Error(), "duplicate device id") {
		t.Errorf("a second %s: %v", tor1ID, err)
	}
	f.awaitCounter("spine", "inof_server_1.duplicate_refused", 1)
	f.awaitEvent("spine", after, "error", "two devices have the id "+tor1ID)
	f.established("tor1")
	if n := f.counter("spine", "inof_server_1.replaced"); n != replaced {
		t.Errorf("%d sessions were replaced", n-replaced)
	}
	f.stillTells()
	f.quietButTarget(since)
}
