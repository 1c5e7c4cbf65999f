package hardzone

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// tables are the rows as a dataplane has them that takes every step.
type tables struct {
	t      interface{ Fatalf(string, ...any) }
	hosts  map[netip.Addr]Host
	pairs  map[PairKey]bool
	owners map[uint32]netip.Addr // that a number ever had
	// before is who could talk before the steps, whose rows must not be gone in between.
	after func(s Step)
}

func newTables(t interface{ Fatalf(string, ...any) }) *tables {
	return &tables{t: t, hosts: map[netip.Addr]Host{}, pairs: map[PairKey]bool{}, owners: map[uint32]netip.Addr{}}
}

func (d *tables) take(steps []Step) {
	for _, s := range steps {
		switch s.Op {
		case PutPair:
			if s.Pair.Key.Low >= s.Pair.Key.High || s.Pair.Key.Low == 0 {
				d.t.Fatalf("key %v", s.Pair.Key)
			}
			d.pairs[s.Pair.Key] = true
		case PutHost:
			if was, used := d.owners[s.Host.Number]; used && was != s.Host.Addr {
				d.t.Fatalf("number %d of %s was that of %s", s.Host.Number, s.Host.Addr, was)
			}
			d.owners[s.Host.Number], d.hosts[s.Host.Addr] = s.Host.Addr, s.Host
		case DeleteHost:
			if d.hosts[s.Host.Addr].Number != s.Host.Number {
				d.t.Fatalf("host %v is deleted and is not there", s.Host)
			}
			delete(d.hosts, s.Host.Addr)
		case DeletePair:
			if !d.pairs[s.Pair.Key] {
				d.t.Fatalf("pair %v is deleted and is not there", s.Pair.Key)
			}
			delete(d.pairs, s.Pair.Key)
		}
		if d.after != nil {
			d.after(s)
		}
	}
}

// mayTalk is what a dataplane lets through: from a host on a port here to another host.
func (d *tables) mayTalk(a, b netip.Addr) bool {
	x, y := d.hosts[a], d.hosts[b]
	return x.Number != 0 && y.Number != 0 && d.pairs[KeyOf(x.Number, y.Number)]
}

var (
	self, other = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	start       = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	addrs       = func() (list []netip.Addr) {
		for i := range 7 {
			list = append(list, netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", i+1)))
		}
		return append(list, netip.MustParseAddr("2001:db8::1"))
	}()
	zoneNames = []string{"a", "b", "c"}
)

func drawHost(t *rapid.T) zone.Host {
	h := zone.Host{HostKey: zone.HostKey{Addr: rapid.SampledFrom(addrs).Draw(t, "addr"), Device: rapid.SampledFrom([]netip.Addr{self, self, other}).Draw(t, "device"),
		Port: rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "port")}, MAC: fabric.MAC{2, 0, 0, 0, 0, byte(rapid.IntRange(1, 2).Draw(t, "mac"))}}
	h.Role = snsd.Role(rapid.IntRange(0, 3).Draw(t, "role"))
	return h
}

func drawZone(t *rapid.T) zone.Zone {
	z := zone.Zone{Name: rapid.SampledFrom(zoneNames).Draw(t, "zone")}
	for _, a := range rapid.SliceOfN(rapid.SampledFrom(addrs), 0, 4).Draw(t, "members") {
		z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: a})
	}
	return z
}

// change makes a random change of the table of hosts and notes what it says.
func change(t *rapid.T, d *zone.Directory, p *Policy) {
	var changes zone.Changes
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 0, 1:
		h := drawHost(t)
		changes = d.PutHost(h)
		p.Note(h.Addr) // another port of the same host is no change of its zones
	case 2:
		k := drawHost(t).HostKey
		changes = d.RemoveHost(k, snsd.ReasonAgedOut)
		p.Note(k.Addr)
	case 3:
		changes = d.PutZone(drawZone(t))
	case 4:
		changes = d.DeleteZone(rapid.SampledFrom(zoneNames).Draw(t, "gone"))
	case 5:
		changes = d.SetAutoJoin(rapid.Bool().Draw(t, "auto-join"))
	}
	for _, c := range changes {
		if c.Peers || !d.Known(c.Addr) {
			p.Note(c.Addr)
		}
	}
}

// agree compares the rows with the table of hosts: everything, once nothing waits.
func agree(t *rapid.T, d *zone.Directory, rows *tables) {
	for _, a := range addrs {
		ports := d.PortsAt(a, self)
		if got, there := rows.hosts[a]; there != d.Known(a) || !slices.Equal(got.Ports, ports) {
			t.Fatalf("%s: known %t, row %v %v; want ports %v", a, d.Known(a), there, got, ports)
		}
		for _, b := range addrs {
			here := len(ports) > 0 || len(d.PortsAt(b, self)) > 0
			if got, want := rows.mayTalk(a, b), here && d.MayExchange(a, b); got != want && here {
				t.Fatalf("%s and %s may talk: %t, the rows say %t", a, b, want, got)
			} else if got && !here {
				t.Fatalf("%s and %s are both elsewhere and have a row", a, b)
			}
		}
	}
}

func TestTheRowsSayWhatTheZonesSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := zone.NewDirectory(self)
		cfg := Default()
		p, rows, now := New(d, cfg), newTables(t), start
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				change(t, d, p)
			}
			could := map[PairKey][2]netip.Addr{} // permitted before and after, with rows before
			for _, a := range addrs {
				for _, b := range addrs {
					if a.Less(b) && rows.mayTalk(a, b) && d.MayExchange(a, b) {
						could[KeyOf(rows.hosts[a].Number, rows.hosts[b].Number)] = [2]netip.Addr{a, b}
					}
				}
			}
			rows.after = func(s Step) {
				for k, ends := range could {
					local := len(d.PortsAt(ends[0], self))+len(d.PortsAt(ends[1], self)) > 0
					if local && !rows.mayTalk(ends[0], ends[1]) {
						t.Fatalf("%v of %v, permitted before and after, is gone after %s %v", ends, k, s.Op, s)
					}
				}
			}
			limit := rapid.IntRange(1, 5).Draw(t, "limit")
			for p.Waiting() > 0 {
				rows.take(p.Work(limit, now))
			}
			for _, a := range addrs { // what is permitted is open at once
				for _, b := range addrs {
					if d.MayExchange(a, b) && len(d.PortsAt(a, self)) > 0 && !rows.mayTalk(a, b) {
						t.Fatalf("%s and %s may talk and have no row", a, b)
					}
				}
			}
			if rapid.Bool().Draw(t, "wait") {
				now = now.Add(cfg.CloseAfter)
				rows.take(p.Work(0, now))
				for p.Waiting() > 0 {
					rows.take(p.Work(limit, now))
				}
				agree(t, d, rows)
				if n := p.State(); n.Closing != 0 || n.Pairs != len(rows.pairs) || n.Hosts != len(rows.hosts) || !p.Next(now).IsZero() {
					t.Fatalf("%+v with %d pairs, %d hosts", n, len(rows.pairs), len(rows.hosts))
				}
			}
		}
	})
}

// world is two hosts here and a remote one in a zone.
func world(t *testing.T, cfg Config) (*zone.Directory, *Policy, *tables) {
	d := zone.NewDirectory(self)
	z := zone.Zone{Name: "a"}
	for i, a := range addrs[:3] {
		h := zone.Host{HostKey: zone.HostKey{Addr: a, Device: self, Port: "p1"}}
		if i == 2 {
			h.Device, h.HostKey.Port = other, "x"
		}
		d.PutHost(h)
		z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: a})
	}
	d.PutZone(z)
	p, rows := New(d, cfg), newTables(t)
	p.NoteAll()
	rows.take(p.Work(100, start))
	return d, p, rows
}

func leave(d *zone.Directory, p *Policy, members ...netip.Addr) {
	z := zone.Zone{Name: "a"}
	for _, a := range members {
		z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: a})
	}
	for _, c := range d.PutZone(z) {
		p.Note(c.Addr)
	}
}

func TestAPairIsClosedWhenItsNoticesAreAcked(t *testing.T) {
	cfg := Default()
	d, p, rows := world(t, cfg)
	a, b := addrs[0], addrs[1]
	leave(d, p, a, addrs[2])
	rows.take(p.Work(100, start))
	if !rows.mayTalk(a, b) {
		t.Fatal("closed before anybody was told")
	}
	acks := map[netip.Addr]Told{a: Acked, b: Waiting}
	told := func(host, _ netip.Addr) Told { return acks[host] }
	p.Settle(told, start)
	rows.take(p.Work(100, start))
	if !rows.mayTalk(a, b) {
		t.Fatal("closed although an ack is out")
	}
	acks[b] = NotTold // it does not want notices
	p.Settle(told, start)
	rows.take(p.Work(100, start))
	if rows.mayTalk(a, b) || rows.mayTalk(b, addrs[2]) && acks[b] == Acked {
		t.Fatal("open although all who are told have acked")
	}
	if !rows.mayTalk(b, addrs[2]) {
		t.Fatal("a host that is not told lost the other one before the time was over")
	}
	if next := p.Next(start); !next.Equal(start.Add(cfg.CloseAfter)) {
		t.Fatal(next)
	}
	rows.take(p.Work(100, start.Add(cfg.CloseAfter)))
	if rows.mayTalk(b, addrs[2]) || !rows.mayTalk(a, addrs[2]) {
		t.Fatal(rows.pairs)
	}
}

func TestAnEmergencyClosesAtOnce(t *testing.T) {
	d, p, rows := world(t, Default())
	leave(d, p)
	rows.take(p.Work(100, start))
	p.CloseNow(start)
	rows.take(p.Work(100, start))
	if len(rows.pairs) != 0 {
		t.Fatal(rows.pairs)
	}
}

func TestAPairThatIsPermittedAgainIsNotClosed(t *testing.T) {
	cfg := Default()
	d, p, rows := world(t, cfg)
	leave(d, p)
	rows.take(p.Work(100, start))
	leave(d, p, addrs[:3]...)
	rows.after = func(s Step) { t.Errorf("%s %v", s.Op, s) }
	p.Work(100, start) // of the hosts' counters at most
	rows.take(p.Work(100, start.Add(cfg.CloseAfter)))
	if v := p.Between(addrs[0], addrs[1]); !v.Open || !v.Closing.IsZero() {
		t.Fatalf("%+v", v)
	}
}

func TestWhatTheKernelHasOutlivesTheProcess(t *testing.T) {
	cfg := Default()
	d, _, rows := world(t, cfg)
	var hosts []Host
	for _, h := range rows.hosts {
		hosts = append(hosts, h)
	}
	keys := append(slices.Collect(maps.Keys(rows.pairs)), PairKey{1, 99}) // the last is of a process that was killed in between
	rows.pairs[PairKey{1, 99}] = true
	next := zone.NewDirectory(self)
	p := New(next, cfg)
	until := start.Add(time.Minute)
	p.Adopt(hosts, keys, until)
	rows.take(p.Work(100, start))
	if len(rows.pairs) != 3 {
		t.Fatal("rows were closed because nobody is heard yet", rows.pairs)
	}
	// Two of three come back, in a zone that leaves the first out.
	for h := range d.AllHosts() {
		if h.Addr != addrs[2] {
			next.PutHost(h)
		}
	}
	leave(next, p, addrs[1], addrs[2])
	p.NoteAll()
	rows.take(p.Work(100, start))
	rows.take(p.Work(100, start.Add(cfg.CloseAfter)))
	if rows.mayTalk(addrs[0], addrs[1]) || !rows.mayTalk(addrs[1], addrs[2]) {
		t.Fatal(rows.pairs)
	}
	for now := until; p.Next(now) != (time.Time{}); now = now.Add(time.Second) {
		rows.take(p.Work(100, now))
	}
	if len(rows.pairs) != 0 || len(rows.hosts) != 2 {
		t.Fatal(rows.pairs, rows.hosts)
	}
	h := zone.Host{HostKey: zone.HostKey{Addr: addrs[4], Device: self, Port: "p1"}}
	next.PutHost(h)
	p.Note(h.Addr)
	steps := p.Work(100, until)
	if len(steps) != 1 || steps[0].Host.Number < 100 {
		t.Fatal("a number is used again", steps)
	}
}

func TestWhatHasNoRoomIsSaidAndFollowsWhenThereIsSome(t *testing.T) {
	cfg := Default()
	cfg.MaxPairs = 1
	d, p, rows := world(t, cfg)
	for p.Waiting() > 0 {
		rows.take(p.Work(100, start))
	}
	if n := p.State(); n.Pairs != 1 || n.NoRoom != 2 || len(rows.pairs) != 1 {
		t.Fatalf("%+v", n)
	}
	d.RemoveHost(zone.HostKey{Addr: addrs[0], Device: self, Port: "p1"}, snsd.ReasonAgedOut)
	p.Note(addrs[0])
	now := start
	for range 4 {
		now = now.Add(cfg.CloseAfter)
		rows.take(p.Work(100, now))
	}
	if n := p.State(); n.Pairs != 1 || n.NoRoom != 0 || !rows.mayTalk(addrs[1], addrs[2]) {
		t.Fatalf("%+v %v", n, rows.pairs)
	}
}

func TestZonesShareTheFirstCounterWhenThereAreTooMany(t *testing.T) {
	s := newSlots()
	for i := range ZoneCounters {
		if slot, fresh := s.take(fmt.Sprint(i)); slot != uint32(i+1) || !fresh {
			t.Fatal(slot, fresh)
		}
	}
	if slot, _ := s.take("more"); slot != 0 || !s.is(0, "more") {
		t.Fatal(slot)
	}
	s.drop(7)
	if s.is(0, "more") {
		t.Fatal("a counter is free and is not taken")
	}
	if slot, fresh := s.take("more"); slot != 7 || !fresh || s.is(7, "6") {
		t.Fatal(slot, fresh)
	}
}

func TestPermitsAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]Permit{
		"tcp/22":        {Protocol: 6, Port: 22},
		"udp/67":        {Protocol: 17, Port: 67},
		"protocol/89":   {Protocol: 89},
		"192.0.2.0/24":  {Prefix: netip.MustParsePrefix("192.0.2.0/24")},
		"2001:db8::/32": {Prefix: netip.MustParsePrefix("2001:db8::/32")},
	} {
		got, err := ParsePermit(text)
		if diff := gocmp.Diff(want, got, gocmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); err != nil || diff != "" || got.String() != text {
			t.Errorf("%s: %v %s %s", text, err, got, diff)
		}
	}
	for _, text := range []string{"", "tcp", "tcp/", "tcp/0", "udp/65536", "protocol/6", "protocol/256", "192.0.2.1/24", "host", "sctp/1"} {
		if p, err := ParsePermit(text); err == nil {
			t.Errorf("%q is taken for %s", text, p)
		}
	}
}
