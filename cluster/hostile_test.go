package cluster

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/raft"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
)

// authority signs certificates of devices.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	a.cert, a.key = a.make("test CA", nil, nil)
	return a
}

func (a *authority) make(name string, device []net.IP, parent *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		IPAddresses: device, BasicConstraintsValid: true, IsCA: parent == nil, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	by, signer := c, key
	if parent != nil {
		by, signer = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// auth gives mode tls for a device.
func (a *authority) auth(device netip.Addr, allow ...string) link.Auth {
	cert, key := a.make(device.String(), []net.IP{device.AsSlice()}, a)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	list, err := link.ParseAllowList(allow)
	if err != nil {
		a.t.Fatal(err)
	}
	return link.Auth{Mode: wire.AuthTLS, TLS: link.NewCredentialStore(&link.Credentials{
		Certificate: tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}, Roots: roots, Allow: list}, nil)}
}

func TestMembersSpeakInEachMode(t *testing.T) {
	ca := newAuthority(t)
	auths := map[netip.Addr]link.Auth{}
	for i := range 3 {
		auths[devAddr(i)] = ca.auth(devAddr(i))
	}
	for name, auth := range map[string]func(netip.Addr) link.Auth{
		"none": func(netip.Addr) link.Auth { return link.Auth{Mode: wire.AuthNone} },
		"hmac": func(netip.Addr) link.Auth {
			return link.Auth{Mode: wire.AuthHMAC, Passwords: []link.Password{link.PasswordOfKey(sha256.Sum256([]byte("correct horse")))}}
		},
		"tls": func(d netip.Addr) link.Auth { return auths[d] },
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, 3, func(t *testing.T, l *lab) {
				l.auth = auth
				for i := range 3 {
					l.start(i)
				}
				l.awaitLeader(seq(3)...)
				mustChange(t, l.node(0), addZone("blue"))
			})
		})
	}
}

// Who does not know the password, has no certificate for the device it says it is, or
// speaks another mode, gets nothing and is counted.
func TestStrangersAreRefused(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	own := ca.auth(devAddr(0), devAddr(1).String())
	forged := other.auth(devAddr(1))
	forged.TLS.Get().Roots = own.TLS.Get().Roots
	password := func(s string) link.Auth {
		return link.Auth{Mode: wire.AuthHMAC, Passwords: []link.Password{link.PasswordOfKey(sha256.Sum256([]byte(s)))}}
	}
	for _, c := range []struct {
		name       string
		here, they link.Auth
		as         netip.Addr
	}{
		{"another password", password("correct horse"), password("wrong horse!"), devAddr(1)},
		{"none where a password is asked for", password("correct horse"), link.Auth{Mode: wire.AuthNone}, devAddr(1)},
		{"a certificate of another device", own, ca.auth(devAddr(2)), devAddr(1)},
		{"a certificate of another CA", own, forged, devAddr(1)},
		{"a device that is not on the allow list", own, ca.auth(devAddr(2)), devAddr(2)},
		{"plain where TLS is asked for", own, password("correct horse"), devAddr(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			inLab(t, 1, func(t *testing.T, l *lab) {
				l.auth = func(netip.Addr) link.Auth { return c.here }
				l.start(0)
				l.awaitLeader(0)
				they := newTransport(transportConfig{Self: MemberID{c.as, 5}, Auth: func() link.Auth { return c.they }, Dial: l.w.From(c.as),
					Timeout: time.Second, state: func() (uint64, bool) { return 0, false }})
				defer they.Close()
				_, err := they.request(context.Background(), MemberID{Device: devAddr(0)}, memberAt(0).Address, []byte{byte(opStatus)})
				if err == nil {
					t.Fatal("it was answered")
				}
				time.Sleep(time.Second)
				if _, n := l.node(0).Counters(); n.AuthFailed+n.HandshakeBad == 0 {
					t.Errorf("it was not counted: %+v", n)
				}
			})
		})
	}
}

// A device with the password that is no member may ask for the status and nothing else.
func TestOnlyMembersChangeAnything(t *testing.T) {
	inLab(t, 1, func(t *testing.T, l *lab) {
		l.start(0)
		l.awaitLeader(0)
		they := newTransport(transportConfig{Self: MemberID{devAddr(5), 5}, Auth: func() link.Auth { return l.auth(devAddr(5)) }, Dial: l.w.From(devAddr(5)),
			Timeout: time.Second, state: func() (uint64, bool) { return 0, false }})
		defer they.Close()
		ask := func(target MemberID, body ...[]byte) error {
			_, err := they.request(context.Background(), target, memberAt(0).Address, body...)
			return err
		}
		anybody, known := MemberID{Device: devAddr(0)}, l.node(0).self
		if err := ask(anybody, []byte{byte(opStatus)}); err != nil {
			t.Error(err)
		}
		e := addZone("evil")
		data := encode(t, e)
		vote := encodeVote(&raft.RequestVoteRequest{Term: 1 << 40})
		for name, err := range map[string]error{
			"change":           ask(anybody, []byte{byte(opChange)}, data),
			"configure":        ask(anybody, []byte{byte(opConfigure)}, []byte(`{"do":"remove","device":"192.0.2.1"}`)),
			"unknown":          ask(anybody, []byte{byte(opConfigure + 1)}),
			"vote":             ask(anybody, vote),
			"vote, targeted":   ask(known, vote),
			"append, targeted": ask(known, encodeAppend(&raft.AppendEntriesRequest{Term: 1 << 40})),
		} {
			if err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if rep := l.node(0).report(); rep.Term > 10 || l.node(0).shown("evil") != "-" {
			t.Errorf("something was changed: %+v", rep)
		}
		if _, n := l.node(0).Counters(); n.NotMember != 6 {
			t.Errorf("%d were counted", n.NotMember)
		}
	})
}

// rawHandshake makes a connection of a member whose next bytes are ours.
func rawHandshake(t *testing.T, l *lab, as MemberID) *conn {
	t.Helper()
	nc, err := l.w.From(as.Device)(context.Background(), memberAt(0).Address)
	if err != nil {
		t.Fatal(err)
	}
	c := &conn{nc: nc}
	_ = nc.SetDeadline(time.Now().Add(time.Minute))
	own := func(m wire.AuthMode, target MemberID) *hello {
		h := &hello{Mode: m, Self: as, Target: target}
		_, _ = rand.Read(h.Nonce[:])
		return h
	}
	if err := c.greet(l.auth(as.Device), own, l.node(0).self); err != nil {
		t.Fatal(err)
	}
	return c
}

// What a peer says that cannot be right ends its connection, is counted, and costs
// no memory; the others do not notice.
func TestHostileBytesEndTheConnection(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		l.awaitLeader(seq(3)...)
		evil := l.node(1).self
		entry := func(l raft.Log) []byte {
			return encodeAppend(&raft.AppendEntriesRequest{Term: 1, Entries: []*raft.Log{&l}})
		}
		for name, send := range map[string]func(c *conn) error{
			"a record longer than any": func(c *conn) error {
				b := binary.BigEndian.AppendUint32(nil, 1<<31)
				_, err := c.nc.Write(append(append(b, byte(recordRequest)), make([]byte, 8)...))
				return err
			},
			"a status request of 30 MiB": func(c *conn) error {
				b := binary.BigEndian.AppendUint32(nil, 30<<20)
				b = binary.BigEndian.AppendUint64(append(b, byte(recordRequest)), c.tx.number+1)
				_, err := c.nc.Write(append(b, byte(opStatus)))
				return err
			},
			"a number out of order": func(c *conn) error { c.tx.number += 5; return c.write(recordRequest, []byte{byte(opStatus)}) },
			"a wrong tag": func(c *conn) error {
				b := c.tx.append(nil, recordRequest, []byte{byte(opStatus)})
				b[len(b)-1] ^= 1
				_, err := c.nc.Write(b)
				return err
			},
			"no request":          func(c *conn) error { return c.write(recordProof) },
			"an unknown request":  func(c *conn) error { return c.write(recordRequest, []byte{200}) },
			"a truncated request": func(c *conn) error { return c.write(recordRequest, []byte{byte(opAppend), 3, 0, 0}) },
			"a broken entry":      func(c *conn) error { return c.write(recordRequest, []byte{byte(opChange)}, []byte{EntryVersion, 2, 9}) },
			"members that are none": func(c *conn) error {
				return c.write(recordRequest, entry(raft.Log{Index: 1, Type: raft.LogConfiguration, Data: []byte{0xdd, 0xff, 0xff, 0xff, 0xff}}))
			},
			"an entry of no type": func(c *conn) error { return c.write(recordRequest, entry(raft.Log{Index: 1, Type: 77})) },
			"a gap":               func(c *conn) error { return c.write(recordRequest, entry(raft.Log{Index: 9})) },
			"a snapshot of 2^62": func(c *conn) error {
				return c.write(recordRequest, encodeInstall(&raft.InstallSnapshotRequest{SnapshotVersion: 1, Size: 1 << 62}))
			},
		} {
			_, before := l.node(0).Counters()
			c := rawHandshake(t, l, evil)
			if err := send(c); err != nil && !closedError(err) {
				t.Errorf("%s: %v", name, err)
			}
			for { // until it is cut; a refusal may come before
				typ, _, err := c.read()
				if err != nil {
					break
				}
				if typ != recordRefusal {
					t.Errorf("%s: answered by a record of type %d", name, typ)
				}
			}
			_ = c.nc.Close()
			if _, after := l.node(0).Counters(); after.Malformed == before.Malformed {
				t.Errorf("%s: not counted", name)
			}
		}
		mustChange(t, l.node(2), addZone("still"))
	})
}

// Floods of connections are bounded, in all and for each device, and do not keep the
// members from each other.
func TestFloodsAreBounded(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		l.awaitLeader(seq(3)...)
		stranger := netip.MustParseAddr("198.51.100.1")
		var open []net.Conn
		for range 4 * maxPending {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if c, err := l.w.From(stranger)(ctx, memberAt(0).Address); err == nil {
				open = append(open, c)
			}
			cancel()
		}
		if _, n := l.node(0).Counters(); n.Refused == 0 {
			t.Error("silent connections without end are taken")
		}
		time.Sleep(2 * handshakeTime)
		cut := 0
		for _, c := range open {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); err != nil && closedError(err) {
				cut++
			}
		}
		if cut != len(open) {
			t.Errorf("%d of %d silent connections are open still", len(open)-cut, len(open))
		}
		var conns []*conn
		for range maxConnsDevice - 4 { // the other members have some
			conns = append(conns, rawHandshake(t, l, MemberID{stranger, 9}))
		}
		l.await("the cluster works", time.Minute, func() bool { _, ok := l.leader(seq(3)...); return ok })
		mustChange(t, l.node(1), addZone("still"))
		for _, c := range conns {
			_ = c.nc.Close()
		}
	})
}

func TestMessagesOfRaftComeBackFromBytes(t *testing.T) {
	head := raft.RPCHeader{ProtocolVersion: 3, ID: []byte(MemberID{devAddr(1), 5}.String()), Addr: []byte("192.0.2.2:19517")}
	members := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(head.ID), Address: "192.0.2.2:19517"}}})
	for _, c := range []struct {
		o  op
		b  []byte
		is any
	}{
		{opAppend, nil, &raft.AppendEntriesRequest{RPCHeader: head, Term: 3, PrevLogEntry: 6, PrevLogTerm: 2, LeaderCommitIndex: 5, Entries: []*raft.Log{
			{Index: 7, Term: 3, Data: []byte("x"), AppendedAt: time.Unix(5, 6)}, {Index: 8, Term: 3, Type: raft.LogNoop}, {Index: 9, Term: 3, Type: raft.LogConfiguration, Data: members}}}},
		{opVote, nil, &raft.RequestVoteRequest{RPCHeader: head, Term: 4, LastLogIndex: 3, LastLogTerm: 2, LeadershipTransfer: true}},
		{opPreVote, nil, &raft.RequestPreVoteRequest{RPCHeader: head, Term: 4, LastLogIndex: 3, LastLogTerm: 2}},
		{opSnapshot, nil, &raft.InstallSnapshotRequest{RPCHeader: head, SnapshotVersion: 1, Term: 4, LastLogIndex: 9, LastLogTerm: 2, Configuration: members, ConfigurationIndex: 3, Size: 77}},
		{opTimeout, nil, &raft.TimeoutNowRequest{RPCHeader: head}},
	} {
		switch q := c.is.(type) {
		case *raft.AppendEntriesRequest:
			c.b = encodeAppend(q)
		case *raft.RequestVoteRequest:
			c.b = encodeVote(q)
		case *raft.RequestPreVoteRequest:
			c.b = encodePreVote(q)
		case *raft.InstallSnapshotRequest:
			c.b = encodeInstall(q)
		case *raft.TimeoutNowRequest:
			c.b = encodeTimeout(q)
		}
		r := &reader{b: c.b[1:], where: "test"}
		got := decodeRPC(op(c.b[0]), r)
		if err := r.end(); err != nil || op(c.b[0]) != c.o {
			t.Fatalf("%T: %v", c.is, err)
		}
		if d := cmp.Diff(c.is, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); d != "" {
			t.Error(d)
		}
		for n := range len(c.b) - 1 {
			r := &reader{b: c.b[1 : 1+n], where: "test"}
			if decodeRPC(c.o, r); r.end() == nil {
				t.Errorf("%T: %d of %d bytes are taken", c.is, n, len(c.b)-1)
			}
		}
	}
	for _, reply := range []any{&raft.AppendEntriesResponse{RPCHeader: head, Term: 1, LastLog: 2, Success: true}, &raft.RequestVoteResponse{RPCHeader: head, Term: 1, Granted: true},
		&raft.RequestPreVoteResponse{RPCHeader: head, Term: 1, Granted: true}, &raft.InstallSnapshotResponse{RPCHeader: head, Term: 2, Success: true}, &raft.TimeoutNowResponse{RPCHeader: head}} {
		b, err := encodeReply(reply)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		switch reply.(type) {
		case *raft.AppendEntriesResponse:
			got = &raft.AppendEntriesResponse{}
		case *raft.RequestVoteResponse:
			got = &raft.RequestVoteResponse{}
		case *raft.RequestPreVoteResponse:
			got = &raft.RequestPreVoteResponse{}
		case *raft.InstallSnapshotResponse:
			got = &raft.InstallSnapshotResponse{}
		default:
			got = &raft.TimeoutNowResponse{}
		}
		if err := decodeReply(b, got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(reply, got); d != "" {
			t.Error(d)
		}
	}
}

func FuzzDecodeRPC(f *testing.F) {
	f.Add(encodeAppend(&raft.AppendEntriesRequest{Term: 1, Entries: []*raft.Log{{Index: 1, Data: []byte("x")}}}))
	f.Add(encodeVote(&raft.RequestVoteRequest{Term: 1}))
	f.Add(encodeInstall(&raft.InstallSnapshotRequest{SnapshotVersion: 1, Configuration: raft.EncodeConfiguration(raft.Configuration{})}))
	f.Add([]byte{byte(opAppend)})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		r := &reader{b: b[1:], where: "fuzz"}
		decodeRPC(op(b[0]), r)
		_ = r.end()
	})
}

// One device has one name.
func TestAMemberInTheFormOfIPv6IsRefused(t *testing.T) {
	h := hello{Self: MemberID{netip.AddrFrom16(devAddr(0).As16()), 1}, Mode: wire.AuthHMAC}
	if _, err := decodeHello(h.encode()); err == nil || !strings.Contains(err.Error(), "is an IPv4 address in IPv6 form") {
		t.Errorf("%v", err)
	}
}

// FuzzRecords feeds the reading side of a connection, with and without tags.
func FuzzRecords(f *testing.F) {
	f.Add((&hello{Self: MemberID{devAddr(0), 1}, Mode: wire.AuthHMAC}).encode(), newSeal([]byte("k")).append(nil, recordRequest, []byte{byte(opStatus)}))
	f.Fuzz(func(t *testing.T, greeting, records []byte) {
		if h, err := decodeHello(greeting); err == nil && string(h.encode()) != string(greeting) {
			t.Fatalf("%+v", h)
		}
		for _, key := range [][]byte{nil, []byte("k")} {
			c := &conn{rx: newSeal(key)}
			c.in = bufioReader(records)
			for {
				if _, _, err := c.read(); err != nil {
					break
				}
			}
		}
	})
}

func bufioReader(b []byte) *bufio.Reader {
	return bufio.NewReader(io.NopCloser(strings.NewReader(string(b))))
}
