package wire_test

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func drawAddr(t *rapid.T) netip.Addr {
	if rapid.Bool().Draw(t, "v6") {
		b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")
		b[0] = 0x20 // not IPv4-mapped
		return netip.AddrFrom16([16]byte(b))
	}
	return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")))
}

func drawTime(t *rapid.T) time.Time {
	n := rapid.Int64().Draw(t, "time")
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func drawText(least, most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringOfN(rapid.RuneFrom([]rune("abzABZ019-_.:/ é漢")), least, most, most).Draw(t, "text")
		return s
	})
}

func drawOp(t *rapid.T) wire.Op {
	return rapid.SampledFrom([]wire.Op{wire.Put, wire.Withdraw}).Draw(t, "op")
}

func drawAnyMember(t *rapid.T) zone.Member {
	switch zone.MemberKind(rapid.IntRange(1, 5).Draw(t, "kind")) {
	case zone.MemberAddr:
		return zone.Member{Kind: zone.MemberAddr, First: drawAddr(t)}
	case zone.MemberRange:
		a, b := drawAddr(t), drawAddr(t)
		if a.BitLen() != b.BitLen() {
			b = a
		}
		if b.Less(a) {
			a, b = b, a
		}
		return zone.Member{Kind: zone.MemberRange, First: a, Last: b}
	case zone.MemberNQN:
		return zone.Member{Kind: zone.MemberNQN, NQN: drawText(1, snsd.MaxNQN).Draw(t, "nqn")}
	case zone.MemberBound:
		m := zone.Member{Kind: zone.MemberBound, NQN: drawText(1, snsd.MaxNQN).Draw(t, "nqn")}
		if a := drawAddr(t); rapid.Bool().Draw(t, "prefix") {
			p, _ := a.Prefix(rapid.IntRange(0, a.BitLen()).Draw(t, "bits"))
			m.First, m.Last = zone.PrefixEnds(p)
		} else {
			m.Device, m.Port = a, drawText(0, 63).Draw(t, "port")
		}
		return m
	}
	return zone.Member{Kind: zone.MemberPort, Device: drawAddr(t), Port: drawText(1, 63).Draw(t, "port")}
}

func drawHost(t *rapid.T) wire.HostRecord {
	h := wire.HostRecord{Op: drawOp(t), Why: snsd.Reason(rapid.Byte().Draw(t, "why"))}
	h.Host.HostKey = zone.HostKey{Addr: drawAddr(t), Device: drawAddr(t), Port: drawText(1, 63).Draw(t, "port")}
	if h.Op == wire.Put {
		copy(h.Host.MAC[:], rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "mac"))
		h.Host.Subscribes = rapid.Bool().Draw(t, "subscribes")
		h.Host.Service = snsd.Service{
			Role: snsd.Role(rapid.Byte().Draw(t, "role")), Protocol: snsd.Protocol(rapid.Byte().Draw(t, "protocol")),
			Port: rapid.Uint16().Draw(t, "service"), NQN: drawText(0, snsd.MaxNQN).Draw(t, "nqn"),
		}
		h.Host.Since = drawTime(t)
		h.Host.Claim = rapid.SampledFrom([]zone.Claim{zone.ClaimHolder, zone.ClaimRival}).Draw(t, "claim")
		h.Host.Doubt = rapid.Bool().Draw(t, "doubt")
		h.Host.Down = drawDown(t)
	}
	return h
}

func drawDown(t *rapid.T) zone.Down {
	if why := snsd.Reason(rapid.Byte().Draw(t, "why")); why != snsd.ReasonNone {
		return zone.Down{Why: why, Since: drawTime(t)}
	}
	return zone.Down{}
}

func drawDowns(t *rapid.T) wire.DownRecord {
	return wire.DownRecord{Device: drawAddr(t), Port: drawText(1, 63).Draw(t, "port"), Down: drawDown(t), Addrs: rapid.SliceOfN(rapid.Custom(drawAddr), 0, 20).Draw(t, "addresses")}
}

func drawFence(t *rapid.T) wire.FenceRecord {
	peer := func(t *rapid.T) wire.FencePeer {
		p := wire.FencePeer{Level: snsd.FenceLevel(rapid.IntRange(0, 1).Draw(t, "level")), Since: drawTime(t),
			Hold: time.Duration(rapid.Uint16().Draw(t, "hold")) * time.Second, Took: time.Duration(rapid.Uint32().Draw(t, "took")) * time.Millisecond}
		if rapid.Bool().Draw(t, "one host") {
			p.Host = drawAddr(t)
		}
		return p
	}
	return wire.FenceRecord{Device: drawAddr(t), Port: drawText(1, 63).Draw(t, "port"), Array: drawAddr(t), Peers: rapid.SliceOfN(rapid.Custom(peer), 0, 20).Draw(t, "hosts")}
}

func drawZone(t *rapid.T) wire.ZoneRecord {
	z := wire.ZoneRecord{Op: drawOp(t), Zone: zone.Zone{Name: drawText(1, zone.MaxName).Draw(t, "name")}}
	if z.Op == wire.Put {
		z.Zone.Members = rapid.SliceOfN(rapid.Custom(drawAnyMember), 0, 10).Draw(t, "members")
	}
	return z
}

// drawStamp draws one that is known: on the wire epoch 0 and no stamp are the same.
func drawStamp(t *rapid.T) wire.Stamp {
	return wire.Stamp{Epoch: rapid.Uint64Min(1).Draw(t, "stamp epoch"), Seq: rapid.Uint64().Draw(t, "stamp seq")}
}

// drawCluster draws a cluster's state or none.
func drawCluster(t *rapid.T) wire.ClusterStamp {
	if rapid.Bool().Draw(t, "cluster") {
		return wire.ClusterStamp{ID: rapid.Uint64Min(1).Draw(t, "cluster id"), Index: rapid.Uint64().Draw(t, "cluster index")}
	}
	return wire.ClusterStamp{}
}

func drawUpdate(t *rapid.T) *wire.Update {
	u := &wire.Update{
		Origin: drawAddr(t), Epoch: rapid.Uint64().Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq"),
		FaultAt: drawTime(t), SentAt: drawTime(t), ReflectedAt: drawTime(t), DecidedAt: drawTime(t), ReflectorAt: drawTime(t),
		Zones:  rapid.SliceOfN(rapid.Custom(drawZone), 0, 4).Draw(t, "zones"),
		Hosts:  rapid.SliceOfN(rapid.Custom(drawHost), 0, 4).Draw(t, "hosts"),
		Downs:  rapid.SliceOfN(rapid.Custom(drawDowns), 0, 4).Draw(t, "downs"),
		Fences: rapid.SliceOfN(rapid.Custom(drawFence), 0, 4).Draw(t, "fences"),
	}
	u.Devices = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wire.DeviceStamp { return wire.DeviceStamp{Device: drawAddr(t), Stamp: drawStamp(t)} }), 0, 4).Draw(t, "devices")
	if rapid.Bool().Draw(t, "position") {
		u.Pos = drawStamp(t)
	}
	u.Partial, u.Anew, u.More = rapid.Bool().Draw(t, "partial"), rapid.Bool().Draw(t, "anew"), rapid.Bool().Draw(t, "more")
	u.Cluster = drawCluster(t)
	if rapid.Bool().Draw(t, "refused") {
		u.Refused = &wire.Refusal{Hosts: rapid.Uint32().Draw(t, "refused hosts"), Limit: rapid.Uint32().Draw(t, "limit"), Again: rapid.Bool().Draw(t, "again"), Outside: rapid.Uint32().Draw(t, "outside")}
		for range rapid.IntRange(0, wire.MaxOutsideNamed).Draw(t, "named") {
			u.Refused.Named = append(u.Refused.Named, drawAddr(t))
		}
	}
	if rapid.Bool().Draw(t, "settings") {
		u.Settings = &wire.Settings{Halt: wire.Halt{On: rapid.Bool().Draw(t, "halt"), OpenZoning: rapid.Bool().Draw(t, "open zoning")}, AutoJoin: rapid.Bool().Draw(t, "auto"), Hard: rapid.Bool().Draw(t, "hard"), BFD: wire.BFDSettings{
			Enabled: rapid.Bool().Draw(t, "bfd"), MeshAll: rapid.Bool().Draw(t, "mesh all"), DetectMult: rapid.Byte().Draw(t, "mult"),
			Interval: time.Duration(rapid.IntRange(0, 60_000_000).Draw(t, "us")) * time.Microsecond,
		}}
	}
	return u
}

func drawMessage(t *rapid.T) wire.Message {
	switch wire.MsgType(rapid.IntRange(1, int(wire.TypeBound)).Draw(t, "type")) {
	case wire.TypeOpen:
		o := &wire.Open{
			Device: drawAddr(t), Roles: wire.Roles(rapid.Byte().Draw(t, "roles")), MinVersion: rapid.Byte().Draw(t, "min"), MaxVersion: rapid.Byte().Draw(t, "max"),
			Caps: wire.Capabilities(rapid.Uint64().Draw(t, "caps")), Epoch: rapid.Uint64().Draw(t, "epoch"), Auth: wire.AuthMode(rapid.Byte().Draw(t, "auth")),
			Hold:      time.Duration(rapid.IntRange(0, 3_600_000).Draw(t, "hold")) * time.Millisecond,
			Keepalive: time.Duration(rapid.IntRange(0, 3_600_000).Draw(t, "keepalive")) * time.Millisecond,
		}
		copy(o.Nonce[:], rapid.SliceOfN(rapid.Byte(), wire.NonceLen, wire.NonceLen).Draw(t, "nonce"))
		if rapid.Bool().Draw(t, "resume") {
			o.Resume = &wire.Resume{Epoch: rapid.Uint64().Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq")}
			copy(o.Resume.Zones[:], rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "zones"))
		}
		return o
	case wire.TypeKeepalive:
		return &wire.Keepalive{}
	case wire.TypeUpdate:
		return drawUpdate(t)
	case wire.TypeEndOfSync:
		return &wire.EndOfSync{Epoch: rapid.Uint64().Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq"), Resumed: rapid.Bool().Draw(t, "resumed"),
			Short:   rapid.SliceOfN(rapid.Custom(drawAddr), 0, wire.MaxSyncShort).Draw(t, "short"),
			Cluster: drawCluster(t), Members: rapid.SliceOfN(rapid.Custom(drawAddr), 0, wire.MaxClusterMembers).Draw(t, "members")}
	case wire.TypePathKeys:
		m := &wire.PathKeys{Asked: rapid.SliceOfN(rapid.Custom(drawAddr), 0, wire.MaxPathKeys).Draw(t, "asked")}
		for range rapid.IntRange(0, 5).Draw(t, "keys") {
			k := wire.PathKey{Device: drawAddr(t), ID: rapid.Uint8().Draw(t, "id")}
			copy(k.Secret[:], rapid.SliceOfN(rapid.Byte(), wire.PathSecretLen, wire.PathSecretLen).Draw(t, "secret"))
			m.Keys = append(m.Keys, k)
		}
		return m
	case wire.TypeBound:
		return &wire.Bound{Prefixes: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) netip.Prefix {
			a := drawAddr(t)
			p, _ := a.Prefix(rapid.IntRange(0, a.BitLen()).Draw(t, "bits"))
			return p
		}), 0, 5).Draw(t, "prefixes"), NQNs: rapid.SliceOfN(drawText(1, wire.MaxBoundName), 0, 5).Draw(t, "names"), Hosts: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wire.DeclaredHost {
			return wire.DeclaredHost{Addr: drawAddr(t), Ports: rapid.SliceOfN(drawText(1, fabric.MaxPortName), 1, wire.MaxDeclaredPorts).Draw(t, "ports"),
				Service: snsd.Service{Role: snsd.Role(rapid.Byte().Draw(t, "role")), Protocol: snsd.Protocol(rapid.Byte().Draw(t, "protocol")),
					Port: rapid.Uint16().Draw(t, "port"), NQN: drawText(0, snsd.MaxNQN).Draw(t, "nqn")}}
		}), 0, 3).Draw(t, "hosts")}
	case wire.TypeReport:
		return &wire.Report{Warnings: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wire.ReportedWarning {
			return wire.ReportedWarning{Rule: drawText(1, wire.MaxReportRule).Draw(t, "rule"), Text: drawText(0, wire.MaxReportText).Draw(t, "text")}
		}), 0, wire.MaxReportWarnings).Draw(t, "warnings")}
	}
	return &wire.Notification{Code: wire.Code(rapid.Uint16Min(1).Draw(t, "code")), Text: drawText(0, wire.MaxNotificationText).Draw(t, "text")}
}

func TestEveryMessageSurvivesTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		got, err := wire.Decode(inoftest.FrameOf(t, m))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got, inoftest.CmpOpts); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// The sizes by which a batch is cut are never below the true ones, and what comes
// out in pieces is what went in.
func TestBatchIsCutAtRecordBorders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b wire.Batch
		for i := range rapid.IntRange(0, 900).Draw(t, "hosts") {
			h := inoftest.HostAt(inoftest.HostIP(i%400), inoftest.DevID(i/400), "Ethernet1")
			h.NQN = strings.Repeat("x", i%200)
			b.Hosts = append(b.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
		}
		for range rapid.IntRange(0, 5).Draw(t, "zones") {
			b.Zones = append(b.Zones, drawZone(t))
		}
		var large uint64
		us := b.Updates(&wire.Update{Origin: inoftest.ReflID, Epoch: 1, Seq: 7}, &large)
		var hosts []wire.HostRecord
		var zones []wire.ZoneRecord
		for i, u := range us {
			if u.Seq != 7 {
				t.Fatalf("update %d has sequence %d", i, u.Seq)
			}
			n := len(inoftest.FrameOf(t, u))
			size := 256 // of all that is no record
			for i := range u.Zones {
				size += u.Zones[i].Size()
			}
			for i := range u.Hosts {
				size += u.Hosts[i].Size()
			}
			if n > size {
				t.Fatalf("update of %d bytes was estimated as %d", n, size)
			}
			if n > wire.SyncChunk+64<<10 {
				t.Fatalf("update of %d bytes", n)
			}
			zones, hosts = append(zones, u.Zones...), append(hosts, u.Hosts...)
		}
		if diff := cmp.Diff(b.Hosts, hosts, inoftest.CmpOpts); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(b.Zones, zones, inoftest.CmpOpts); diff != "" {
			t.Fatal(diff)
		}
		if large != 0 {
			t.Fatalf("%d records were too large", large)
		}
	})
}

func TestWrongBytesHaveTypedErrors(t *testing.T) {
	host := inoftest.FrameOf(t, &wire.Update{Origin: inoftest.DevID(0), Hosts: []wire.HostRecord{{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p")}}})
	open := inoftest.FrameOf(t, inoftest.Golden["open-client"])
	body := func(typ wire.MsgType, body ...byte) []byte {
		return append(inoftest.AppendHeader(nil, wire.HeaderLen+len(body), typ, 0, 1), body...)
	}
	origin, stamp := []byte{1, 0, 0, 5, 4, 192, 0, 2, 1}, append([]byte{2, 0, 0, 16}, make([]byte, 16)...)
	update := func(more ...byte) []byte { return body(wire.TypeUpdate, slices.Concat(origin, stamp, more)...) }
	tests := []struct {
		name  string
		bytes []byte
		code  wire.Code
		text  string
	}{
		{"http", []byte("GET / HTTP/1.1\r\nHost: a\r\n"), wire.CodeNotINOF, "HTTP"},
		{"tls", []byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0, 0, 0, 0, 0, 0}, wire.CodeNotINOF, "TLS"},
		{"bgp", slices.Repeat([]byte{0xff}, 19), wire.CodeNotINOF, "BGP"},
		{"ssh", []byte("SSH-2.0-OpenSSH_9.2p1"), wire.CodeNotINOF, "SSH"},
		{"random", slices.Repeat([]byte{0x5a}, 40), wire.CodeNotINOF, "another protocol"},
		{"short", []byte{0, 0, 0}, wire.CodeLength, "3 bytes, want 16"},
		{"version 1", inoftest.Edit(host, func(b []byte) []byte { b[4] = 1; return b }), wire.CodeVersion, "came in version 1, the sender of this answer speaks version 2"},
		{"version 0", inoftest.Edit(host, func(b []byte) []byte { b[4] = 0; return b }), wire.CodeVersion, "came in version 0"},
		{"length too small", inoftest.Edit(host, func(b []byte) []byte { b[2], b[3] = 0, 15; return b }), wire.CodeLength, "length 15, want 16..1048576"},
		{"tagged too small", inoftest.Edit(host, func(b []byte) []byte { b[2], b[3], b[7] = 0, 47, 1; return b }), wire.CodeLength, "want 48.."},
		{"length too large", inoftest.Edit(host, func(b []byte) []byte { b[1] = 0x10; b[3] = 1; return b }), wire.CodeLength, "1048576"},
		{"type 0", inoftest.Edit(host, func(b []byte) []byte { b[5] = 0; return b }), wire.CodeType, "type 0"},
		{"type 9", inoftest.Edit(host, func(b []byte) []byte { b[5] = 9; return b }), wire.CodeType, "type 9"},
		{"unknown flag", inoftest.Edit(host, func(b []byte) []byte { b[6] = 1; return b }), wire.CodeMalformed, "flags"},
		{"truncated TLV header", update(6, 0), wire.CodeMalformed, "no TLV header"},
		{"truncated TLV", update(6, 0, 0, 9, 1), wire.CodeMalformed, "length 9, but 1 bytes are left"},
		{"huge TLV", update(6, 0xff, 0xff, 0xff, 1), wire.CodeMalformed, "length 16777215"},
		{"critical unknown TLV", update(0x90, 0, 0, 0), wire.CodeMalformed, "must be understood"},
		{"truncated host", inoftest.Relength(host[:len(host)-3]), wire.CodeMalformed, "TLV type 6"},
		{"host operation", update(6, 0, 0, 2, 9, 0), wire.CodeMalformed, "operation 9"},
		{"address family", update(6, 0, 0, 3, 1, 0, 5), wire.CodeMalformed, "family 5, want 4 or 6"},
		{"mapped address", update(append([]byte{6, 0, 0, 19, 1, 0, 6}, []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x01\x02\x03\x04")...)...), wire.CodeMalformed, "IPv4 address in IPv6 form"},
		{"empty zone name", update(5, 0, 0, 2, 1, 0), wire.CodeMalformed, "length 0, want 1..63"},
		{"long zone name", update(append([]byte{5, 0, 0, 66, 1, 64}, make([]byte, 64)...)...), wire.CodeMalformed, "length 64, want 1..63"},
		{"zone name with escape", update(5, 0, 0, 4, 1, 2, 0x1b, '['), wire.CodeMalformed, "not printable"},
		{"member kind", update(5, 0, 0, 7, 1, 1, 'a', 9, 0, 1, 0), wire.CodeMalformed, "kind 9 with 1 bytes"},
		{"member address length", update(5, 0, 0, 9, 1, 1, 'a', 1, 0, 3, 1, 2, 3), wire.CodeMalformed, "kind 1 with 3 bytes"},
		{"range backwards", update(5, 0, 0, 14, 1, 1, 'a', 2, 0, 8, 9, 0, 0, 0, 8, 0, 0, 0), wire.CodeMalformed, "ends before it begins"},
		{"place kind", update(5, 0, 0, 8, 1, 1, 'a', 5, 0, 2, 9, 'n'), wire.CodeMalformed, "kind 9 is unknown"},
		{"place with bits behind the prefix", update(5, 0, 0, 14, 1, 1, 'a', 5, 0, 8, 1, 4, 10, 0, 0, 1, 24, 'n'), wire.CodeMalformed, "10.0.0.1/24 is no prefix"},
		{"place longer than an address", update(5, 0, 0, 14, 1, 1, 'a', 5, 0, 8, 1, 4, 10, 0, 0, 1, 33, 'n'), wire.CodeMalformed, "10.0.0.1/33 is no prefix"},
		{"place without NQN", update(5, 0, 0, 13, 1, 1, 'a', 5, 0, 7, 2, 4, 10, 0, 0, 1, 0), wire.CodeMalformed, "nqn"},
		{"settings interval", update(4, 0, 0, 6, 0, 0xff, 0, 0, 0, 3), wire.CodeMalformed, "at most 1m"},
		{"no origin", body(wire.TypeUpdate, stamp...), wire.CodeMalformed, "origin) is missing"},
		{"no stamp", body(wire.TypeUpdate, origin...), wire.CodeMalformed, "sequence) is missing"},
		{"no stamp in EndOfSync", body(wire.TypeEndOfSync), wire.CodeMalformed, "missing"},
		{"no code", body(wire.TypeNotification), wire.CodeMalformed, "missing"},
		{"a warning without a rule", body(wire.TypeReport, 1, 0, 0, 2, 0, 0), wire.CodeMalformed, "rule: length 0, want 1..64"},
		{"a truncated key", body(wire.TypePathKeys, 2, 0, 0, 7, 4, 10, 0, 0, 1, 9, 1), wire.CodeMalformed, "key: truncated"},
		{"sealed twice", body(wire.TypePathKeys, 3, 0, 0, 1, 1, 3, 0, 0, 1, 2), wire.CodeMalformed, "twice"},
		{"too many paths", body(wire.TypePathKeys, bytes.Repeat([]byte{1, 0, 0, 5, 4, 10, 0, 0, 1}, wire.MaxPathKeys+1)...), wire.CodeMalformed, "more than 256"},
		{"bound to a prefix with bits behind it", body(wire.TypeBound, 1, 0, 0, 6, 4, 10, 0, 0, 1, 24), wire.CodeMalformed, "10.0.0.1/24 is no prefix"},
		{"bound to a prefix longer than an address", body(wire.TypeBound, 1, 0, 0, 6, 4, 10, 0, 0, 1, 33), wire.CodeMalformed, "10.0.0.1/33 is no prefix"},
		{"bound to no name", body(wire.TypeBound, 2, 0, 0, 1, 0), wire.CodeMalformed, "name: length 0, want 1..255"},
		{"a declared host without a port", body(wire.TypeBound, 3, 0, 0, 10, 4, 10, 0, 0, 1, 1, 2, 0, 0, 0), wire.CodeMalformed, "host.port: "},
		{"a declared host with five ports", body(wire.TypeBound, 3, 0, 0, 20, 4, 10, 0, 0, 1, 1, 2, 0, 0, 0, 1, 'a', 1, 'b', 1, 'c', 1, 'd', 1, 'e'), wire.CodeMalformed, "host.ports: more than 4"},
		{"a declared host with an empty port", body(wire.TypeBound, 3, 0, 0, 11, 4, 10, 0, 0, 1, 1, 2, 0, 0, 0, 0), wire.CodeMalformed, "host.port: length 0, want 1..63"},
		{"bound to too much", body(wire.TypeBound, bytes.Repeat([]byte{2, 0, 0, 2, 1, '*'}, wire.MaxBound+1)...), wire.CodeMalformed, "more than 1024"},
		{"a truncated warning", body(wire.TypeReport, 1, 0, 0, 3, 1, 'a', 5), wire.CodeMalformed, "text"},
		{"open without epoch", inoftest.Edit(open, func(b []byte) []byte { return inoftest.Relength(b[:len(b)-5-12]) }), wire.CodeMalformed, "TLV type 7 is missing"},
		{"open with a TLV twice", inoftest.Edit(open, func(b []byte) []byte { return inoftest.Relength(append(b, 8, 0, 0, 1, 2)) }), wire.CodeMalformed, "twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := wire.Decode(tt.bytes)
			var p *wire.ProtocolError
			if !errors.As(err, &p) || p.Code != tt.code || !strings.Contains(err.Error(), tt.text) {
				t.Fatalf("got %v, %v; want code %v with %q", m, err, tt.code, tt.text)
			}
		})
	}
}

func TestUnknownTLVsAndTrailingFieldsAreSkipped(t *testing.T) {
	b := inoftest.FrameOf(t, &wire.EndOfSync{Epoch: 1, Seq: 2})
	b[wire.HeaderLen+3] += 2 // the stamp grows by two bytes
	b = inoftest.Relength(append(b, 0xaa, 0xbb, 0x50, 0, 0, 1, 7))
	m, err := wire.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&wire.EndOfSync{Epoch: 1, Seq: 2}, m); diff != "" {
		t.Fatal(diff)
	}
}

func TestWhatCannotBeSentIsRefused(t *testing.T) {
	good := inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p")
	bad := func(f func(h *zone.Host)) wire.Message {
		h := good
		f(&h)
		return &wire.Update{Origin: inoftest.DevID(0), Hosts: []wire.HostRecord{{Op: wire.Put, Host: h}}}
	}
	many := make([]netip.Addr, wire.MaxDownAddrs+1)
	for i := range many {
		many[i] = inoftest.HostIP(1)
	}
	members := make([]zone.Member, 60_000)
	for i := range members {
		members[i] = zone.Member{Kind: zone.MemberAddr, First: inoftest.GoldenRefl}
	}
	for name, m := range map[string]wire.Message{
		"no origin":     &wire.Update{},
		"no address":    bad(func(h *zone.Host) { h.Addr = netip.Addr{} }),
		"zone index":    bad(func(h *zone.Host) { h.Addr = netip.MustParseAddr("fe80::1%eth0") }),
		"no port":       bad(func(h *zone.Host) { h.HostKey.Port = "" }),
		"long port":     bad(func(h *zone.Host) { h.HostKey.Port = strings.Repeat("p", 64) }),
		"long NQN":      bad(func(h *zone.Host) { h.NQN = strings.Repeat("n", 256) }),
		"no operation":  &wire.Update{Origin: inoftest.DevID(0), Zones: []wire.ZoneRecord{{Zone: zone.Zone{Name: "a"}}}},
		"bad member":    &wire.Update{Origin: inoftest.DevID(0), Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "a", Members: []zone.Member{{}}}}}},
		"many addrs":    &wire.Update{Origin: inoftest.DevID(0), Downs: []wire.DownRecord{{Device: inoftest.DevID(0), Port: "p", Addrs: many}}},
		"many fenced":   &wire.Update{Origin: inoftest.DevID(0), Fences: []wire.FenceRecord{{Device: inoftest.DevID(0), Port: "p", Array: inoftest.HostIP(0), Peers: make([]wire.FencePeer, wire.MaxFencePeers+1)}}},
		"long hold":     &wire.Update{Origin: inoftest.DevID(0), Fences: []wire.FenceRecord{{Device: inoftest.DevID(0), Port: "p", Array: inoftest.HostIP(0), Peers: []wire.FencePeer{{Hold: 19 * time.Hour}}}}},
		"large message": &wire.Update{Origin: inoftest.DevID(0), Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "a", Members: members}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if e, err := wire.Encode(m); err == nil {
				t.Fatalf("encoded %d bytes", e.Len())
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range inoftest.Golden {
		e, err := wire.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(e.Append(nil, 1, false))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wire.Decode(b)
		if err != nil {
			var p *wire.ProtocolError
			if !errors.As(err, &p) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		// What was understood can be sent, and is then understood the same.
		again, err := wire.Decode(inoftest.FrameOf(t, m))
		if err != nil {
			t.Fatalf("%#v: %v", m, err)
		}
		if diff := cmp.Diff(m, again, inoftest.CmpOpts); diff != "" {
			t.Fatal(diff)
		}
	})
}
