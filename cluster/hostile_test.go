package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/openinof/inof/inof/link"
)

// pretend is the transport of a process that holds the certificate of a device and says that it is
// a member.
func (l *lab) pretend(as MemberID, certified netip.Addr) *transport {
	return l.pretendBy(as, l.tls(certified))
}

func (l *lab) pretendBy(as MemberID, store *link.CredentialStore) *transport {
	t := newTransport(transportConfig{Self: as, Address: netip.AddrPortFrom(as.Device, 19517), TLS: func() *link.CredentialStore { return store },
		Dial: l.w.From(as.Device), Timeout: time.Second, Log: newLogger(nil), state: func() (uint64, bool) { return 0, false }})
	t.Open()
	l.t.Cleanup(func() { _ = t.Close() })
	return t
}

func serverOf(r *running) raft.ServerID  { return raft.ServerID(r.self.String()) }
func addressOf(i int) raft.ServerAddress { return raft.ServerAddress(memberAt(i).Address.String()) }
func headerOf(id MemberID) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id.String()), Addr: []byte(netip.AddrPortFrom(id.Device, 19517).String())}
}

func appendOf(by MemberID, term uint64, entries ...*raft.Log) *raft.AppendEntriesRequest {
	return &raft.AppendEntriesRequest{RPCHeader: headerOf(by), Term: term, Entries: entries}
}

// A peer without the certificate of a member is refused, counted, and reported with its address: one
// that has only the password of the sessions, a device of the same CA that is no member, a
// certificate of another CA, and a member in the name of another one.
func TestStrangersAreRefused(t *testing.T) {
	evil := encode(t, addZone("evil"))
	for _, c := range []struct {
		name     string
		do       func(*lab) error
		why      string
		counters func(TransportCounters) uint64
	}{
		{"the password only, in the former protocol", func(l *lab) error {
			nc, err := l.w.From(devAddr(1))(context.Background(), memberAt(0).Address)
			if err != nil {
				return nil
			}
			hello := append([]byte{0, 82}, "iNOFclus\x02\x02"...)
			go func() { _, _ = nc.Write(append(hello, make([]byte, 72)...)) }()
			_ = nc.SetDeadline(time.Now().Add(time.Minute))
			if b, err := io.ReadAll(nc); err != nil || bytes.Contains(b, []byte("iNOFclus")) {
				return nil
			}
			return errors.New("it was hung up on")
		}, "hung up", func(n TransportCounters) uint64 { return n.HandshakeBad }},
		{"no certificate", func(l *lab) error {
			nc, err := l.w.From(devAddr(1))(context.Background(), memberAt(0).Address)
			if err != nil {
				return nil
			}
			c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}})
			if err := writeMessage(c, request{Do: doStatus, From: MemberID{devAddr(1), 1}, To: MemberID{Device: devAddr(0)}}); err != nil {
				return err
			}
			return readMessage(c, &answer{})
		}, "", func(n TransportCounters) uint64 { return n.HandshakeBad }},
		{"a certificate of another CA", func(l *lab) error {
			own, forged := l.tls(devAddr(1)).Get(), issuer(t)(devAddr(1)).Get()
			forged.Roots = own.Roots
			_, err := l.pretendBy(MemberID{devAddr(1), 5}, link.NewCredentialStore(forged, nil)).probe(context.Background(), devAddr(0), memberAt(0).Address)
			return err
		}, "", func(n TransportCounters) uint64 { return n.AuthFailed }},
		{"a member in the name of another one", func(l *lab) error {
			_, err := l.pretend(l.node(2).self, devAddr(1)).probe(context.Background(), devAddr(0), memberAt(0).Address)
			return err
		}, "is not for device 192.0.2.3; it is for 192.0.2.2", func(n TransportCounters) uint64 { return n.AuthFailed }},
		{"a member in the name of the one it asks", func(l *lab) error {
			_, err := l.pretendBy(l.node(0).self, l.tls(devAddr(0))).probe(context.Background(), devAddr(0), memberAt(0).Address)
			return err
		}, "this member's own", func(n TransportCounters) uint64 { return n.Impostors }},
		{"a device of the CA asks for the status", func(l *lab) error {
			_, err := l.pretend(MemberID{devAddr(5), 5}, devAddr(5)).probe(context.Background(), devAddr(0), memberAt(0).Address)
			return err
		}, "device 192.0.2.6 is no member of this cluster", func(n TransportCounters) uint64 { return n.NotMember }},
		{"a device of the CA makes a change", func(l *lab) error {
			_, err := l.pretend(MemberID{devAddr(5), 5}, devAddr(5)).ask(context.Background(), request{Do: doChange, To: l.node(0).self}, memberAt(0).Address, evil, nil)
			return err
		}, "is no member of this cluster", func(n TransportCounters) uint64 { return n.NotMember }},
		{"a device of the CA makes itself a member", func(l *lab) error {
			q := request{Do: doConfigure, To: l.node(0).self, Members: &configure{"add", devAddr(5), memberAt(5).Address}}
			_, err := l.pretend(MemberID{devAddr(5), 5}, devAddr(5)).ask(context.Background(), q, memberAt(0).Address, nil, nil)
			return err
		}, "is no member of this cluster", func(n TransportCounters) uint64 { return n.NotMember }},
		{"a device of the CA wants to lead", func(l *lab) error {
			id := MemberID{devAddr(5), 5}
			return l.pretend(id, devAddr(5)).AppendEntries(serverOf(l.node(0)), addressOf(0), appendOf(id, 1000), &raft.AppendEntriesResponse{})
		}, "is no member of this cluster", func(n TransportCounters) uint64 { return n.NotMember }},
		{"a member leads in the name of another one", func(l *lab) error {
			id := l.node(1).self
			return l.pretend(id, devAddr(1)).AppendEntries(serverOf(l.node(0)), addressOf(0), appendOf(l.node(2).self, 1000), &raft.AppendEntriesResponse{})
		}, "in the name of 192.0.2.3/", func(n TransportCounters) uint64 { return n.Impostors }},
		{"a member votes in the name of another one", func(l *lab) error {
			id := l.node(1).self
			q := &raft.RequestVoteRequest{RPCHeader: headerOf(l.node(2).self), Term: 1000, LastLogIndex: 1 << 20, LastLogTerm: 999}
			return l.pretend(id, devAddr(1)).RequestVote(serverOf(l.node(0)), addressOf(0), q, &raft.RequestVoteResponse{})
		}, "in the name of 192.0.2.3/", func(n TransportCounters) uint64 { return n.Impostors }},
		{"a member leads with the last term there is", func(l *lab) error {
			id := l.node(1).self
			return l.pretend(id, devAddr(1)).AppendEntries(serverOf(l.node(0)), addressOf(0), appendOf(id, 1<<64-1), &raft.AppendEntriesResponse{})
		}, "no cluster holds so many elections", func(n TransportCounters) uint64 { return n.Malformed }},
		{"a member stands for a term near the last", func(l *lab) error {
			id := l.node(1).self
			q := &raft.RequestVoteRequest{RPCHeader: headerOf(id), Term: 1 << 63, LastLogIndex: 1 << 20, LastLogTerm: 1 << 62}
			return l.pretend(id, devAddr(1)).RequestVote(serverOf(l.node(0)), addressOf(0), q, &raft.RequestVoteResponse{})
		}, "no cluster holds so many elections", func(n TransportCounters) uint64 { return n.Malformed }},
		{"a member with the state of another cluster", func(l *lab) error {
			id := MemberID{devAddr(1), 77}
			they := l.pretend(id, devAddr(1))
			they.cfg.state = func() (uint64, bool) { return 0xdead, false }
			return they.AppendEntries(serverOf(l.node(0)), addressOf(0), appendOf(id, 1000), &raft.AppendEntriesResponse{})
		}, "is of another cluster", func(n TransportCounters) uint64 { return n.HandshakeBad }},
		{"a member says that it was handed the lead", func(l *lab) error {
			id := l.node(1).self
			q := &raft.RequestVoteRequest{RPCHeader: headerOf(id), Term: 1000, LastLogIndex: 1 << 20, LastLogTerm: 999, LeadershipTransfer: true}
			return l.pretend(id, devAddr(1)).RequestVote(serverOf(l.node(0)), addressOf(0), q, &raft.RequestVoteResponse{})
		}, "hands over the leadership", func(n TransportCounters) uint64 { return n.Malformed }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inLab(t, 3, func(t *testing.T, l *lab) {
				l.t = t
				for i := range 3 {
					l.start(i)
				}
				l.awaitLeader(seq(3)...)
				mustChange(t, l.node(1), addZone("blue"))
				_, before := l.node(0).Counters()
				if err := c.do(l); err == nil || !strings.Contains(err.Error(), c.why) {
					t.Errorf("the peer has %v, want %q", err, c.why)
				}
				l.await("it is counted", time.Minute, func() bool {
					_, after := l.node(0).Counters()
					return c.counters(after) > c.counters(before)
				})
				l.await("it is reported with its address", time.Minute, func() bool {
					return strings.Contains(l.story(), "192.0.2.1: a connection of 192.0.2.") && strings.Contains(l.story(), ":49152 to the cluster's port was refused: ")
				})
				l.awaitLeader(seq(3)...)
				mustChange(t, l.node(2), addZone("red"))
				for i := range 3 {
					if rep := l.node(i).report(); rep.Term > 10 || len(l.node(i).configuration().Servers) != 3 || l.node(i).shown("evil") != "-" {
						t.Errorf("something was changed: %+v", rep)
					}
				}
			})
		})
	}
}

// Whatever a forwarded entry says of the member that it was made at: the certificate counts.
func TestAForwardedEntryNamesTheMemberOfTheCertificate(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		applied := make(chan Applied, 64)
		l.tune = func(c *Config) {
			if c.Self == devAddr(0) {
				c.Applied = func(a Applied) { applied <- a }
			}
		}
		for i := range 3 {
			l.start(i)
		}
		leader := l.awaitLeader(seq(3)...)
		liar, other := (leader+1)%3, (leader+2)%3
		e := addZone("blue")
		e.ID, e.Member = RequestID{7, 1}, devAddr(other)
		var res Result
		_, err := l.pretend(l.node(liar).self, devAddr(liar)).ask(t.Context(), request{Do: doChange, To: l.node(leader).self}, memberAt(leader).Address, encode(t, e), &res)
		if err != nil || res.Refused != nil {
			t.Fatalf("%+v, %v", res, err)
		}
		for a := range applied {
			if a.Result.Index == res.Index {
				if a.Entry.Member != devAddr(liar) || a.Entry.Name != "blue" {
					t.Errorf("the entry is from %v", a.Entry.Member)
				}
				return
			}
		}
	})
}

// Raft tells candidates apart by their addresses: one that takes the address of another has no vote
// of those that the other one has.
func TestACandidateHasNoVoteByTheAddressOfAnother(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		l.awaitLeader(seq(3)...)
		ids := []MemberID{l.node(0).self, l.node(1).self, l.node(2).self}
		l.crash(1)
		l.crash(2)
		time.Sleep(10 * time.Second)
		term := l.node(0).report().Term + 5
		vote := func(i int) bool {
			q := &raft.RequestVoteRequest{RPCHeader: headerOf(ids[i]), Term: term, LastLogIndex: 1 << 20, LastLogTerm: term - 1}
			q.Addr = headerOf(ids[2]).Addr
			var resp raft.RequestVoteResponse
			if err := l.pretend(ids[i], devAddr(i)).RequestVote(serverOf(l.node(0)), addressOf(0), q, &resp); err != nil {
				t.Fatal(err)
			}
			return resp.Granted
		}
		if !vote(2) {
			t.Fatal("a candidate has no vote")
		}
		if vote(1) {
			t.Error("two candidates have a vote of one member in one term")
		}
	})
}

// Raft takes the term of an answer over.
func TestATermOfAnAnswerIsBounded(t *testing.T) {
	tr := newTransport(transportConfig{})
	for theirs, ok := range map[uint64]bool{5: true, 6: true, 5 + maxTermJump: true, 6 + maxTermJump: false, 1<<64 - 1: false} {
		if err := tr.answered(nil, 5, theirs); (err == nil) != ok {
			t.Errorf("term %d in answer to term 5: %v", theirs, err)
		}
	}
}

// dialRaw makes a connection of member 1 to member 0 whose next bytes are ours.
func (l *lab) dialRaw(do string) *conn {
	l.t.Helper()
	c, _, err := l.pretend(l.node(1).self, devAddr(1)).connect(context.Background(), request{Do: do, To: l.node(0).self}, memberAt(0).Address)
	if err != nil {
		l.t.Fatal(err)
	}
	_ = c.raw.Conn.SetDeadline(time.Now().Add(time.Hour))
	return c
}

// What a member says that cannot be right ends its connection, is counted, and costs
// no memory; the others do not notice.
func TestHostileBytesEndTheConnection(t *testing.T) {
	big := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	for name, c := range map[string]struct {
		do      string
		send    []byte
		counted bool
	}{
		"a message longer than any":           {doChange, big(1 << 31), true},
		"an entry that is none":               {doChange, append(big(3), EntryVersion, 2, 9), true},
		"a message of the library of no type": {doRaft, []byte{77}, false},
		"no message of the library":           {doRaft, append([]byte{0}, bytes.Repeat([]byte{0xc1}, 100)...), false},
		"half a message":                      {doRaft, []byte{0, 0x81}, false},
		"a name of 4 GiB in a message":        {doRaft, []byte{0, 0x81, 0xdb, 0xff, 0xff, 0xff, 0xff}, false},
		"bytes without end":                   {doRaft, append([]byte{0, 0x81, 0xa2, 'I', 'D', 0xc6, 0x7f, 0xff, 0xff, 0xff}, make([]byte, 2*maxRecord)...), false},
		"a message in no name":                {doRaft, []byte{0, 0x80}, false},
		"an entry that was to come":           {doChange, append(big(1000), 1, 2, 3), false},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, 3, func(t *testing.T, l *lab) {
				l.t = t
				for i := range 3 {
					l.start(i)
				}
				l.awaitLeader(seq(3)...)
				_, before := l.node(0).Counters()
				raw, began := l.dialRaw(c.do), time.Now()
				_, _ = raw.Conn.Write(c.send)
				_, _ = io.Copy(io.Discard, raw.Conn)
				if d := time.Since(began); d > time.Minute {
					t.Errorf("cut after %v", d)
				}
				l.await("it is counted", time.Minute, func() bool {
					_, after := l.node(0).Counters()
					return !c.counted || after.Malformed > before.Malformed
				})
				mustChange(t, l.node(2), addZone("still"))
			})
		})
	}
}

// What is a message and cannot be right is refused before Raft has it, which would panic or follow.
func TestMessagesThatCannotBeRight(t *testing.T) {
	id := MemberID{devAddr(1), 5}
	entry := func(l ...*raft.Log) *raft.AppendEntriesRequest { return appendOf(id, 3, l...) }
	install := func(size int64, version raft.SnapshotVersion, members []byte) *raft.InstallSnapshotRequest {
		return &raft.InstallSnapshotRequest{RPCHeader: headerOf(id), Term: 3, Size: size, SnapshotVersion: version, Configuration: members}
	}
	members := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(id.String()), Address: "192.0.2.2:19517"}}})
	stranger := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "x", Address: "192.0.2.2:19517"}}})
	other := entry()
	other.Addr = []byte("nowhere")
	for name, c := range map[string]struct {
		q  any
		ok bool
	}{
		"entries":                   {entry(&raft.Log{Index: 1, Term: 3}, &raft.Log{Index: 2, Term: 3, Type: raft.LogConfiguration, Data: members}), true},
		"no entry at all":           {entry(nil), false},
		"a gap":                     {entry(&raft.Log{Index: 9, Term: 3}), false},
		"of a later term":           {entry(&raft.Log{Index: 1, Term: 4}), false},
		"of no type":                {entry(&raft.Log{Index: 1, Term: 3, Type: 77}), false},
		"of a former type":          {entry(&raft.Log{Index: 1, Term: 3, Type: raft.LogRemovePeerDeprecated}), false},
		"members that are none":     {entry(&raft.Log{Index: 1, Term: 3, Type: raft.LogConfiguration, Data: []byte{0xdd, 0xff, 0xff, 0xff, 0xff}}), false},
		"a member without an id":    {entry(&raft.Log{Index: 1, Term: 3, Type: raft.LogConfiguration, Data: stranger}), false},
		"a sender without address":  {other, false},
		"a snapshot":                {install(7, 1, members), true},
		"a snapshot of 2^62":        {install(1<<62, 1, members), false},
		"a snapshot of less than 0": {install(-1, 1, members), false},
		"a snapshot of a version":   {install(7, 9, members), false},
		"a snapshot of no members":  {install(7, 1, []byte{0xdd}), false},
		"a pre-vote":                {&raft.RequestPreVoteRequest{RPCHeader: headerOf(id), Term: 4}, true},
		"the lead is handed over":   {&raft.TimeoutNowRequest{RPCHeader: headerOf(id)}, false},
	} {
		if err := checkRPC(c.q, id, 3); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A member that reads no answer is cut.
func TestASlowReaderIsCut(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		l.awaitLeader(seq(3)...)
		raw := l.dialRaw(doRaft)
		held := func() int {
			l.node(0).trans.mu.Lock()
			defer l.node(0).trans.mu.Unlock()
			return len(l.node(0).trans.conns)
		}
		before := held()
		if _, err := raw.Conn.Write([]byte{0, 0x80}); err != nil { // append, of an empty map: it is refused
			t.Fatal(err)
		}
		l.await("it is cut", 10*time.Second, func() bool { return held() < before })
	})
}

// Floods of connections are bounded, in all, for each address and for each device, and do not keep
// the members from each other.
func TestFloodsAreBounded(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		l.awaitLeader(seq(3)...)
		var open []net.Conn
		flood := func(from netip.Addr) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if c, err := l.w.From(from)(ctx, memberAt(0).Address); err == nil {
				open = append(open, c)
			}
		}
		for range 4 * maxPending {
			flood(netip.MustParseAddr("198.51.100.1"))
		}
		l.node(0).trans.mu.Lock()
		if n := l.node(0).trans.waiting; n != maxPendingFrom {
			t.Errorf("one address has %d places of those without a name", n)
		}
		l.node(0).trans.mu.Unlock()
		if _, err := l.pretend(l.node(1).self, devAddr(1)).probe(t.Context(), devAddr(0), memberAt(0).Address); err != nil {
			t.Errorf("a member finds no place beside them: %v", err)
		}
		for i := range 4 * maxPending {
			flood(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}))
		}
		if _, n := l.node(0).Counters(); n.Refused == 0 {
			t.Error("silent connections without end are taken")
		}
		time.Sleep(2 * handshakeTime)
		for i, c := range open {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				t.Fatalf("silent connection %d is open still: %v", i, err)
			}
		}
		they := l.pretend(l.node(1).self, devAddr(1))
		full := false
		for range maxConnsDevice + 1 {
			_, _, err := they.connect(t.Context(), request{Do: doRaft, To: l.node(0).self}, memberAt(0).Address)
			full = full || err != nil && strings.Contains(err.Error(), errFull.Error())
		}
		if !full {
			t.Error("a device has connections without end")
		}
		l.await("the cluster works", time.Minute, func() bool { _, ok := l.leader(seq(3)...); return ok })
		mustChange(t, l.node(2), addZone("still"))
	})
}

// A revoked certificate ends the connections that were made with it.
func TestARevokedCertificateEndsConnections(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		stores := map[netip.Addr]*link.CredentialStore{}
		for i := range 3 {
			stores[devAddr(i)] = l.tls(devAddr(i))
		}
		l.tls = func(d netip.Addr) *link.CredentialStore { return stores[d] }
		for i := range 3 {
			l.start(i)
		}
		leader := l.awaitLeader(seq(3)...)
		out := (leader + 1) % 3
		stands := l.pretend(l.node(out).self, devAddr(out))
		id, server, at := l.node(out).self, serverOf(l.node(leader)), addressOf(leader)
		if err := stands.AppendEntries(server, at, appendOf(id, 0), &raft.AppendEntriesResponse{}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if i == out {
				continue
			}
			c := *stores[devAddr(i)].Get()
			var err error
			if c.Allow, err = link.ParseAllowList([]string{devAddr(leader).String(), devAddr((leader + 2) % 3).String()}); err != nil {
				t.Fatal(err)
			}
			stores[devAddr(i)].Set(&c)
		}
		if err := stands.AppendEntries(server, at, appendOf(id, 1000), &raft.AppendEntriesResponse{}); err == nil {
			t.Error("it is answered")
		}
		if rep := l.node(leader).report(); rep.Term > 10 {
			t.Errorf("it was heard once more: %+v", rep)
		}
		l.await("it hears no leader", time.Minute, func() bool { return l.node(out).Trouble() != "" })
		mustChange(t, l.node(leader), addZone("blue"))
		if l.node(out).shown("blue") != "-" {
			t.Error("it hears of changes")
		}
	})
}

// One device has one name.
func TestAMemberInTheFormOfIPv6IsRefused(t *testing.T) {
	var b bytes.Buffer
	if err := writeMessage(&b, request{Do: doStatus, From: MemberID{netip.AddrFrom16(devAddr(0).As16()), 1}, To: MemberID{Device: devAddr(1)}}); err != nil {
		t.Fatal(err)
	}
	if err := readMessage(&b, &request{}); err == nil || !strings.Contains(err.Error(), "is an IPv4 address in IPv6 form") {
		t.Errorf("%v", err)
	}
}

func FuzzMessages(f *testing.F) {
	var b bytes.Buffer
	_ = writeMessage(&b, request{Do: doConfigure, From: MemberID{devAddr(0), 1}, To: MemberID{devAddr(1), 2}, Members: &configure{Do: "remove", Device: devAddr(2)}})
	f.Add(b.Bytes())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var q request
		if readMessage(bytes.NewReader(b), &q) != nil || !q.From.Device.IsValid() || !q.To.Device.IsValid() {
			return
		}
		var again bytes.Buffer
		var back request
		if err := writeMessage(&again, q); err != nil {
			t.Fatal(err)
		}
		if again.Len() <= maxMessage {
			if err := readMessage(&again, &back); err != nil || back.From != q.From || back.Do != q.Do && strings.ToValidUTF8(q.Do, "") == q.Do {
				t.Fatalf("%+v, %+v: %v", q, back, err)
			}
		}
		_ = checkConfiguration(b)
	})
}
