package lldp

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
)

func FuzzParse(f *testing.F) {
	f.Add(goldenFrame(f)[14:])
	for _, s := range []string{
		head + endTLV,
		head + nameTLV + "0e04 00140014" + "100c 0501c0000201 02000000 0100" + "fe04 0080c201" + endTLV,
		head + "1018 11 02 20010db8000000000000000000000001 02 00000001 00" + endTLV + "ff",
		chassisTLV + portTLV + "0602 0000" + endTLV,
	} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		trimmed, _ := trimPDU(b)
		p, err := Parse(b)
		q, err2 := Parse(trimmed)
		if (err == nil) != (err2 == nil) || err == nil && !cmp.Equal(p, q, cmpAddr, cmpErr) {
			t.Fatalf("padding matters: %+v, %v; without %+v, %v", p, err, q, err2)
		}
		if err != nil {
			return
		}
		if n := peekMSAP(trimmed); n == 0 {
			t.Fatal("parsed, but without an MSAP")
		}
		back, err := p.Append(nil)
		if err != nil {
			if len(b) <= maxPDU-64 { // a registration may be written longer than it came
				t.Fatalf("read %+v but cannot write it: %v", p, err)
			}
			return
		}
		again, err := Parse(back)
		if err != nil {
			t.Fatal(err)
		}
		p.Skipped, p.SkippedErr, p.RegistrationErr, p.Odd = Skipped{}, nil, nil, 0
		if p.TTL == 0 { // the rest is not written
			p.PortDesc, p.SysName, p.SysDesc, p.Capabilities, p.Mgmt, p.Org, p.Registration = nil, nil, nil, nil, nil, nil, nil
		}
		if d := cmp.Diff(p, again, cmpAddr, cmpErr); d != "" {
			t.Fatalf("read, written and read:\n%s", d)
		}
	})
}

var cmpErr = cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })

// FuzzTable plays a random history against a model that knows only the Put and Gone
// of the changes, and checks the table's own books after every step.
func FuzzTable(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"))
	f.Add([]byte("\x00\x10\x00\x20\x00\x30\x04\x00\x00\x11\x01\x11\x05\xff\x06\x00\x00\x21"))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 600 {
			script = script[:600]
		}
		m := model{t: t, tab: NewTable(Limits{PortRegistrations: 3, PortOthers: 3, Device: 7}), now: t0, known: map[string]bool{}}
		for len(script) >= 2 {
			script = m.step(script[0]%8, script[1], script[2:])
			m.check()
		}
	})
}

type model struct {
	t     *testing.T
	tab   *Table
	now   time.Time
	known map[string]bool // port and address
}

func (m *model) step(op, arg byte, rest []byte) []byte {
	port := fmt.Sprintf("p%d", arg&1)
	switch op {
	case 0, 1: // a registration of one of a few addresses by one of a few agents
		ttl := uint16(arg >> 6 * 20)
		m.receive(registration(port, arg>>1&1, 1+int(arg>>2&3), fmt.Sprintf("192.0.2.%d", 1+arg>>4&3), ttl))
	case 2: // plain LLDP
		m.receive(plain(port, arg>>1&1, nil, fmt.Sprintf("192.0.2.%d", 1+arg>>2&3), fmt.Sprintf("192.0.2.%d", 1+arg>>4&3)))
	case 3: // a registration with some bytes overwritten
		fr := registration(port, arg>>1&1, 1+int(arg>>2&3), "192.0.2.1", 20)
		n := min(len(rest), int(arg>>4))
		for i := 0; i+1 < n; i += 2 {
			fr.Payload[int(rest[i])%len(fr.Payload)] ^= rest[i+1]
		}
		m.receive(fr)
		return rest[n:]
	case 4: // anything
		n := min(len(rest), int(arg))
		m.receive(fabric.Frame{Port: port, Dst: fabric.MACNearestBridge, EtherType: fabric.EtherTypeLLDP, Payload: rest[:n]})
		return rest[n:]
	case 5: // time goes by
		m.now = m.now.Add(time.Duration(arg) * time.Second / 4)
		due := m.tab.Next()
		out := m.tab.Expire(m.now)
		if (len(out) > 0) != (!due.IsZero() && !due.After(m.now)) {
			m.t.Fatalf("%d aged out at %v, Next was %v", len(out), m.now, due)
		}
		m.apply(out)
	case 6:
		if arg&2 == 0 {
			m.tab.PortDown(port, m.now)
		} else {
			m.apply(m.tab.PortRemoved(port, m.now))
		}
	case 7: // a restart
		var ns []Neighbour
		for _, was := range m.tab.All() {
			n, err := ParseRow(was.RowKey(nil), was.AppendRow(nil))
			if err != nil {
				m.t.Fatal(err)
			}
			n.Confirmed = was.Confirmed
			ns = append(ns, n)
		}
		before := m.tab.Len()
		m.tab = NewTable(m.tab.Limits())
		if err := m.tab.Restore(ns, m.now); err != nil || m.tab.Len() != before {
			m.t.Fatalf("%d of %d restored: %v", m.tab.Len(), before, err)
		}
	}
	return rest
}

func (m *model) receive(f fabric.Frame) {
	ch, err := m.tab.Receive(f, m.now)
	if len(ch) > 1 {
		m.t.Fatalf("%d changes for one frame", len(ch))
	}
	if err != nil {
		_ = err.Error()
	}
	m.apply(ch)
}

func (m *model) apply(changes []Change) {
	for _, c := range changes {
		key := func(a netip.Addr) string { return c.Neighbour.Port + " " + a.String() }
		for _, a := range c.Gone {
			if !m.known[key(a)] {
				m.t.Fatalf("%s is gone but was not known", key(a))
			}
			delete(m.known, key(a))
		}
		for _, h := range c.Put {
			m.known[key(h.Addr)] = true
		}
		if c.Kind == Removed && c.Reason == 0 || c.Kind == Updated && (len(c.Gone) > 0) != (c.Reason != 0) {
			m.t.Fatalf("%s with reason %s and %v gone", c.Kind, c.Reason, c.Gone)
		}
	}
}

func (m *model) check() {
	weight := 0
	var next time.Time
	announced := map[string]bool{}
	for _, n := range m.tab.All() {
		weight += max(1, len(n.Known))
		if next.IsZero() || n.Expires.Before(next) {
			next = n.Expires
		}
		for _, h := range n.Known {
			announced[n.Port+" "+h.Addr.String()] = true
		}
	}
	if d := cmp.Diff(announced, m.known); d != "" {
		m.t.Fatalf("the changes do not add up to the table:\n%s", d)
	}
	if weight != m.tab.Weight() || weight > m.tab.Limits().Device || !next.Equal(m.tab.Next()) {
		m.t.Fatalf("weight %d booked %d, next %v booked %v", weight, m.tab.Weight(), next, m.tab.Next())
	}
	for name, p := range m.tab.ports {
		if p.regs > m.tab.limits.PortRegistrations || p.others > m.tab.limits.PortOthers || p.regs+p.others < len(p.byMSAP) {
			m.t.Fatalf("port %s holds %d and %d with %d neighbours", name, p.regs, p.others, len(p.byMSAP))
		}
	}
	if !m.tab.ages.Sound() {
		m.t.Fatalf("the heap of %d entries is out of order", m.tab.ages.Len())
	}
}
