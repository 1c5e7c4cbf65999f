package inoftest

import (
	"encoding/hex"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// goldenPassword is the one of the examples in docs/protocol.md.
const GoldenPassword = "correct horse"

// goldenNonce counts up from its first byte.
func GoldenNonce(first byte) (n [wire.NonceLen]byte) {
	for i := range n {
		n[i] = first + byte(i)
	}
	return n
}

// The two sides of the examples, and their time.
var (
	GoldenClient = netip.MustParseAddr("192.0.2.1")
	GoldenRefl   = netip.MustParseAddr("2001:db8::fa")
	goldenAt     = time.Unix(1_700_000_000, 250_000_000).UTC()
)

// goldenZones is the digest of one zone.
func goldenZones() (d wire.ZoneDigest) {
	d.Toggle("db", wire.PackMembers([]zone.Member{AddrMember(netip.MustParseAddr("198.51.100.7"))}))
	return d
}

// golden are the messages of the examples in docs/protocol.md, by name of the example.
var Golden = map[string]wire.Message{
	"open-client": &wire.Open{
		Device: GoldenClient, Roles: wire.RoleClient, MinVersion: 2, MaxVersion: 2, Hold: 9 * time.Second, Keepalive: 3 * time.Second,
		Nonce: GoldenNonce(0x00), Epoch: 0x18a0_0000_0000_0001, Auth: wire.AuthHMAC,
	},
	"open-reflector": &wire.Open{
		Device: GoldenRefl, Roles: wire.RoleReflector | wire.RoleClient, MinVersion: 2, MaxVersion: 2, Caps: 0, Hold: 9 * time.Second, Keepalive: time.Second,
		Nonce: GoldenNonce(0x80), Epoch: 0x18a0_0000_0000_0002, Auth: wire.AuthHMAC, Resume: &wire.Resume{Epoch: 0x18a0_0000_0000_0001, Seq: 5},
	},
	"open-resume": &wire.Open{
		Device: GoldenClient, Roles: wire.RoleClient, MinVersion: 2, MaxVersion: 2, Hold: 9 * time.Second, Keepalive: 3 * time.Second,
		Nonce: GoldenNonce(0x00), Epoch: 0x18a0_0000_0000_0001, Auth: wire.AuthNone, Resume: &wire.Resume{Epoch: 0x18a0_0000_0000_0002, Seq: 7, Zones: goldenZones()},
	},
	"keepalive-none":      &wire.Keepalive{},
	"keepalive-client":    &wire.Keepalive{},
	"keepalive-demand":    &wire.Keepalive{Demand: 0x5eed_0000_0000_0001},
	"keepalive-answer":    &wire.Keepalive{Answer: 0x5eed_0000_0000_0001},
	"keepalive-reflector": &wire.Keepalive{},
	"update-host": &wire.Update{
		Origin: GoldenClient, Epoch: 0x18a0_0000_0000_0001, Seq: 1, SentAt: goldenAt,
		Hosts: []wire.HostRecord{
			{Op: wire.Put, Host: zone.Host{
				HostKey: zone.HostKey{Addr: netip.MustParseAddr("198.51.100.7"), Device: GoldenClient, Port: "Ethernet4"},
				MAC:     fabric.MAC{0x02, 0, 0, 0, 0, 0x07}, Subscribes: true, Since: goldenAt.Add(-time.Second),
				Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, Port: 4420, NQN: "nqn.2026-01.org.example:a"},
			}},
			{Op: wire.Withdraw, Why: snsd.ReasonAgedOut, Host: zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr("2001:db8:1::8"), Device: GoldenClient, Port: "Ethernet8"}}},
		},
	},
	"update-fault": &wire.Update{
		Origin: GoldenClient, Epoch: 0x18a0_0000_0000_0001, Seq: 2, FaultAt: goldenAt, SentAt: goldenAt.Add(150 * time.Microsecond), ReflectedAt: goldenAt.Add(300 * time.Microsecond),
		Downs: []wire.DownRecord{
			{Device: GoldenClient, Port: "Ethernet4", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: goldenAt}, Addrs: []netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("198.51.100.8")}},
			{Device: GoldenClient, Port: "Ethernet8", Addrs: []netip.Addr{netip.MustParseAddr("198.51.100.9")}},
		},
	},
	"update-fence": &wire.Update{
		Origin: GoldenClient, Epoch: 0x18a0_0000_0000_0001, Seq: 4, FaultAt: goldenAt, SentAt: goldenAt.Add(150 * time.Microsecond),
		Fences: []wire.FenceRecord{
			{Device: GoldenClient, Port: "Ethernet4", Array: netip.MustParseAddr("198.51.100.7"), Peers: []wire.FencePeer{
				{Host: netip.MustParseAddr("198.51.100.21"), Level: snsd.FenceNetwork, Since: goldenAt, Hold: 20 * time.Second, Took: 12 * time.Millisecond},
				{Level: snsd.FenceNetwork, Since: goldenAt, Hold: 20 * time.Second},
				{Host: netip.MustParseAddr("2001:db8:1::9"), Since: goldenAt, Hold: 20 * time.Second},
			}},
			{Device: GoldenClient, Port: "Ethernet8", Array: netip.MustParseAddr("198.51.100.9")},
		},
	},
	"update-host-down": &wire.Update{
		Origin: GoldenClient, Epoch: 0x18a0_0000_0000_0001, Seq: 3, SentAt: goldenAt,
		Hosts: []wire.HostRecord{{Op: wire.Put, Host: zone.Host{
			HostKey: zone.HostKey{Addr: netip.MustParseAddr("198.51.100.8"), Device: GoldenClient, Port: "Ethernet4"},
			MAC:     fabric.MAC{0x02, 0, 0, 0, 0, 0x08}, Since: goldenAt.Add(-time.Second),
			Down: zone.Down{Why: snsd.ReasonLinkDown, Since: goldenAt},
		}}},
	},
	"update-zones": &wire.Update{
		Origin: GoldenRefl, Epoch: 0x18a0_0000_0000_0002, Seq: 1, SentAt: goldenAt, ReflectedAt: goldenAt, More: true,
		Settings: &wire.Settings{AutoJoin: true, BFD: wire.BFDSettings{Enabled: true, Interval: 100 * time.Millisecond, DetectMult: 3}},
		Zones: []wire.ZoneRecord{
			{Op: wire.Put, Zone: zone.Zone{Name: "db", Members: []zone.Member{
				{Kind: zone.MemberAddr, First: netip.MustParseAddr("198.51.100.7")},
				{Kind: zone.MemberRange, First: netip.MustParseAddr("2001:db8:1::"), Last: netip.MustParseAddr("2001:db8:1::f")},
				{Kind: zone.MemberNQN, NQN: "nqn.2026-01.org.example:a"},
				{Kind: zone.MemberPort, Device: GoldenClient, Port: "Ethernet4"},
				{Kind: zone.MemberBound, NQN: "nqn.2026-01.org.example:b", First: netip.MustParseAddr("198.51.100.0"), Last: netip.MustParseAddr("198.51.100.255")},
				{Kind: zone.MemberBound, NQN: "nqn.2026-01.org.example:c", Device: GoldenClient},
				{Kind: zone.MemberBound, NQN: "nqn.2026-01.org.example:d", Device: GoldenClient, Port: "Ethernet4"},
			}}},
			{Op: wire.Withdraw, Zone: zone.Zone{Name: "old"}},
		},
	},
	"update-refused": &wire.Update{
		Origin: GoldenRefl, Epoch: 0x18a0_0000_0000_0002, Seq: 7, SentAt: goldenAt, ReflectedAt: goldenAt, Partial: true,
		Refused: &wire.Refusal{Hosts: 2, Limit: 100, Outside: 1, Named: []netip.Addr{netip.MustParseAddr("198.51.100.9")}},
	},
	"update-run": &wire.Update{
		Origin: GoldenRefl, Epoch: 0x18a0_0000_0000_0002, Seq: 7, SentAt: goldenAt, ReflectedAt: goldenAt,
		Devices: []wire.DeviceStamp{
			{Device: netip.MustParseAddr("192.0.2.2"), Stamp: wire.Stamp{Epoch: 0x18a0_0000_0000_0003, Seq: 12}},
			{Device: netip.MustParseAddr("2001:db8::2"), Stamp: wire.Stamp{Epoch: 0x18a0_0000_0000_0004, Seq: 1}},
		},
		Partial: true,
		Hosts: []wire.HostRecord{
			{Op: wire.Withdraw, Why: snsd.ReasonIPChanged, Host: zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr("198.51.100.9"), Device: netip.MustParseAddr("192.0.2.2"), Port: "Ethernet0"}}},
		},
		Downs: []wire.DownRecord{{Device: netip.MustParseAddr("2001:db8::2"), Port: "Ethernet4", Addrs: []netip.Addr{netip.MustParseAddr("2001:db8:1::9")}}},
	},
	"update-position": &wire.Update{
		Origin: netip.MustParseAddr("192.0.2.2"), Epoch: 0x18a0_0000_0000_0003, Seq: 13, SentAt: goldenAt, ReflectedAt: goldenAt.Add(100 * time.Microsecond),
		Pos:   wire.Stamp{Epoch: 0x18a0_0000_0000_0002, Seq: 8},
		Downs: []wire.DownRecord{{Device: netip.MustParseAddr("192.0.2.2"), Port: "Ethernet0", Addrs: []netip.Addr{netip.MustParseAddr("198.51.100.9")}}},
	},
	"end-of-sync-resumed": &wire.EndOfSync{Epoch: 0x18a0_0000_0000_0002, Seq: 8, Resumed: true},
	"update-cluster": &wire.Update{
		Origin: GoldenRefl, Epoch: 0x18a0_0000_0000_0002, Seq: 2, SentAt: goldenAt, ReflectedAt: goldenAt,
		Cluster: wire.ClusterStamp{ID: 0x5eed_0000_0000_00c1, Index: 42},
		Zones:   []wire.ZoneRecord{{Op: wire.Withdraw, Zone: zone.Zone{Name: "old"}}},
	},
	"end-of-sync-cluster": &wire.EndOfSync{
		Epoch: 0x18a0_0000_0000_0002, Seq: 2, Resumed: true, Cluster: wire.ClusterStamp{ID: 0x5eed_0000_0000_00c1, Index: 42},
		Members: []netip.Addr{netip.MustParseAddr("192.0.2.250"), GoldenRefl},
	},
	"end-of-sync":     &wire.EndOfSync{Epoch: 0x18a0_0000_0000_0001, Seq: 2},
	"notification":    &wire.Notification{Code: wire.CodeAuthMode, Text: "mode none"},
	"path-keys-asked": &wire.PathKeys{Asked: []netip.Addr{netip.MustParseAddr("192.0.2.3"), netip.MustParseAddr("2001:db8::4")}},
	"path-keys": &wire.PathKeys{Keys: []wire.PathKey{{Device: netip.MustParseAddr("192.0.2.3"), ID: 106, Secret: [wire.PathSecretLen]byte{
		0x62, 0x48, 0x43, 0xe2, 0xfa, 0x7f, 0x88, 0x71, 0x99, 0xd1, 0x72, 0x4c, 0x4b, 0xe1, 0x0b, 0xa9, 0x3a, 0xcf, 0x65, 0x89,
	}}}},
	"path-keys-sealed": &wire.PathKeys{Sealed: goldenSealed},
	"bound": &wire.Bound{
		Prefixes: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:1::/64")},
		NQNs:     []string{"nqn.2026-01.org.example:rack7-*"},
		Hosts: []wire.DeclaredHost{{Addr: netip.MustParseAddr("198.51.100.51"), Ports: []string{"Ethernet4", "Ethernet8-12"},
			Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolTCP, Port: 4420, NQN: "nqn.2026-01.org.example:array1"}}},
	},
	"report": &wire.Report{Warnings: []wire.ReportedWarning{{Rule: "path-down", Text: "the path to device 192.0.2.3 fails"}}},
}

// goldenSealed is the example "path-keys" as the reflector of goldenSession encrypts it.
var goldenSealed, _ = hex.DecodeString("7b82a61720542d2bd64012f5ee5b60f2839edbf151642692857dd5f868ce6975730d239cb155fdd8346fc9922146")

// goldenFrame is the wire form of an example.
func GoldenFrame(t *testing.T, name string, session map[string][]byte) []byte {
	t.Helper()
	if f, ok := session[name]; ok {
		return f
	}
	e, err := wire.Encode(Golden[name])
	if err != nil {
		t.Fatal(err)
	}
	if e.Type() == wire.TypeNotification || e.Type() == wire.TypeOpen {
		return e.Append(nil, 0, false)
	}
	return e.Append(nil, 1, false)
}
