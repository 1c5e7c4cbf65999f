package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux"
	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/snsd"
)

const patience = 40 * time.Second

// cable is a veth pair between a host's namespace (eth1) and a switch's (sw1).
type cable struct {
	t        testing.TB
	host, sw *netnstest.Space
}

func newCable(t testing.TB) *cable {
	c := &cable{t: t, host: netnstest.New(t), sw: netnstest.New(t)}
	c.host.Veth("eth1", c.sw, "sw1")
	return c
}

// far is the switch's side of the cable.
type far struct {
	t testing.TB
	*linux.Dataplane
	mac  fabric.MAC
	kept []fabric.Frame // of another type than waited for: each type has its own reader
}

func (c *cable) far() *far {
	dp, err := linux.New(linux.Config{Access: []string{"sw1"}, NetNS: c.sw.Path()})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- dp.Run(ctx) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	})
	f := &far{t: c.t, Dataplane: dp}
	for {
		select {
		case ev := <-dp.Events():
			if f.mac = ev.Port.MAC; ev.Port.Up() {
				return f
			}
		case <-time.After(patience):
			c.t.Fatal("the switch's port does not come up")
		}
	}
}

// frame waits for a frame of the EtherType.
func (f *far) frame(what uint16) fabric.Frame {
	f.t.Helper()
	if i := slices.IndexFunc(f.kept, func(x fabric.Frame) bool { return x.EtherType == what }); i >= 0 {
		x := f.kept[i]
		f.kept = slices.Delete(f.kept, i, i+1)
		return x
	}
	deadline := time.After(patience)
	for {
		select {
		case x := <-f.Frames():
			if x.EtherType == what {
				return x
			}
			f.kept = append(f.kept, x)
		case <-f.Events():
		case <-deadline:
			f.t.Fatalf("no frame of type %#x", what)
		}
	}
}

func (f *far) packet() snsd.Packet {
	f.t.Helper()
	p, err := snsd.ParsePacket(f.frame(fabric.EtherTypeNTS).Payload)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (f *far) tell(n snsd.Notice) {
	f.t.Helper()
	b := fabric.AppendEthernet(nil, fabric.MACNTS, f.mac, fabric.EtherTypeNTS)
	b2, err := snsd.AppendNotify(nil, n)
	if err == nil {
		err = f.Send("sw1", append(b, b2...))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// lines collects what the program prints.
type lines struct {
	t testing.TB
	c chan line
}

func (l *lines) Write(b []byte) (int, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	for dec.More() {
		var x line
		if err := dec.Decode(&x); err != nil {
			return 0, err
		}
		l.c <- x
	}
	return len(b), nil
}

// event waits for a line of that event.
func (l *lines) event(name string) line {
	l.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case x := <-l.c:
			if x.Event == name {
				return x
			}
		case <-deadline:
			l.t.Fatalf("no line %q", name)
		}
	}
}

// next is the next line, whatever it is.
func (l *lines) next() line {
	l.t.Helper()
	select {
	case x := <-l.c:
		return x
	case <-time.After(patience):
		l.t.Fatal("no line")
	}
	return line{}
}

func (c *cable) start(edit func(*options)) (*lines, context.CancelFunc, chan error) {
	l := &lines{c.t, make(chan line, 1000)}
	cancel, done := c.startTo(l, edit)
	return l, cancel, done
}

func (c *cable) startTo(out writer, edit func(*options)) (context.CancelFunc, chan error) {
	o := testOptions()
	o.netns = c.host.Path()
	o.switches = []string{c.sw.Link("sw1").Attrs().HardwareAddr.String()}
	if edit != nil {
		edit(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, o, out) }()
	c.t.Cleanup(cancel)
	return cancel, done
}

func testOptions() options {
	return options{
		ifname: "eth1", addresses: []string{"192.0.2.1"}, role: "initiator", protocol: "roce", interval: 30 * time.Second,
		ttl: 120, restraint: 10 * time.Millisecond, subscribe: true, output: "json", fence: "prefer",
	}
}

var (
	own  = netip.MustParseAddr("192.0.2.1")
	peer = netip.MustParseAddr("198.51.100.1")
)

func target(seq uint32, s snsd.State, r snsd.Reason) snsd.Notice {
	return snsd.Notice{Subject: peer, Host: own, Seq: seq, State: s, Reason: r,
		Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, Port: 4420, NQN: "nqn.2026-01.net.example:a"}}
}

func TestAHostRegistersQueriesAcksAndActs(t *testing.T) {
	c := newCable(t)
	f := c.far()
	out, cancel, done := c.start(func(o *options) { o.shutdownPDU = true })
	f.frame(fabric.EtherTypeLLDP)
	if q := f.packet(); !slices.Equal(q.Queries, []netip.Addr{own}) {
		t.Fatalf("queries %v", q.Queries)
	}
	out.event("registered")
	out.event("query")

	sent := time.Now()
	f.tell(target(7, snsd.Active, 0))
	if a := f.packet(); !slices.Equal(a.Acks, []snsd.Ack{{Subject: peer, Host: own, Seq: 7}}) {
		t.Fatalf("acks %v", a.Acks)
	}
	acked := time.Now()
	n := out.event("notice")
	if n.State != "active" || *n.Seq != 7 || n.Service.NQN == "" || n.Subject != peer || !*n.Acked {
		t.Errorf("notice %+v", n)
	}
	if n.Time.Before(sent) || n.Time.After(acked) {
		t.Errorf("received at %v, want between sending at %v and the ack at %v", n.Time, sent, acked)
	}
	out.event("ack")
	out.event("connect")
	f.tell(target(7, snsd.Active, 0))
	out.event("duplicate")
	f.tell(target(8, snsd.Inactive, snsd.ReasonLinkDown))
	out.event("probe")
	f.tell(target(9, snsd.Inactive, snsd.ReasonZoneChanged))
	out.event("disconnect")

	f.tell(snsd.Notice{Subject: peer, Host: netip.MustParseAddr("192.0.2.99"), Seq: 1})
	if x := out.event("refused"); !strings.Contains(x.Error, "192.0.2.99") {
		t.Errorf("refused: %q", x.Error)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for {
		x := f.frame(fabric.EtherTypeLLDP)
		if bytes.Contains(x.Payload, []byte{3 << 1, 2, 0, 0}) { // TTL TLV of 0
			break
		}
	}
}

// Over a real link: a notice counts once LLDP has shown the switch, and not one by another source.
func TestAHostTakesNoticesOfTheSwitchThatLLDPShows(t *testing.T) {
	c := newCable(t)
	f := c.far()
	out, _, _ := c.start(func(o *options) { o.switches = nil })
	out.event("query")
	for range 3 {
		f.tell(target(7, snsd.Inactive, snsd.ReasonLinkDown))
	}
	if x := out.event("refused"); !strings.Contains(x.Error, "no LLDP of a switch was heard") || !strings.Contains(x.Error, f.mac.String()) {
		t.Errorf("refused: %q", x.Error)
	}
	pdu := fabric.AppendEthernet(nil, fabric.MACNearestBridge, f.mac, fabric.EtherTypeLLDP)
	pdu = append(append(pdu, 1<<1, 7, 4), f.mac[:]...)      // chassis: a MAC address
	pdu = append(append(pdu, 2<<1, 4, 5), "sw1"...)         // port: the name of an interface
	pdu = append(pdu, 3<<1, 2, 0, 120, 7<<1, 4, 0, 4, 0, 4) // TTL, capabilities: a bridge
	if err := f.Send("sw1", append(pdu, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if x := out.event("switch"); x.Switch != f.mac.String() {
		t.Errorf("switch %s", x.Switch)
	}
	real := f.mac
	f.mac = fabric.MAC{2, 0xe, 0, 0, 0, 1}
	for range 3 {
		f.tell(target(8, snsd.Inactive, snsd.ReasonLinkDown))
	}
	if x := out.event("refused"); !strings.Contains(x.Error, "02:0e:00:00:00:01") {
		t.Errorf("refused: %q", x.Error)
	}
	f.mac = real
	f.tell(target(9, snsd.Inactive, snsd.ReasonLinkDown))
	if x := out.event("notice"); *x.Seq != 9 {
		t.Errorf("notice %+v", x)
	}
}

func TestAHostRegistersAndQueriesAgainWhenTheLinkIsBack(t *testing.T) {
	c := newCable(t)
	f := c.far()
	out, _, _ := c.start(nil)
	out.event("query")
	c.sw.SetUp("sw1", false)
	if x := out.event("link"); x.Link != "down" {
		t.Errorf("link %s", x.Link)
	}
	c.sw.SetUp("sw1", true)
	if x := out.event("link"); x.Link != "up" {
		t.Errorf("link %s", x.Link)
	}
	out.event("registered")
	out.event("query")
	f.frame(fabric.EtherTypeLLDP)
}

func TestAHostLikeTheExistingAgentSaysNothingWhenTheLinkIsBackAndTakesARepeatedNoticeForANewOne(t *testing.T) {
	c := newCable(t)
	f := c.far()
	out, _, _ := c.start(func(o *options) { o.likeAgent, o.interval = true, time.Minute })
	out.event("query")
	c.sw.SetUp("sw1", false)
	out.event("link")
	c.sw.SetUp("sw1", true)
	if x := out.event("link"); x.Link != "up" {
		t.Errorf("link %s", x.Link)
	}
	for range 2 {
		f.tell(target(3, snsd.Inactive, snsd.ReasonLinkDown))
		if x := out.next(); x.Event != "notice" || !*x.Acked { // and nothing before it
			t.Errorf("%+v", x)
		}
		out.event("probe")
	}
}

func TestAHostWithNoAckRegistersAndStaysSilent(t *testing.T) {
	c := newCable(t)
	f := c.far()
	out, _, _ := c.start(func(o *options) { o.noAck = true })
	out.event("query")
	f.tell(target(3, snsd.Active, 0))
	if x := out.event("notice"); *x.Acked {
		t.Error("it acked")
	}
	out.event("connect") // 10 ms later: an ack would have come before
	for {
		select {
		case x := <-f.Frames():
			if p, err := snsd.ParsePacket(x.Payload); x.EtherType == fabric.EtherTypeNTS && err == nil && len(p.Acks) > 0 {
				t.Fatal("an ack on the wire")
			}
			continue
		default:
		}
		break
	}
}

func TestForEndsTheRun(t *testing.T) {
	c := newCable(t)
	c.far()
	const lasts = 300 * time.Millisecond
	began := time.Now()
	_, _, done := c.start(func(o *options) { o.lasts = lasts })
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	if took := time.Since(began); took < lasts {
		t.Errorf("it ended after %v, want %v or more", took, lasts)
	}
}

func TestBadOptionsNameFlagAndValue(t *testing.T) {
	tests := []struct {
		edit func(*options)
		want string
	}{
		{func(o *options) { o.role = "server" }, `--role "server": want target, initiator or both`},
		{func(o *options) { o.protocol = "fc" }, `--protocol "fc": want roce, tcp or iscsi`},
		{func(o *options) { o.interval = time.Millisecond }, "--interval 1ms: want at least 100ms"},
		{func(o *options) { o.ttl = 0 }, "--ttl 0"},
		{func(o *options) { o.ttl, o.interval = 20, 30*time.Second }, "--ttl 20: want no less than --interval (30s)"},
		{func(o *options) { o.loseAcks = 1.5 }, "--lose-acks 1.5: want 0..1"},
		{func(o *options) { o.addresses = []string{"192.0.2.1/24"} }, `--address "192.0.2.1/24"`},
		{func(o *options) { o.addresses = []string{"127.0.0.1"} }, "127.0.0.1"},
		{func(o *options) { o.addresses = []string{"192.0.2.1", "192.0.2.1"} }, "twice"},
		{func(o *options) { o.addresses = []string{"192.0.2.1", "::ffff:192.0.2.1"} }, "twice"},
		{func(o *options) { o.nqn = strings.Repeat("n", 256) }, "NQN"},
		{func(o *options) { o.likeAgent, o.shutdownPDU = true, true }, "--shutdown-pdu: the existing agent sends none"},
		{func(o *options) { o.likeAgent, o.addresses = true, []string{"2001:db8::1"} }, "IPv4 only"},
		{func(o *options) { o.likeAgent, o.protocol = true, "tcp" }, "RoCE only"},
		{func(o *options) { o.switches = []string{"tor1"} }, `--switch "tor1"`},
		{func(o *options) { o.fence = "yes" }, `--fence "yes": want one of [prefer require off]`},
		{func(o *options) { o.output = "xml" }, `--output "xml": want text or json`},
		{func(o *options) { o.lasts = -1 }, "--for -1ns"},
		{func(o *options) { o.ifname = "lo" }, "no Ethernet address"},
		{func(o *options) { o.ifname = "nosuch0" }, `--interface "nosuch0": no such port; there are`},
	}
	for _, tt := range tests {
		o := testOptions()
		tt.edit(&o)
		err := run(t.Context(), o, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one with %q", err, tt.want)
		}
	}
}

func TestWantOfPermissionSaysWhatToDo(t *testing.T) {
	err := explain(fmt.Errorf("dataplane: %w", os.ErrPermission))
	if !strings.Contains(err.Error(), "setcap cap_net_raw") {
		t.Error(err)
	}
}

func TestTextLines(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 1500, time.UTC)
	n := target(7, snsd.Inactive, snsd.ReasonPFCStorm)
	no := false
	tests := []struct {
		l    line
		want string
	}{
		{line{Time: at, Event: "link", Interface: "eth1", Link: "up"}, "12:00:00.000001500 link       eth1 up\n"},
		{line{Time: at, Event: "notice", Acked: &no}.Notice(&n),
			"12:00:00.000001500 notice     192.0.2.1: 198.51.100.1 inactive (pfc-storm) target roce port 4420 nqn.2026-01.net.example:a seq 7 not acked\n"},
		{line{Time: at, Event: "query", Addresses: []netip.Addr{own}}, "12:00:00.000001500 query      192.0.2.1\n"},
	}
	for _, tt := range tests {
		if got := text(&tt.l); got != tt.want {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}

// failing is an output that is closed.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestAClosedOutputEndsTheProgram(t *testing.T) {
	c := newCable(t)
	c.far()
	o := testOptions()
	o.netns = c.host.Path()
	if err := run(t.Context(), o, failing{}); err == nil || !strings.Contains(err.Error(), "output") {
		t.Errorf("error %v", err)
	}
}
