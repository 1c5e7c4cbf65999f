package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

func member(t *testing.T, s string) zone.Member {
	t.Helper()
	m, err := zone.ParseMember(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func testSet(t *testing.T) zone.Set {
	return zone.Set{Zones: []zone.Zone{
		{Name: "green: 'x' #1", Members: []zone.Member{member(t, "port:192.0.2.250/Ethernet1.100"), member(t, "nqn.2026-01.org.example:a")}},
		{Name: "blue", Members: []zone.Member{member(t, "192.0.2.9"), member(t, "2001:db8::/64"), member(t, "192.0.2.1-192.0.2.5")}},
		{Name: "null"}, {Name: "12"}, {Name: "true"},
	}}
}

func TestZonesSurviveSavingAndLoading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zones.yaml")
	set := testSet(t)
	if err := SavePlan(path, change.PlanOf(set)); err != nil {
		t.Fatal(err)
	}
	got, err := LoadZones(path, zone.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(set.Canonical(), got, cmpNetip); d != "" {
		t.Error(d)
	}
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o640 {
		t.Errorf("a new file has mode %v", st.Mode())
	}
}

func TestSavedZonesAreCanonical(t *testing.T) {
	set := testSet(t)
	var a, b bytes.Buffer
	if err := WriteZones(&a, set); err != nil {
		t.Fatal(err)
	}
	set.Zones[0], set.Zones[1] = set.Zones[1], set.Zones[0]
	m := set.Zones[0].Members
	set.Zones[0].Members = append([]zone.Member{m[2], m[0], m[1]}, m[0])
	if err := WriteZones(&b, set); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a.String(), b.String()); d != "" {
		t.Error(d)
	}
	const want = `# Zones, written by inofd. After an edit by hand: inofctl check, then reload.
zones:
  - name: "12"
    members: []
  - name: blue
    members:
      - 192.0.2.9
      - 192.0.2.1-192.0.2.5
      - 2001:db8::/64
`
	if got := a.String(); !strings.HasPrefix(got, want) {
		t.Errorf("got:\n%s", got)
	}
}

func TestSavingKeepsModeAndLinkAndLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "zones.yaml"), filepath.Join(dir, "link.yaml")
	if err := os.WriteFile(path, []byte("zones: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := SavePlan(link, change.PlanOf(testSet(t))); err != nil {
		t.Fatal(err)
	}
	st, err := os.Lstat(path)
	if err != nil || st.Mode() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if st, _ := os.Lstat(link); st.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("left behind: %v", list)
	}
	err = SavePlan(filepath.Join(dir, "none", "zones.yaml"), change.PlanOf(testSet(t)))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "saving zones to") {
		t.Error(err)
	}
	if err := SavePlan(dir, change.PlanOf(testSet(t))); err == nil {
		t.Error("a directory was replaced")
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("left behind by a failure: %v", list)
	}
}

func TestMistakesInAZoneFileAreAllReported(t *testing.T) {
	const file = `zones:
  - name: blue
    members: [192.0.2.1, 192.0.2.300, 192.0.2.9-192.0.2.1]
  - name: green
    member: [192.0.2.1]
  - members: [192.0.2.1]
  - name: blue
  - name: default
    members:
      - 127.0.0.1
      - {a: b}
  - name: ""
  - plain
  - name: last
    members: 192.0.2.1
zone: []
`
	_, err := ParseZones("z", []byte(file), zone.Rules{})
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{
		`z:3:26: zones[0].members[1]: "192.0.2.300": `,
		`z:3:39: zones[0].members[2]: "192.0.2.9-192.0.2.1": `,
		`z:5:5: zones[1].member: unknown key, did you mean "members"?; allowed: name, members`,
		`z:6:5: zones[2].name: is missing; allowed: 1..63 bytes`,
		`z:7:11: zones[3].name: "blue": is a zone already, first in line 2`,
		`z:8:11: zones[4].name: "default": is the zone that is always there`,
		`z:10:9: zones[4].members[0]: "127.0.0.1": `,
		`z:11:9: zones[4].members[1]: is a section (key: value lines), not a single value; allowed: an address`,
		`z:12:11: zones[5].name: `,
		`z:13:5: zones[6]: "plain": is a single value, not an entry with keys`,
		`z:15:14: zones[7].members: "192.0.2.1": is a single value, not a list`,
		`z:16:1: zone: unknown key, did you mean "zones"?`,
	}
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d:\n%v", len(got), len(want), err)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s...", got[i], want[i])
		}
	}
}

func TestLimitsAndLoopbackOfZones(t *testing.T) {
	file := []byte("zones:\n- {name: a, members: [192.0.2.1]}\n- {name: b, members: [127.0.0.1]}\n")
	if _, err := ParseZones("z", file, zone.Rules{AllowLoopback: true}); err != nil {
		t.Error(err)
	}
	if _, err := ParseZones("z", file, zone.Rules{AllowLoopback: true, MaxZones: 1}); err == nil || !strings.HasPrefix(err.Error(), "z:1:1: zones: too many zones") {
		t.Error(err)
	}
	for _, empty := range []string{"", "zones:\n", "zones: []\n", "# nothing\n"} {
		if set, err := ParseZones("z", []byte(empty), zone.Rules{}); err != nil || len(set.Zones) != 0 {
			t.Errorf("%q: %v %v", empty, set, err)
		}
	}
	if _, err := LoadZones(filepath.Join(t.TempDir(), "none"), zone.Rules{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestCheckTellsWhatAFileHolds(t *testing.T) {
	dir := t.TempDir()
	zones, conf := filepath.Join(dir, "zones.yaml"), filepath.Join(dir, "c.yaml")
	text := fmt.Sprintf("device: {id: 192.0.2.1, name: a}\nports: {access: [e]}\nzones: {file: %s}\n", zones)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(path, want string) {
		t.Helper()
		if got, _, err := Check(path, nil); err != nil || !strings.Contains(got, want) {
			t.Errorf("got %q, %v", got, err)
		}
	}
	check(conf, "does not exist yet, no zones are configured")
	if err := SavePlan(zones, change.PlanOf(testSet(t))); err != nil {
		t.Fatal(err)
	}
	check(conf, zones+": good: 5 zones with 5 members")
	check(conf, "good: device 192.0.2.1 (a), standalone, ")
	check(zones, "good: 5 zones with 5 members")
	if err := os.WriteFile(zones, []byte("zones: [{name: a, members: [x]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{conf, zones} {
		if _, _, err := Check(path, nil); err == nil || !strings.Contains(err.Error(), `zones.yaml:1:29: zones[0].members[0]: "x": `) {
			t.Errorf("%s: %v", path, err)
		}
	}
	// Nor is one good whose zone the daemon could tell nobody, also when aliases make it so large.
	large := func(from int) string {
		var list []string
		for i := range 80_000 {
			list = append(list, fmt.Sprintf("10.%d.%d.%d", from+i>>15, i>>7&0xff, i<<1&0xff))
		}
		return strings.Join(list, ", ")
	}
	text = "aliases: [{name: x, members: [" + large(0) + "]}, {name: y, members: [" + large(100) + "]}]\nzones: [{name: a, members: [alias:x, alias:y]}]\n"
	if err := os.WriteFile(zones, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{conf, zones} {
		if _, _, err := Check(path, nil); err == nil || !strings.Contains(err.Error(), `zone "a": does not fit into a message: 160000 members in`) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func FuzzParseZones(f *testing.F) {
	f.Add([]byte("zones:\n- name: a\n  members: [192.0.2.1, 'nqn.x:y', 'port:192.0.2.1/e0', '192.0.2.1-192.0.2.9', '2001:db8::/64']\n"))
	f.Add([]byte("zones: [{name: '0x1f', members: ['1::', '::2']}, {name: 'a: b #\\'}, {name: '-'}, {name: '~'}, {name: '1e5'}, {name: '<&>'}]\n"))
	f.Add([]byte("zones: &z [{name: a, members: *z}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := ParseZones("z", data, zone.Rules{})
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteZones(&b, set); err != nil {
			t.Fatal(err)
		}
		again, err := ParseZones("z", b.Bytes(), zone.Rules{})
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, b.Bytes())
		}
		if d := cmp.Diff(set, again, cmpNetip); d != "" {
			t.Fatal(d)
		}
	})
}

// 160,000 zones with two members each, the largest configuration promised.
func BenchmarkZoneFile(b *testing.B) {
	set := zone.Set{}
	a := netip.MustParseAddr("10.0.0.1")
	for i := range zone.DefaultMaxZones {
		z := zone.Zone{Name: fmt.Sprintf("zone-%06d", i)}
		for range 2 {
			z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: a})
			a = a.Next()
		}
		set.Zones = append(set.Zones, z)
	}
	var data bytes.Buffer
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			data.Reset()
			if err := WriteZones(&data, set); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, err := ParseZones("z", data.Bytes(), zone.Rules{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
