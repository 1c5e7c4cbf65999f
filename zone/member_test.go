package zone

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestMemberTextForms(t *testing.T) {
	for _, c := range []struct {
		text, canonical string // canonical empty: the same
		want            Member
	}{
		{"192.0.2.1", "", Member{Kind: MemberAddr, First: addr("192.0.2.1")}},
		{"::ffff:192.0.2.1", "192.0.2.1", Member{Kind: MemberAddr, First: addr("192.0.2.1")}},
		{"2001:DB8:0::1", "2001:db8::1", Member{Kind: MemberAddr, First: addr("2001:db8::1")}},
		{"192.0.2.1-192.0.2.9", "", Member{Kind: MemberRange, First: addr("192.0.2.1"), Last: addr("192.0.2.9")}},
		{"192.0.2.7-192.0.2.7", "192.0.2.7", Member{Kind: MemberAddr, First: addr("192.0.2.7")}},
		{"192.0.2.0-192.0.2.255", "192.0.2.0/24", Member{Kind: MemberRange, First: addr("192.0.2.0"), Last: addr("192.0.2.255")}},
		{"192.0.2.0/24", "", Member{Kind: MemberRange, First: addr("192.0.2.0"), Last: addr("192.0.2.255")}},
		{"192.0.2.8/31", "", Member{Kind: MemberRange, First: addr("192.0.2.8"), Last: addr("192.0.2.9")}},
		{"192.0.2.8/32", "192.0.2.8", Member{Kind: MemberAddr, First: addr("192.0.2.8")}},
		{"::ffff:192.0.2.0/120", "192.0.2.0/24", Member{Kind: MemberRange, First: addr("192.0.2.0"), Last: addr("192.0.2.255")}},
		{"2001:db8::/64", "", Member{Kind: MemberRange, First: addr("2001:db8::"), Last: addr("2001:db8::ffff:ffff:ffff:ffff")}},
		{"2001:db8::1-2001:db8::ff", "", Member{Kind: MemberRange, First: addr("2001:db8::1"), Last: addr("2001:db8::ff")}},
		{"nqn.2014-08.org.nvmexpress:uuid:x", "", Member{Kind: MemberNQN, NQN: "nqn.2014-08.org.nvmexpress:uuid:x"}},
		{"iqn.2026-01.example:a/b", "", Member{Kind: MemberNQN, NQN: "iqn.2026-01.example:a/b"}},
		{"port:192.0.2.250/Ethernet1/2.100", "", Member{Kind: MemberPort, Device: addr("192.0.2.250"), Port: "Ethernet1/2.100"}},
		{"port:2001:db8::250/e1", "", Member{Kind: MemberPort, Device: addr("2001:db8::250"), Port: "e1"}},
		{"nqn.a at 192.0.2.250", "", Member{Kind: MemberBound, NQN: "nqn.a", Device: addr("192.0.2.250")}},
		{"nqn.a at 192.0.2.250/Ethernet1/2", "", Member{Kind: MemberBound, NQN: "nqn.a", Device: addr("192.0.2.250"), Port: "Ethernet1/2"}},
		{"nqn.a at port:192.0.2.250/e1", "nqn.a at 192.0.2.250/e1", Member{Kind: MemberBound, NQN: "nqn.a", Device: addr("192.0.2.250"), Port: "e1"}},
		{"nqn.a at port:192.0.2.250/24", "", Member{Kind: MemberBound, NQN: "nqn.a", Device: addr("192.0.2.250"), Port: "24"}},
		{"nqn.a at 2001:db8::250/e1", "", Member{Kind: MemberBound, NQN: "nqn.a", Device: addr("2001:db8::250"), Port: "e1"}},
		{"nqn.a at 198.51.100.0/24", "", Member{Kind: MemberBound, NQN: "nqn.a", First: addr("198.51.100.0"), Last: addr("198.51.100.255")}},
		{"nqn.a at ::ffff:198.51.100.7/128", "nqn.a at 198.51.100.7/32", Member{Kind: MemberBound, NQN: "nqn.a", First: addr("198.51.100.7"), Last: addr("198.51.100.7")}},
		{"iqn.a at 2001:db8::/64", "", Member{Kind: MemberBound, NQN: "iqn.a", First: addr("2001:db8::"), Last: addr("2001:db8::ffff:ffff:ffff:ffff")}},
	} {
		m, err := ParseMember(c.text)
		if err != nil || m != c.want {
			t.Errorf("%q is %+v, %v; want %+v", c.text, m, err, c.want)
		}
		canonical := c.canonical
		if canonical == "" {
			canonical = c.text
		}
		if m.String() != canonical {
			t.Errorf("%q is written %q, want %q", c.text, m, canonical)
		}
	}
}

func TestMalformedMembersAreNamed(t *testing.T) {
	for _, text := range []string{
		"", " ", "192.0.2", "192.0.2.1 ", "192.0.2.256", "fe80::1%eth0", "192.0.2.9-192.0.2.1", "192.0.2.1-2001:db8::1", "192.0.2.1-",
		"192.0.2.5/24", "192.0.2.0/33", "::ffff:0.0.0.0/90", "2001:db8::/129", "nqn.with space", "nqn." + strings.Repeat("x", 252), "nqn.\x00",
		"port:", "port:192.0.2.1", "port:192.0.2.1/", "port:x/e1", "port:192.0.2.1/e 1", "port:192.0.2.1/" + strings.Repeat("e", 64), "host7",
		"nqn.a at", "nqn.a at ", "nqn.a at x", "nqn.a at 192.0.2.1/", "nqn.a at 192.0.2.1/24", "nqn.a at 192.0.2.0/33", "nqn.a at 192.0.2.1-192.0.2.9", "nqn.a at 192.0.2.1/e 1",
		"nqn.a at fe80::1%eth0", "nqn.a at port:192.0.2.1", "nqn.a  at 192.0.2.1", "nqn.a at 192.0.2.1 at 192.0.2.2", "192.0.2.9 at 192.0.2.1", " at 192.0.2.1", strings.Repeat("y", 5000),
	} {
		_, err := ParseMember(text)
		var e *MemberError
		if !errors.As(err, &e) || !strings.HasPrefix(text, e.Member) || e.Problem == "" {
			t.Errorf("%.40q gave %v", text, err)
		}
		if len(err.Error()) > 2000 {
			t.Errorf("%.40q gave an error of %d bytes", text, len(err.Error()))
		}
	}
}

func TestAMistakeInANameOrAliasIsNotTakenForAnAddress(t *testing.T) {
	for text, want := range map[string]string{
		"NQN.2026-01.org.example:a": "small letters", "Iqn.2026-01.org.example:a": "small letters",
		"alias:array": "an alias stands in the zones",
	} {
		if _, err := ParseMember(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParseMember(f *testing.F) {
	for _, s := range []string{"192.0.2.1", "192.0.2.1-192.0.2.9", "2001:db8::/64", "nqn.a", "port:192.0.2.250/e1", "0.0.0.0/0", "::/0", "nqn.a at 192.0.2.250/e1", "nqn.a at 192.0.2.250", "nqn.a at 198.51.100.0/24", "nqn.a at port:192.0.2.250/7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMember(s)
		if err != nil {
			return
		}
		if m != m.Canonical() {
			t.Fatalf("%q gives %+v, which is not canonical", s, m)
		}
		back, err := ParseMember(m.String())
		if err != nil || back != m {
			t.Fatalf("%q is written %q, which is %+v, %v", s, m, back, err)
		}
	})
}

func TestSetComesBackFromJSONAndYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Set{AutoJoin: rapid.Bool().Draw(t, "autojoin"), Hard: rapid.Bool().Draw(t, "hard")}
		for _, n := range modelZones[:rapid.IntRange(0, 4).Draw(t, "zones")] {
			s.Zones = append(s.Zones, Zone{Name: n, Members: drawMembers(t)})
		}
		for _, codec := range []struct {
			name      string
			marshal   func(any) ([]byte, error)
			unmarshal func([]byte, any) error
		}{{"JSON", json.Marshal, json.Unmarshal}, {"YAML", yaml.Marshal, yaml.Unmarshal}} {
			var back Set
			b, err := codec.marshal(s)
			if err == nil {
				err = codec.unmarshal(b, &back)
			}
			if err != nil || !back.Equal(s) {
				t.Fatalf("%s: %s came back as %+v, %v", codec.name, b, back, err)
			}
		}
	})
	if _, err := json.Marshal(Member{Kind: 7}); err == nil {
		t.Error("a member of no kind was written")
	}
}

func TestAddressRules(t *testing.T) {
	for text, ok := range map[string]bool{
		"192.0.2.1": true, "10.0.0.0/8": true, "2001:db8::1": true, "fd00::/8": true, "1.0.0.0/8": true, "nqn.a": true,
		"port:192.0.2.1/e1": true, "126.255.255.255": true, "128.0.0.0": true, "223.255.255.255": true,
		"0.0.0.0": false, "127.0.0.1": false, "169.254.3.4": false, "224.0.0.5": false, "255.255.255.255": false, "::": false, "::1": false,
		"fe80::1": false, "ff02::1": false, "0.0.0.0/0": false, "::/0": false, "126.0.0.0-128.0.0.0": false, "169.0.0.0/8": false,
		"::fffe:0:0-::1:0:0:0": false, "port:127.0.0.1/e1": false, "port:fe80::1/e1": false, "nqn.a at 192.0.2.1/e1": true, "nqn.a at 10.0.0.0/8": true,
		"nqn.a at 127.0.0.1": false, "nqn.a at 0.0.0.0/0": false, "nqn.a at fe80::1/e1": false,
	} {
		m, err := ParseMember(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := (Rules{}).CheckMember(m); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	lab := Rules{AllowLoopback: true}
	for _, a := range []string{"127.0.0.1", "::1"} {
		if err := lab.CheckAddr(addr(a)); err != nil {
			t.Error(err)
		}
	}
	for _, a := range []netip.Addr{{}, addr("fe80::1%eth0"), addr("2001:db8::1%eth0")} {
		if err := lab.CheckAddr(a); !errors.Is(err, ErrBadAddress) {
			t.Errorf("%v: %v", a, err)
		}
	}
}

func TestZoneNames(t *testing.T) {
	for _, name := range []string{"a", "Zone 1", "дом", strings.Repeat("z", 63), "default"} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", " a", "a ", "a\tb", "a\x00", "\xff", strings.Repeat("z", 64), strings.Repeat("я", 32), "a\u200bb"} {
		if err := CheckName(name); !errors.Is(err, ErrBadName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestValidateNamesEveryError(t *testing.T) {
	good := Member{Kind: MemberAddr, First: addr("192.0.2.1")}
	s := Set{Zones: []Zone{
		{Name: "a", Members: []Member{good}},
		{Name: "default"},
		{Name: "b", Members: []Member{good, {Kind: MemberAddr, First: addr("127.0.0.1")}, {Kind: MemberRange, First: addr("192.0.2.9"), Last: addr("192.0.2.1")}}},
		{Name: "a"},
		{Name: ""},
	}}
	err := s.Validate()
	if !errors.Is(err, ErrDuplicateZone) || !errors.Is(err, ErrBadAddress) || !errors.Is(err, ErrBadName) {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var ze *ZoneError
		if !errors.As(e, &ze) {
			t.Fatalf("%v is no ZoneError", e)
		}
		lines = append(lines, e.Error())
	}
	if len(lines) != 4 || !strings.HasPrefix(lines[0], `zone "b": member 2: `) || !strings.HasPrefix(lines[1], `zone "b": member 3: `) || !strings.HasPrefix(lines[2], `zone "a": the name is used twice`) {
		t.Fatalf("%q", lines)
	}
	withMembers := Set{Zones: []Zone{{Name: DefaultName, Members: []Member{good}}}}
	if err := withMembers.Validate(); !errors.Is(err, ErrDefaultMembers) {
		t.Error(err)
	}
	small := Rules{MaxZones: 1, MaxMembers: 1}
	if err := small.Check(Set{Zones: []Zone{{Name: "a", Members: []Member{good, good}}, {Name: "b"}}}); !errors.Is(err, ErrTooManyZones) || !errors.Is(err, ErrTooManyMembers) {
		t.Error(err)
	}
}

// shuffled gives the same configuration in another order, with duplicates of
// members and with parts of its ranges as further members.
func shuffled(r *rand.Rand, s Set) Set {
	out := Set{AutoJoin: s.AutoJoin, Hard: s.Hard, Zones: slices.Clone(s.Zones)}
	r.Shuffle(len(out.Zones), func(i, j int) { out.Zones[i], out.Zones[j] = out.Zones[j], out.Zones[i] })
	for i := range out.Zones {
		ms := slices.Clone(out.Zones[i].Members)
		for _, m := range out.Zones[i].Members {
			if r.IntN(2) == 0 {
				ms = append(ms, m)
			}
			if m.Kind == MemberRange {
				ms = append(ms, Member{Kind: MemberRange, First: m.First.Next(), Last: m.Last}, Member{Kind: MemberAddr, First: m.Last})
			}
		}
		ms = slices.DeleteFunc(ms, func(m Member) bool { return m.wellFormed("") != nil })
		r.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
		out.Zones[i].Members = ms
	}
	return out
}

func TestOrderDuplicatesAndOverlapsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		s := Set{AutoJoin: rapid.Bool().Draw(t, "autojoin")}
		for _, n := range modelZones {
			s.Zones = append(s.Zones, Zone{Name: n, Members: drawMembers(t)})
		}
		hosts := rapid.SliceOfN(rapid.Custom(drawHost), 1, 10).Draw(t, "hosts")
		d, ix := NewDirectory(modelDevs[0]), Compile(s)
		for _, h := range hosts {
			d.PutHost(h)
		}
		d.SetZones(s)
		for range 3 {
			other := shuffled(r, s)
			if c := d.SetZones(other); len(c) != 0 {
				t.Fatalf("the same zones written otherwise changed %v", c)
			}
			again := Compile(other)
			for _, h := range hosts {
				if got, want := again.ZonesOf(h), ix.ZonesOf(h); !slices.Equal(got, want) {
					t.Fatalf("%v is in %v, want %v", h.HostKey, got, want)
				}
			}
		}
	})
}

func TestIndexAgreesWithScanning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		for _, n := range modelZones {
			s.Zones = append(s.Zones, Zone{Name: n, Members: drawMembers(t)})
		}
		h := drawHost(t)
		var want []int
		for i, z := range s.Zones {
			if slices.ContainsFunc(z.Members, func(m Member) bool { return matches(m, h) }) {
				want = append(want, i)
			}
		}
		if got := Compile(s).ZonesOf(h); !slices.Equal(got, want) {
			t.Fatalf("%+v is in %v, want %v", h, got, want)
		}
	})
}

func TestCanonicalJoinsZonesOfOneName(t *testing.T) {
	a, b := Member{Kind: MemberAddr, First: addr("192.0.2.1")}, Member{Kind: MemberAddr, First: addr("192.0.2.2")}
	s := Set{Zones: []Zone{{Name: "z", Members: []Member{b}}, {Name: DefaultName}, {Name: "y"}, {Name: "z", Members: []Member{a, b}}}}
	want := []Zone{{Name: "y", Members: []Member{}}, {Name: "z", Members: []Member{a, b}}}
	if diff := cmp.Diff(want, s.Canonical().Zones, cmp.Comparer(func(x, y netip.Addr) bool { return x == y })); diff != "" {
		t.Fatal(diff)
	}
	d := NewDirectory(addr("192.0.2.250"))
	d.SetZones(s)
	if !d.Zones().Equal(s) {
		t.Fatalf("the directory has %+v", d.Zones())
	}
}

// matches reports whether h is what the member names, looked at by itself.
func matches(m Member, h Host) bool {
	switch m.Kind {
	case MemberAddr:
		return m.First.Unmap() == h.Addr.Unmap()
	case MemberRange:
		a := h.Addr.Unmap()
		first, last := m.First.Unmap(), m.Last.Unmap()
		return a.BitLen() == first.BitLen() && first.Compare(a) <= 0 && a.Compare(last) <= 0
	case MemberNQN:
		return m.NQN != "" && m.NQN == h.NQN
	case MemberPort:
		return m.Device.Unmap() == h.Device.Unmap() && m.Port == h.HostKey.Port
	case MemberBound:
		m = m.Canonical()
		return m.holds(h.NQN, h.Addr.Unmap(), h.Device.Unmap(), h.HostKey.Port)
	}
	return false
}
