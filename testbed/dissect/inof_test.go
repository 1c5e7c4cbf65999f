package dissect

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// talk is one session between two devices; what both sides send is kept.
type talk struct {
	t     testing.TB
	sides [2]*link.Session
	bytes [2][][]byte // whole messages of each direction
	want  [2][]list
}

var now = time.Unix(1_800_000_000, 0)

func newTalk(t testing.TB, auth link.Auth, opens [2]*wire.Open) *talk {
	t.Helper()
	k := &talk{t: t}
	for i := range k.sides {
		o := opens[i]
		var err error
		k.sides[i], err = link.NewSession(link.SessionConfig{
			Self: o.Device, Dialer: i == fromClient, Roles: o.Roles, Caps: o.Caps, Hold: o.Hold, Keepalive: o.Keepalive, Nonce: o.Nonce, Epoch: o.Epoch, Auth: auth, Resume: o.Resume,
		}, now)
		if err != nil {
			t.Fatal(err)
		}
		o.Auth, o.MinVersion, o.MaxVersion = auth.Mode, wire.Version, wire.Version
	}
	first, err := k.sides[fromClient].Start(nil, now)
	if err != nil {
		t.Fatal(err)
	}
	k.add(fromClient, first, opens[fromClient])
	_, answer, err := k.sides[fromReflector].Receive(first, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	k.add(fromReflector, answer, opens[fromReflector])
	_, proof, err := k.sides[fromClient].Receive(answer, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	k.add(fromClient, proof, &wire.Keepalive{})
	_, confirm, err := k.sides[fromReflector].Receive(proof, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	k.add(fromReflector, confirm, &wire.Keepalive{})
	return k
}

func (k *talk) add(from int, frame []byte, m wire.Message) {
	k.bytes[from] = append(k.bytes[from], frame)
	k.want[from] = append(k.want[from], ofMessage(m, frame))
}

func (k *talk) say(from int, m wire.Message) {
	k.t.Helper()
	e, err := wire.Encode(m)
	if err != nil {
		k.t.Fatal(err)
	}
	k.add(from, k.sides[from].Seal(nil, e, now), m)
}

var (
	hmac = link.Auth{Mode: wire.AuthHMAC, Passwords: []link.Password{link.PasswordOfKey([32]byte{1})}}
	none = link.Auth{Mode: wire.AuthNone}
)

func opensOf(r source) [2]*wire.Open {
	o := [2]*wire.Open{r.open(), r.open()}
	o[0].Roles, o[1].Roles = wire.RoleClient, wire.RoleReflector|wire.Roles(r.IntN(2))<<1
	o[0].Device, o[1].Device = netip.MustParseAddr("10.0.0.11"), netip.MustParseAddr("2001:db8::1")
	return o
}

// messagesOf gives what was shown of each direction of each connection.
func messagesOf(t testing.TB, packets []packet) map[string][]list {
	got := map[string][]list{}
	for i := range packets {
		p := &packets[i]
		key := p.show("tcp.srcport") + "-" + p.show("tcp.dstport")
		for _, m := range p.protos("inof") {
			got[key] = append(got[key], shown(t, &m))
			if errs := m.experts(severityError); len(errs) > 0 {
				t.Errorf("packet %d: %v", i+1, errs)
			}
			if odd := m.experts(severityWarn); len(odd) > 0 {
				t.Errorf("packet %d: %v", i+1, odd)
			}
		}
	}
	return got
}

// TestMessagesAreShownAsEncoded has sessions at random, in segments of every kind:
// one message each, many in one, one in many.
func TestMessagesAreShownAsEncoded(t *testing.T) {
	requireTshark(t)
	const seed = 7
	r, c := newSource(seed), newCapture(t)
	want := map[string][]list{}
	for i := range 12 {
		auth := []link.Auth{hmac, none}[i%2]
		k, s := newTalk(t, auth, opensOf(r)), c.stream()
		for range 20 {
			k.say(r.IntN(2), r.message())
		}
		for from := range 2 {
			var all []byte
			for _, b := range k.bytes[from] {
				if i < 2 { // one message, one segment
					s.send(from, b)
				}
				all = append(all, b...)
			}
			switch i / 2 {
			case 0:
			case 1:
				s.sendIn(from, 65000, all)
			case 2:
				s.sendIn(from, 1440, all)
			case 3:
				s.sendIn(from, 1+r.IntN(40), all) // headers are torn apart too
			case 4:
				s.sendIn(from, 7, all)
			default:
				for len(all) > 0 {
					n := min(1+r.IntN(600), len(all))
					s.send(from, all[:n])
					all = all[n:]
				}
			}
			want[fmt.Sprintf("%d-%d", s.ends[from].Port(), s.ends[1-from].Port())] = k.want[from]
		}
	}
	if d := cmp.Diff(want, messagesOf(t, dissect(t, c.file))); d != "" {
		t.Errorf("seed %d, shown differently (-encoded +shown):\n%s", seed, d)
	}
}

// The longest messages come in a thousand segments.
func TestALongMessageIsShownWhole(t *testing.T) {
	requireTshark(t)
	r, c := newSource(8), newCapture(t)
	k, s := newTalk(t, hmac, opensOf(r)), c.stream()
	u := &wire.Update{Origin: r.addr(), Epoch: 1, Seq: 1}
	u.Downs = []wire.DownRecord{{Device: r.addr(), Port: "Ethernet1", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: now}}}
	for i := range wire.MaxDownAddrs {
		u.Downs[0].Addrs = append(u.Downs[0].Addrs, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
	}
	for range 3000 {
		u.Hosts = append(u.Hosts, r.host())
	}
	k.say(fromReflector, u)
	s.send(fromClient, k.bytes[fromClient][0])
	s.send(fromClient, k.bytes[fromClient][1])
	for _, b := range k.bytes[fromReflector] {
		s.sendIn(fromReflector, 1440, b)
	}
	got := messagesOf(t, dissect(t, c.file))[fmt.Sprintf("%d-%d", wire.DefaultPort, s.ends[0].Port())]
	if d := cmp.Diff(k.want[fromReflector], got); d != "" {
		t.Error(d)
	}
}

// Tags are told to be unchecked, gaps in the numbers are told, and a message that
// lacks its tag.
func TestExpertInfosOfASession(t *testing.T) {
	requireTshark(t)
	r, c := newSource(9), newCapture(t)
	k, s := newTalk(t, hmac, opensOf(r)), c.stream()
	for range 3 {
		k.say(fromClient, &wire.Keepalive{})
	}
	plain, err := wire.Encode(&wire.EndOfSync{Epoch: 1, Seq: 2})
	if err != nil {
		t.Fatal(err)
	}
	bare := newTalk(t, none, opensOf(r)).sides[fromClient].Seal(nil, plain, now) // number 2
	b := k.bytes[fromClient]
	for _, m := range [][]byte{b[0], b[1], b[2], b[4], bare} { // Open, 1, 2, 4, 2 without a tag
		s.send(fromClient, m)
	}
	want := [][]string{
		{},
		{"inof.tag_unchecked: Tag not checked (it needs the password)"},
		{"inof.tag_unchecked: Tag not checked (it needs the password)"},
		{"inof.number_unexpected: Number 4, expected 3", "inof.tag_unchecked: Tag not checked (it needs the password)"},
		{"inof.number_unexpected: Number 2, expected 5", "inof.tag_missing: The message has no tag, but the Open asked for hmac-sha256"},
	}
	for _, passes := range [][]string{nil, {"-2"}} { // the graphical Wireshark makes two
		var got [][]string
		for _, p := range dissect(t, c.file, passes...) {
			for _, m := range p.protos("inof") {
				got = append(got, slices.Sorted(slices.Values(m.experts(""))))
			}
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%q: %s", passes, d)
		}
	}
}
