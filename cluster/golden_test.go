package cluster

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		e, err := DecodeEntry(unhex(t, c.want))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if d := cmp.Diff(&c.e, e, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{})); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for want, e := range map[string]Entry{
		`{"kind":2,"id":{"origin":17,"number":2},"since":3,"meta":{"time":"1970-01-01T00:00:00.000000007Z","by":"alice","from":"x"},"member":"192.0.2.9","name":"db","members":["192.0.2.1"]}`: {Kind: KindAddZone,
			ID: RequestID{0x11, 2}, Since: 3, Member: netip.MustParseAddr("192.0.2.9"), Meta: change.Meta{Time: time.Unix(0, 7), By: "alice", From: "x"}, Name: "db", Members: parse([]string{"192.0.2.1"})},
		`{"kind":8,"id":{"origin":1,"number":1},"since":0,"meta":{"time":"0001-01-01T00:00:00Z","by":"","from":""},"member":"","delta":{"put":{},"gone":{"zones":["z"]}},"base":"b","deadline":"1970-01-01T00:00:00.000000009Z","number":4}`: {Kind: KindCommit,
			ID: RequestID{1, 1}, Base: "b", Number: 4, Deadline: time.Unix(0, 9), Delta: change.Delta{Gone: change.Gone{Zones: []string{"z"}}}},
		`{"kind":1,"id":{"origin":1,"number":1},"since":0,"meta":{"time":"0001-01-01T00:00:00Z","by":"","from":""},"member":"","zones":[{"name":"a","members":null}],"cluster":193,"rules":{"AllowLoopback":true,"MaxZones":160000,"MaxMembers":320000,"MaxSize":0,"BoundNQNs":false},"set":{"zones":null,"auto_join":true,"hard":false}}`: {Kind: KindGenesis,
			ID: RequestID{1, 1}, Cluster: 0xc1, Rules: zone.Rules{AllowLoopback: true, MaxZones: 160000, MaxMembers: 320000}, Set: zone.Set{AutoJoin: true}, Zones: []zone.Zone{{Name: "a"}}},
	} {
		if got := string(encode(t, e)); got != "\x02"+want {
			t.Errorf("%v:\n got %s\nwant %s", e.Kind, got, want)
		}
	}
	self, target := MemberID{netip.MustParseAddr("192.0.2.1"), 0xa1}, MemberID{netip.MustParseAddr("2001:db8::2"), 0xb2}
	var b bytes.Buffer
	if err := writeMessage(&b, request{Do: doStatus, From: self, To: target, Cluster: 0xc1}); err != nil {
		t.Fatal(err)
	}
	want := `{"do":"status","from":"192.0.2.1/00000000000000a1","to":"2001:db8::2/00000000000000b2","cluster":193}`
	if got := b.String(); got != "\x00\x00\x00\x65"+want {
		t.Errorf("request: %q", got)
	}
	if id := self.String(); id != "192.0.2.1/00000000000000a1" {
		t.Errorf("member id %s", id)
	}
	if back, err := ParseMemberID(target.String()); err != nil || back != target {
		t.Errorf("%v, %v", back, err)
	}
}
