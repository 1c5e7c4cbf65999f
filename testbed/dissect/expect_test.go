package dissect

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// list is what a dissector should show, "field=value" in the order of the bytes.
type list []string

func (l *list) add(name string, value any) { *l = append(*l, fmt.Sprintf("%s=%v", name, value)) }

func (l *list) hex(name string, digits int, value uint64) {
	l.add(name, fmt.Sprintf("0x%0*x", digits, value))
}

func (l *list) bit(name string, set bool) {
	if set {
		l.add(name, 1)
	} else {
		l.add(name, 0)
	}
}

func (l *list) addr(name string, a netip.Addr) {
	if a.Is4() {
		l.add(name+".ipv4", a)
	} else {
		l.add(name+".ipv6", a)
	}
}

func (l *list) time(name string, at time.Time) {
	if !at.IsZero() {
		l.add(name, at.UnixNano())
	}
}

func (l *list) text(name, s string) {
	if s != "" {
		l.add(name, s)
	}
}

// ofMessage is what the dissector should show of m, which frame holds.
func ofMessage(m wire.Message, frame []byte) list {
	var l list
	h, _ := wire.ParseHeader(frame, wire.MaxMessage)
	l.add("inof.length", h.Length)
	l.add("inof.version", h.Version)
	l.add("inof.type", uint8(h.Type))
	l.hex("inof.flags", 4, uint64(h.Flags))
	l.bit("inof.flags.tag", h.Flags&1 != 0)
	l.bit("inof.flags.critical", h.Flags&0xff00 != 0)
	l.add("inof.number", h.Seq)
	switch m := m.(type) {
	case *wire.Open:
		l.ofOpen(m)
	case *wire.Keepalive:
		if m.Proof != nil {
			l.add("inof.proof", hex.EncodeToString(m.Proof))
		}
		if m.Demand != 0 {
			l.hex("inof.demand", 16, m.Demand)
		}
		if m.Answer != 0 {
			l.hex("inof.answer", 16, m.Answer)
		}
	case *wire.Update:
		l.ofUpdate(m)
	case *wire.EndOfSync:
		l.hex("inof.epoch", 16, m.Epoch)
		l.add("inof.seq", m.Seq)
		if m.Resumed {
			l.bit("inof.resumed", true)
		}
		for _, a := range m.Short {
			l.addr("inof.short", a)
		}
		l.ofCluster(m.Cluster)
		for _, a := range m.Members {
			l.addr("inof.cluster.member", a)
		}
	case *wire.Report:
		for _, w := range m.Warnings {
			l.add("inof.report.rule", w.Rule)
			l.text("inof.report.text", w.Text)
		}
	case *wire.PathKeys:
		if d, err := wire.Decode(frame); err == nil { // as it was encrypted for its session
			m = d.(*wire.PathKeys)
		}
		for _, a := range m.Asked {
			l.addr("inof.path.asked", a)
		}
		for _, k := range m.Keys {
			l.addr("inof.path.device", k.Device)
			l.add("inof.path.id", k.ID)
			l.add("inof.path.secret", hex.EncodeToString(k.Secret[:]))
		}
		if len(m.Sealed) > 0 {
			l.add("inof.path.sealed", hex.EncodeToString(m.Sealed))
		}
	case *wire.Bound:
		for _, p := range m.Prefixes {
			l.addr("inof.bound.prefix", p.Addr())
			l.add("inof.bound.bits", uint8(p.Bits()))
		}
		for _, name := range m.NQNs {
			l.text("inof.bound.name", name)
		}
	case *wire.Notification:
		l.add("inof.code", uint16(m.Code))
		l.text("inof.text", m.Text)
	}
	if h.Flags&1 != 0 {
		l.add("inof.tag", hex.EncodeToString(frame[len(frame)-wire.TagLen:]))
	}
	return l
}

func (l *list) ofOpen(o *wire.Open) {
	l.addr("inof.device", o.Device)
	l.add("inof.version.least", o.MinVersion)
	l.add("inof.version.greatest", o.MaxVersion)
	l.hex("inof.roles", 2, uint64(o.Roles))
	l.bit("inof.roles.reflector", o.Roles&wire.RoleReflector != 0)
	l.bit("inof.roles.client", o.Roles&wire.RoleClient != 0)
	l.hex("inof.capabilities", 16, uint64(o.Caps))
	l.bit("inof.capabilities.all", o.Caps&wire.CapInterestAll != 0)
	l.bit("inof.capabilities.fence", o.Caps&wire.CapFence != 0)
	l.add("inof.hold", o.Hold.Milliseconds())
	l.add("inof.keepalive", o.Keepalive.Milliseconds())
	l.add("inof.nonce", hex.EncodeToString(o.Nonce[:]))
	l.hex("inof.epoch", 16, o.Epoch)
	l.add("inof.auth", uint8(o.Auth))
	if o.Resume != nil {
		l.hex("inof.resume.epoch", 16, o.Resume.Epoch)
		l.add("inof.resume.seq", o.Resume.Seq)
		if o.Resume.Zones.Known() {
			l.add("inof.resume.zones", hex.EncodeToString(o.Resume.Zones[:]))
		}
	}
}

func (l *list) ofCluster(s wire.ClusterStamp) {
	if s.Known() {
		l.hex("inof.cluster.id", 16, s.ID)
		l.add("inof.cluster.index", s.Index)
	}
}

func (l *list) ofUpdate(u *wire.Update) {
	l.addr("inof.origin", u.Origin)
	l.hex("inof.epoch", 16, u.Epoch)
	l.add("inof.seq", u.Seq)
	l.time("inof.time.fault", u.FaultAt)
	for _, s := range []struct {
		name string
		at   time.Time
	}{{"sent", u.SentAt}, {"reflected", u.ReflectedAt}} {
		l.time("inof.time."+s.name, s.at)
		if !u.FaultAt.IsZero() && !s.at.IsZero() {
			l.add("inof.latency."+s.name, int64(s.at.Sub(u.FaultAt)))
		}
	}
	for _, d := range u.Devices {
		l.addr("inof.record_of.device", d.Device)
		l.hex("inof.record_of.epoch", 16, d.Epoch)
		l.add("inof.record_of.seq", d.Seq)
	}
	if u.Pos.Known() {
		l.hex("inof.position.epoch", 16, u.Pos.Epoch)
		l.add("inof.position.seq", u.Pos.Seq)
	}
	if u.Partial {
		l.bit("inof.partial", true)
	}
	if u.More {
		l.bit("inof.more", true)
	}
	if x := u.Refused; x != nil {
		l.add("inof.refused.hosts", x.Hosts)
		l.add("inof.refused.limit", x.Limit)
		flags := uint64(0)
		if x.Again {
			flags = 1
		}
		l.hex("inof.refused.flags", 2, flags)
		l.bit("inof.refused.again", x.Again)
		l.add("inof.refused.outside", x.Outside)
		for _, a := range x.Named {
			l.addr("inof.refused.address", a)
		}
	}
	l.ofCluster(u.Cluster)
	if s := u.Settings; s != nil {
		flags := uint64(0)
		for i, set := range []bool{s.AutoJoin, s.Hard, s.BFD.Enabled, s.BFD.MeshAll, s.Halt.On, s.Halt.OpenZoning} {
			if set {
				flags |= 1 << i
			}
		}
		l.hex("inof.settings.flags", 2, flags)
		l.bit("inof.settings.auto_join", s.AutoJoin)
		l.bit("inof.settings.hard", s.Hard)
		l.bit("inof.settings.bfd", s.BFD.Enabled)
		l.bit("inof.settings.bfd.mesh_all", s.BFD.MeshAll)
		l.bit("inof.settings.halt", s.Halt.On)
		l.bit("inof.settings.halt.open", s.Halt.OpenZoning)
		l.add("inof.settings.bfd.interval", s.BFD.Interval.Microseconds())
		l.add("inof.settings.bfd.multiplier", s.BFD.DetectMult)
	}
	for _, z := range u.Zones {
		l.add("inof.zone.op", uint8(z.Op))
		l.add("inof.zone.name", z.Zone.Name)
		for _, m := range z.Zone.Members {
			l.ofMember(m)
		}
	}
	for _, h := range u.Hosts {
		l.ofHost(h)
	}
	for _, d := range u.Downs {
		l.ofDown(d.Down)
		l.addr("inof.down.device", d.Device)
		l.add("inof.down.port", d.Port)
		for _, a := range d.Addrs {
			l.addr("inof.down.address", a)
		}
	}
	for _, f := range u.Fences {
		l.addr("inof.fence.device", f.Device)
		l.add("inof.fence.port", f.Port)
		l.addr("inof.fence.array", f.Array)
		for _, p := range f.Peers {
			if p.Host.IsValid() {
				l.addr("inof.fence.host", p.Host)
			} else {
				l.bit("inof.fence.all", true)
			}
			l.add("inof.fence.level", uint8(p.Level))
			l.time("inof.fence.since", p.Since)
			l.add("inof.fence.hold", int(p.Hold.Seconds()))
			l.add("inof.fence.took", p.Took.Milliseconds())
		}
	}
}

func (l *list) ofDown(d zone.Down) {
	l.add("inof.down.reason", uint8(d.Why))
	l.time("inof.down.since", d.Since)
}

func (l *list) ofMember(m zone.Member) {
	l.add("inof.zone.member.kind", uint8(m.Kind)) // the wire numbers them alike
	switch m.Kind {
	case zone.MemberAddr:
		l.addr("inof.zone.member.address", m.First)
	case zone.MemberRange:
		l.addr("inof.zone.member.first", m.First)
		l.addr("inof.zone.member.last", m.Last)
	case zone.MemberNQN:
		l.add("inof.zone.member.nqn", m.NQN)
	case zone.MemberPort:
		l.addr("inof.zone.member.device", m.Device)
		l.add("inof.zone.member.port", m.Port)
	case zone.MemberBound:
		if p, ok := m.Prefix(); ok {
			l.add("inof.zone.member.place", 1)
			l.addr("inof.zone.member.prefix", p.Addr())
			l.add("inof.zone.member.bits", p.Bits())
		} else {
			l.add("inof.zone.member.place", 2)
			l.addr("inof.zone.member.device", m.Device)
			if m.Port != "" {
				l.add("inof.zone.member.port", m.Port)
			}
		}
		l.add("inof.zone.member.nqn", m.NQN)
	}
}

func (l *list) ofHost(h wire.HostRecord) {
	l.add("inof.host.op", uint8(h.Op))
	l.add("inof.host.reason", uint8(h.Why))
	l.addr("inof.host.address", h.Host.Addr)
	l.addr("inof.host.device", h.Host.Device)
	l.add("inof.host.port", h.Host.HostKey.Port)
	if h.Op != wire.Put {
		return
	}
	l.add("inof.host.mac", h.Host.MAC)
	flags := uint64(0)
	if h.Host.Subscribes {
		flags |= 1
	}
	if h.Host.Down.Is() {
		flags |= 8
	}
	l.hex("inof.host.flags", 2, flags)
	l.bit("inof.host.subscribes", h.Host.Subscribes)
	l.bit("inof.host.rival", h.Host.Claim == zone.ClaimRival)
	l.bit("inof.host.doubt", h.Host.Doubt)
	l.bit("inof.host.down", h.Host.Down.Is())
	l.add("inof.host.role", uint8(h.Host.Role))
	l.add("inof.host.protocol", uint8(h.Host.Protocol))
	l.add("inof.host.service_port", h.Host.Service.Port)
	l.time("inof.host.since", h.Host.Since)
	l.text("inof.host.nqn", h.Host.NQN)
	if h.Host.Down.Is() {
		l.ofDown(h.Host.Down)
	}
}

// shape are fields that say how the bytes are laid out and nothing about the message.
var shape = []string{
	"inof.tlv", "inof.tlv.type", "inof.tlv.critical", "inof.tlv.length", "inof.family", "inof.text.length", "inof.zone.member", "inof.zone.member.length",
	"nts.root", "nts.root.type", "nts.root.structured", "nts.root.length", "nts.tlv", "nts.tlv.type", "nts.tlv.length", "nts.nqn.length",
	"snsd.nqn.length",
}

// shown is what the dissector did show below n, in the form of a list; fields of
// shape and generated ones of NTS are left out.
func shown(t testing.TB, n *node) list {
	var l list
	var walk func(n *node)
	walk = func(n *node) {
		for i := range n.Nodes {
			c := &n.Nodes[i]
			if c.Name == "_ws.expert" {
				continue
			}
			if c.Name != "" && c.Name != "_ws.lua.text" && !slices.Contains(shape, c.Name) && !strings.HasPrefix(c.Name, "nts.ack") {
				l.add(c.Name, normal(t, c))
			}
			walk(c)
		}
	}
	walk(n)
	return l
}

// normal undoes differences between versions of Wireshark in how values look.
func normal(t testing.TB, n *node) string {
	switch {
	case n.Show == "True":
		return "1"
	case n.Show == "False":
		return "0"
	case strings.HasPrefix(n.Name, "inof.time.") || strings.HasSuffix(n.Name, ".since"):
		s := strings.Join(strings.Fields(n.Show), " ")
		for _, layout := range []string{"Jan 2, 2006 15:04:05.999999999 MST", time.RFC3339Nano, "2006-01-02 15:04:05.999999999 MST"} {
			if at, err := time.Parse(layout, s); err == nil {
				return strconv.FormatInt(at.UnixNano(), 10)
			}
		}
		t.Errorf("%s: cannot read the time %q", n.Name, n.Show)
	case strings.HasPrefix(n.Name, "inof.latency."):
		d, err := time.ParseDuration(n.Show + "s")
		if err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
		return strconv.FormatInt(int64(d), 10)
	case n.Name == "inof.tag" || n.Name == "inof.nonce" || n.Name == "inof.resume.zones" || n.Name == "inof.proof" || n.Name == "inof.path.secret" || n.Name == "inof.path.sealed" || n.Name == "snsd.reserved" || n.Name == "nts.padding":
		return strings.ReplaceAll(n.Show, ":", "")
	}
	return n.Show
}
