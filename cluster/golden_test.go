package cluster

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What is on disks and on the wire must mean the same to every later version.
func TestBytesStayWhatTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		e    Entry
		want string
	}{
		"add zone": {Entry{Kind: KindAddZone, ID: RequestID{0x11, 2}, Since: 3, Meta: change.Meta{Time: time.Unix(0, 7), By: "alice", From: "x"}, Name: "db", Members: parse([]string{"192.0.2.1"})},
			"01 02 0000000000000011 0000000000000002 0000000000000003 0000000000000007 0005 616c696365 0001 78 0000  0002 6462  00000001  0009 3139322e302e322e31"},
		"remove zone": {Entry{Kind: KindRemoveZone, ID: RequestID{0x11, 4}, Since: 5, Name: "db"},
			"01 03 0000000000000011 0000000000000004 0000000000000005 0000000000000000 0000 0000 0000  0002 6462"},
		"setting": {Entry{Kind: KindSetting, ID: RequestID{1, 1}, Name: "hard-zoning", Value: "true"},
			"01 07 0000000000000001 0000000000000001 0000000000000000 0000000000000000 0000 0000 0000  000b 686172642d7a6f6e696e67  0004 74727565"},
		"commit": {Entry{Kind: KindCommit, ID: RequestID{1, 1}, Base: "b", Deadline: time.Unix(0, 9), Delta: change.Delta{Gone: change.Gone{Zones: []string{"z"}}}},
			"01 08 0000000000000001 0000000000000001 0000000000000000 0000000000000000 0000 0000 0000  0001 62 0000000000000009 00000021" + hex.EncodeToString([]byte(`{"put":{},"gone":{"zones":["z"]}}`))},
		"commit that extends another": {Entry{Kind: KindCommit, ID: RequestID{1, 1}, Base: "b", Number: 4, Deadline: time.Unix(0, 9), Delta: change.Delta{Gone: change.Gone{Zones: []string{"z"}}}},
			"01 08 0000000000000001 0000000000000001 0000000000000000 0000000000000000 0000 0000 0000  0001 62 0000000000000009 00000021" + hex.EncodeToString([]byte(`{"put":{},"gone":{"zones":["z"]}}`)) + " 0000000000000004"},
		"settle": {Entry{Kind: KindSettle, ID: RequestID{1, 1}, Number: 5, Stay: true},
			"01 09 0000000000000001 0000000000000001 0000000000000000 0000000000000000 0000 0000 0000  0000000000000005 01"},
		"genesis": {Entry{Kind: KindGenesis, ID: RequestID{1, 1}, Cluster: 0xc1, Rules: zone.Rules{AllowLoopback: true, MaxZones: 160000, MaxMembers: 320000}, Set: zone.Set{AutoJoin: true}, Zones: []zone.Zone{{Name: "a"}}},
			"01 01 0000000000000001 0000000000000001 0000000000000000 0000000000000000 0000 0000 0000  00000000000000c1 01 00  01 00027100 0004e200  00000001  0001 61 00000000"},
	} {
		if got, want := hex.EncodeToString(encode(t, c.e)), hex.EncodeToString(unhex(t, c.want)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	h := hello{Mode: wire.AuthHMAC, Self: MemberID{netip.MustParseAddr("192.0.2.1"), 0xa1}, Target: MemberID{netip.MustParseAddr("2001:db8::2"), 0xb2}, Cluster: 0xc1, Fresh: true}
	for i := range h.Nonce {
		h.Nonce[i] = byte(i)
	}
	want := "694e4f46636c7573 02 02  04c0000201 00000000000000a1  0620010db8000000000000000000000002 00000000000000b2  00000000000000c1 01" +
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	if got := hex.EncodeToString(h.encode()); got != hex.EncodeToString(unhex(t, want)) {
		t.Errorf("hello:\n got %s\nwant %s", got, want)
	}
	if got := hex.EncodeToString(newSeal(nil).append(nil, recordRequest, []byte{byte(opStatus)})); got != "0000000e02000000000000000111" {
		t.Errorf("record: %s", got)
	}
	tagged := newSeal([]byte("key")).append(nil, recordProof)
	if len(tagged) != recordHead+recordTag || hex.EncodeToString(tagged[:recordHead]) != "0000002d010000000000000001" {
		t.Errorf("tagged record: %x", tagged)
	}
	if id := h.Self.String(); id != "192.0.2.1/00000000000000a1" {
		t.Errorf("member id %s", id)
	}
	if back, err := ParseMemberID(h.Target.String()); err != nil || back != h.Target {
		t.Errorf("%v, %v", back, err)
	}
}
