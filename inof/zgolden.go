package inof

import (
	"encoding/hex"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// goldenPassword is the one of the examples in docs/protocol.md.
const goldenPassword = "correct horse"

// goldenNonce counts up from its first byte.
func goldenNonce(first byte) (n [NonceLen]byte) {
	for i := range n {
		n[i] = first + byte(i)
	}
	return n
}

// The two sides of the examples, and their time.
var (
	goldenClient = netip.MustParseAddr("192.0.2.1")
	goldenRefl   = netip.MustParseAddr("2001:db8::fa")
	goldenAt     = time.Unix(1_700_000_000, 250_000_000).UTC()
)

// golden are the messages of the examples in docs/protocol.md, by name of the example.
var golden = map[string]Message{
	"open-client": &Open{
		Device: goldenClient, Roles: RoleClient, MinVersion: 2, MaxVersion: 2, Hold: 9 * time.Second, Keepalive: 3 * time.Second,
		Nonce: goldenNonce(0x00), Epoch: 0x18a0_0000_0000_0001, Auth: AuthHMAC,
	},
	"open-reflector": &Open{
		Device: goldenRefl, Roles: RoleReflector | RoleClient, MinVersion: 2, MaxVersion: 2, Caps: 0, Hold: 9 * time.Second, Keepalive: time.Second,
		Nonce: goldenNonce(0x80), Epoch: 0x18a0_0000_0000_0002, Auth: AuthHMAC, Resume: &Resume{Epoch: 0x18a0_0000_0000_0001, Seq: 5},
	},
	"keepalive-none":      &Keepalive{},
	"keepalive-client":    &Keepalive{},
	"keepalive-demand":    &Keepalive{Demand: 0x5eed_0000_0000_0001},
	"keepalive-answer":    &Keepalive{Answer: 0x5eed_0000_0000_0001},
	"keepalive-reflector": &Keepalive{},
	"update-host": &Update{
		Origin: goldenClient, Epoch: 0x18a0_0000_0000_0001, Seq: 1, SentAt: goldenAt,
		Hosts: []HostRecord{
			{Op: Put, Host: zone.Host{
				HostKey: zone.HostKey{Addr: netip.MustParseAddr("198.51.100.7"), Device: goldenClient, Port: "Ethernet4"},
				MAC:     fabric.MAC{0x02, 0, 0, 0, 0, 0x07}, Subscribes: true, Since: goldenAt.Add(-time.Second),
				Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, Port: 4420, NQN: "nqn.2026-01.org.example:a"},
			}},
			{Op: Withdraw, Why: snsd.ReasonAgedOut, Host: zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr("2001:db8:1::8"), Device: goldenClient, Port: "Ethernet8"}}},
		},
	},
	"update-fault": &Update{
		Origin: goldenClient, Epoch: 0x18a0_0000_0000_0001, Seq: 2, FaultAt: goldenAt, SentAt: goldenAt.Add(150 * time.Microsecond), ReflectedAt: goldenAt.Add(300 * time.Microsecond),
		Faults: []FaultRecord{
			{Op: Put, Device: goldenClient, Port: "Ethernet4", Why: snsd.ReasonLinkDown, Since: goldenAt, Addrs: []netip.Addr{netip.MustParseAddr("198.51.100.7")}},
			{Op: Withdraw, Device: goldenClient, Port: "Ethernet8"},
		},
	},
	"update-fault-change": &Update{
		Origin: goldenClient, Epoch: 0x18a0_0000_0000_0001, Seq: 3, SentAt: goldenAt,
		Faults: []FaultRecord{
			{Op: Change, Device: goldenClient, Port: "Ethernet4", Why: snsd.ReasonLinkDown, Since: goldenAt,
				Addrs: []netip.Addr{netip.MustParseAddr("198.51.100.8")}, Gone: []netip.Addr{netip.MustParseAddr("198.51.100.7")}},
		},
	},
	"update-zones": &Update{
		Origin: goldenRefl, Epoch: 0x18a0_0000_0000_0002, Seq: 1, SentAt: goldenAt, ReflectedAt: goldenAt, More: true,
		Settings: &Settings{AutoJoin: true, BFD: BFDSettings{Enabled: true, Interval: 100 * time.Millisecond, DetectMult: 3}},
		Zones: []ZoneRecord{
			{Op: Put, Zone: zone.Zone{Name: "db", Members: []zone.Member{
				{Kind: zone.MemberAddr, First: netip.MustParseAddr("198.51.100.7")},
				{Kind: zone.MemberRange, First: netip.MustParseAddr("2001:db8:1::"), Last: netip.MustParseAddr("2001:db8:1::f")},
				{Kind: zone.MemberNQN, NQN: "nqn.2026-01.org.example:a"},
				{Kind: zone.MemberPort, Device: goldenClient, Port: "Ethernet4"},
				{Kind: zone.MemberBound, NQN: "nqn.2026-01.org.example:b", First: netip.MustParseAddr("198.51.100.0"), Last: netip.MustParseAddr("198.51.100.255")},
				{Kind: zone.MemberBound, NQN: "nqn.2026-01.org.example:c", Device: goldenClient},
				{Kind: zone.MemberBound, NQN: "nqn.2026-01.org.example:d", Device: goldenClient, Port: "Ethernet4"},
			}}},
			{Op: Withdraw, Zone: zone.Zone{Name: "old"}},
		},
	},
	"update-refused": &Update{
		Origin: goldenRefl, Epoch: 0x18a0_0000_0000_0002, Seq: 7, SentAt: goldenAt, ReflectedAt: goldenAt, Partial: true,
		Refused: &Refusal{Hosts: 2, Limit: 100, Outside: 1, Named: []netip.Addr{netip.MustParseAddr("198.51.100.9")}},
	},
	"update-run": &Update{
		Origin: goldenRefl, Epoch: 0x18a0_0000_0000_0002, Seq: 7, SentAt: goldenAt, ReflectedAt: goldenAt,
		Devices: []DeviceStamp{
			{Device: netip.MustParseAddr("192.0.2.2"), Stamp: Stamp{Epoch: 0x18a0_0000_0000_0003, Seq: 12}},
			{Device: netip.MustParseAddr("2001:db8::2"), Stamp: Stamp{Epoch: 0x18a0_0000_0000_0004, Seq: 1}},
		},
		Partial: true,
		Hosts: []HostRecord{
			{Op: Withdraw, Why: snsd.ReasonIPChanged, Host: zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr("198.51.100.9"), Device: netip.MustParseAddr("192.0.2.2"), Port: "Ethernet0"}}},
		},
		Faults: []FaultRecord{{Op: Withdraw, Device: netip.MustParseAddr("2001:db8::2"), Port: "Ethernet4"}},
	},
	"update-position": &Update{
		Origin: netip.MustParseAddr("192.0.2.2"), Epoch: 0x18a0_0000_0000_0003, Seq: 13, SentAt: goldenAt, ReflectedAt: goldenAt.Add(100 * time.Microsecond),
		Pos:    Stamp{Epoch: 0x18a0_0000_0000_0002, Seq: 8},
		Faults: []FaultRecord{{Op: Withdraw, Device: netip.MustParseAddr("192.0.2.2"), Port: "Ethernet0"}},
	},
	"end-of-sync-resumed": &EndOfSync{Epoch: 0x18a0_0000_0000_0002, Seq: 8, Resumed: true},
	"update-cluster": &Update{
		Origin: goldenRefl, Epoch: 0x18a0_0000_0000_0002, Seq: 2, SentAt: goldenAt, ReflectedAt: goldenAt,
		Cluster: ClusterStamp{ID: 0x5eed_0000_0000_00c1, Index: 42},
		Zones:   []ZoneRecord{{Op: Withdraw, Zone: zone.Zone{Name: "old"}}},
	},
	"end-of-sync-cluster": &EndOfSync{
		Epoch: 0x18a0_0000_0000_0002, Seq: 2, Resumed: true, Cluster: ClusterStamp{ID: 0x5eed_0000_0000_00c1, Index: 42},
		Members: []netip.Addr{netip.MustParseAddr("192.0.2.250"), goldenRefl},
	},
	"end-of-sync":     &EndOfSync{Epoch: 0x18a0_0000_0000_0001, Seq: 2},
	"notification":    &Notification{Code: CodeAuthMode, Text: "mode none"},
	"path-keys-asked": &PathKeys{Asked: []netip.Addr{netip.MustParseAddr("192.0.2.3"), netip.MustParseAddr("2001:db8::4")}},
	"path-keys": &PathKeys{Keys: []PathKey{{Device: netip.MustParseAddr("192.0.2.3"), ID: 106, Secret: [PathSecretLen]byte{
		0x62, 0x48, 0x43, 0xe2, 0xfa, 0x7f, 0x88, 0x71, 0x99, 0xd1, 0x72, 0x4c, 0x4b, 0xe1, 0x0b, 0xa9, 0x3a, 0xcf, 0x65, 0x89,
	}}}},
	"path-keys-sealed": &PathKeys{Sealed: goldenSealed},
	"bound": &Bound{
		Prefixes: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:1::/64")},
		NQNs:     []string{"nqn.2026-01.org.example:rack7-*"},
	},
	"report": &Report{Warnings: []ReportedWarning{{Rule: "path-down", Text: "the path to device 192.0.2.3 fails"}}},
}

// goldenSealed is the example "path-keys" as the reflector of goldenSession encrypts it.
var goldenSealed, _ = hex.DecodeString("7b82a61720542d2bd64012f5ee5b60f2839edbf151642692857dd5f868ce6975730d239cb155fdd8346fc9922146")

// goldenFrame is the wire form of an example.
func goldenFrame(t *testing.T, name string, session map[string][]byte) []byte {
	t.Helper()
	if f, ok := session[name]; ok {
		return f
	}
	e, err := Encode(golden[name])
	if err != nil {
		t.Fatal(err)
	}
	if e.Type() == TypeNotification {
		return e.Append(nil, 0, false)
	}
	return e.Append(nil, 1, false)
}
