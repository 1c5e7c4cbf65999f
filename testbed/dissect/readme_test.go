package dissect

import (
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// sample is a capture in which every filter of the README finds something.
func sample(t *testing.T) string {
	t.Helper()
	r, c := newSource(51), newCapture(t)
	opens := opensOf(r)
	opens[fromClient].Resume = &wire.Resume{Epoch: 1, Seq: 1}
	k, s := newTalk(t, hmac, opens), c.stream()
	dev := netip.MustParseAddr("10.0.0.11")
	host := zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr("192.0.2.21"), Device: dev, Port: "eth3"}, Since: now}
	k.say(fromClient, &wire.Update{Origin: dev, Epoch: 1, Seq: 1, Hosts: []wire.HostRecord{{Op: wire.Put, Host: host}}})
	k.say(fromClient, &wire.Update{Origin: dev, Epoch: 1, Seq: 2, FaultAt: now, SentAt: now.Add(time.Millisecond), ReflectedAt: now.Add(2 * time.Millisecond),
		Zones: []wire.ZoneRecord{{Op: wire.Withdraw, Zone: zone.Zone{Name: "oltp"}}},
		Hosts: []wire.HostRecord{{Op: wire.Withdraw, Why: snsd.ReasonAgedOut, Host: host}},
		Downs: []wire.DownRecord{{Device: dev, Port: "eth3", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: now}}}})
	k.say(fromClient, &wire.Update{Origin: dev, Epoch: 1, Seq: 3, Partial: true, Pos: wire.Stamp{Epoch: 2, Seq: 9},
		Devices: []wire.DeviceStamp{{Device: netip.MustParseAddr("10.0.0.12"), Stamp: wire.Stamp{Epoch: 3, Seq: 4}}}})
	k.say(fromClient, &wire.Update{Origin: dev, Epoch: 1, Seq: 3, More: true})
	k.say(fromClient, &wire.EndOfSync{Epoch: 1, Seq: 3, Resumed: true})
	k.say(fromClient, &wire.Notification{Code: wire.CodeCease})
	for i, b := range k.bytes[fromClient] {
		if i != 1 { // a message is missing
			s.send(fromClient, b)
		}
	}
	c.stream().send(fromClient, []byte("GET / HTTP/1.1\r\n\r\n"))
	n := snsd.Notice{Subject: host.Addr, Host: host.Addr.Next(), Seq: 1, Reason: snsd.ReasonLinkDown}
	c.frame(r.payload(t, snsd.Packet{Version: 1, Notices: []snsd.Notice{n}}))
	c.at = c.at.Add(time.Millisecond)
	c.frame(r.payload(t, snsd.Packet{Version: 1, Acks: []snsd.Ack{{Subject: n.Subject, Host: n.Host, Seq: 1}}}))
	n.Seq = 2
	c.frame(r.payload(t, snsd.Packet{Version: 1, Notices: []snsd.Notice{n}}))
	v, err := snsd.Registration{Addr: host.Addr, Service: snsd.Service{Role: snsd.RoleTarget}}.AppendTLV(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.frame(lldpdu(v))
	return c.file
}

func (r source) payload(t testing.TB, p snsd.Packet) []byte {
	b, err := p.Append(ethernet(fabric.EtherTypeNTS))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFiltersOfTheREADME has every filter and field that the README names find something.
func TestFiltersOfTheREADME(t *testing.T) {
	requireTshark(t)
	text, err := os.ReadFile("../../dist/wireshark/README.md")
	if err != nil {
		t.Fatal(err)
	}
	file := sample(t)
	rows := regexp.MustCompile("(?m)^\\| `((?:inof|nts|snsd)[._][^`]*)` \\|").FindAllStringSubmatch(string(text), -1)
	if len(rows) < 10 {
		t.Fatalf("only %d filters found in the README", len(rows))
	}
	for _, row := range rows {
		filter := strings.ReplaceAll(row[1], `\|`, "|")
		if out := tshark(t, "-2", "-r", file, "-Y", filter); len(out) == 0 {
			t.Errorf("%s: finds nothing", filter)
		}
	}
	known := string(tshark(t, "-G", "fields"))
	for _, name := range regexp.MustCompile(`\b(?:inof|nts|snsd)\.[a-z_0-9.]*[a-z0-9]`).FindAllString(string(text), -1) {
		if name != "inof.lua" && name != "inof.pcap" && !strings.Contains(known, "\t"+name+"\t") {
			t.Errorf("the README names %s, which is no field", name)
		}
	}
}

// Values are named as everywhere else in the project.
func TestNamesOfValues(t *testing.T) {
	requireTshark(t)
	r, c := newSource(52), newCapture(t)
	var want []string
	s, k := c.stream(), newTalk(t, none, opensOf(r))
	say := func(m wire.Message, names ...string) {
		k.say(fromClient, m)
		s.send(fromClient, k.bytes[fromClient][len(k.bytes[fromClient])-1])
		want = append(want, names...)
	}
	for code := wire.CodeCease; code <= wire.CodeTLS; code++ {
		say(&wire.Notification{Code: code}, "inof.code="+code.String(), "inof.type=notification")
	}
	for mode := wire.AuthNone; mode <= wire.AuthTLS; mode++ {
		o := r.open()
		o.Auth = mode
		say(o, "inof.auth="+mode.String(), "inof.type=open")
	}
	say(&wire.EndOfSync{}, "inof.type=end-of-sync")
	say(&wire.Keepalive{}, "inof.type=keepalive")
	key := zone.HostKey{Addr: r.addr(), Device: r.addr(), Port: "e"}
	for v := range uint8(8) {
		h := zone.Host{HostKey: key, Service: snsd.Service{Role: snsd.Role(v % 4), Protocol: snsd.Protocol(v % 4)}}
		why := snsd.Reason(v)
		say(&wire.Update{Origin: key.Addr, Hosts: []wire.HostRecord{{Op: wire.Put, Why: why, Host: h}}},
			"inof.type=update", "inof.host.op=put", "inof.host.reason="+why.String(), "inof.host.role="+h.Role.String(), "inof.host.protocol="+h.Protocol.String())
	}
	seen := map[string]bool{}
	label := regexp.MustCompile(`: (.*) \(\d+\)$`)
	for _, p := range dissect(t, c.file) {
		for _, n := range p.Nodes {
			n.walk(func(n *node) {
				if m := label.FindStringSubmatch(n.Showname); m != nil {
					seen[n.Name+"="+strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")] = true
				}
			})
		}
	}
	for _, w := range want {
		if !seen[strings.ReplaceAll(strings.ToLower(w), " ", "-")] {
			t.Errorf("never shown: %s", w)
		}
	}
}
