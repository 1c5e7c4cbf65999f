package sonic

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/hardzone"
)

func acl(t interface{ Fatal(...any) }, address string) *ACL {
	a, err := OpenACL(hardzone.Default(), address)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var aclPorts = []hardzone.Port{{Name: "Ethernet0"}, {Name: "Ethernet4"}, {Name: "Ethernet8"}}

func ip(text string) netip.Addr { return netip.MustParseAddr(text) }

func putHost(n uint32, addr string, ports ...string) hardzone.Step {
	return hardzone.Step{Op: hardzone.PutHost, Host: hardzone.Host{Addr: ip(addr), Number: n, Ports: ports}}
}

func putPair(a, b uint32) hardzone.Step {
	return hardzone.Step{Op: hardzone.PutPair, Pair: hardzone.Pair{Key: hardzone.KeyOf(a, b), Zone: 3}}
}

func deletePair(a, b uint32) hardzone.Step {
	return hardzone.Step{Op: hardzone.DeletePair, Pair: hardzone.Pair{Key: hardzone.KeyOf(a, b)}}
}

// aclWorld has two hosts here that may talk, one that may not, and a remote one.
var aclWorld = []hardzone.Step{putPair(1, 2), putPair(1, 4), putHost(1, "192.0.2.1", "Ethernet0"), putHost(2, "192.0.2.2", "Ethernet4"), putHost(3, "192.0.2.3", "Ethernet8"), putHost(4, "198.51.100.4")}

func noErr(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func portErr(states []hardzone.PortState) error {
	for _, st := range states {
		if st.Err != nil || st.Attach != hardzone.AttachASIC {
			return fmt.Errorf("%+v", st)
		}
	}
	return nil
}

func TestTheASICDoesWhatTheRowsSay(t *testing.T) {
	address := server(t)
	o := newOrchagent(t, address, 4096)
	rapid.Check(t, func(t *rapid.T) {
		a := acl(t, address)
		defer func() {
			noErr(t, a.Remove())
			o.settled(t)
		}()
		addrs := map[uint32]netip.Addr{}
		local := map[uint32]string{}
		var steps []hardzone.Step
		for n := uint32(1); n <= 10; n++ {
			addrs[n] = netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})
			if n > 7 {
				addrs[n] = netip.AddrFrom16([16]byte{0x20, 1, 15: byte(n)})
			}
			port := rapid.SampledFrom([]string{"", "Ethernet0", "Ethernet4"}).Draw(t, "port")
			s := putHost(n, addrs[n].String())
			if port != "" {
				s.Host.Ports, local[n] = []string{port}, port
			}
			steps = append(steps, s)
		}
		noErr(t, a.Configure(hardzone.Default(), nil))
		noErr(t, a.Apply(steps))
		pairs := map[hardzone.PairKey]bool{}
		change := func() (steps []hardzone.Step, stay map[hardzone.PairKey]bool) {
			stay = maps.Clone(pairs)
			var dels []hardzone.Step
			for range rapid.IntRange(1, 12).Draw(t, "changes") {
				k := hardzone.KeyOf(uint32(rapid.IntRange(1, 5).Draw(t, "a")), uint32(rapid.IntRange(6, 10).Draw(t, "b")))
				if rapid.Bool().Draw(t, "open") {
					pairs[k] = true
					steps = append(steps, putPair(k.Low, k.High))
				} else if pairs[k] {
					delete(pairs, k)
					dels = append(dels, deletePair(k.Low, k.High))
				}
			}
			for k := range stay {
				if !pairs[k] {
					delete(stay, k)
				}
			}
			for i := range dels { // not of those that were opened again
				if pairs[dels[i].Pair.Key] {
					dels[i] = putPair(dels[i].Pair.Key.Low, dels[i].Pair.Key.High)
				}
			}
			for i := range steps {
				if k := steps[i].Pair.Key; !pairs[k] {
					steps[i] = deletePair(k.Low, k.High)
				}
			}
			return append(steps, dels...), stay
		}
		passes := func(x, y uint32) bool { return o.forwards(local[x], addrs[x], addrs[y], 4420) }
		check := func(what string, want map[hardzone.PairKey]bool, only bool) {
			for x := range addrs {
				for y := range addrs {
					if local[x] == "" || x == y || addrs[x].Is4() != addrs[y].Is4() {
						continue
					}
					may := want[hardzone.KeyOf(x, y)]
					if got := passes(x, y); got != may && (may || !only) {
						t.Fatalf("%s: %s at %s reaches %s: %t", what, addrs[x], local[x], addrs[y], got)
					}
				}
			}
		}
		first, _ := change()
		noErr(t, a.Apply(first))
		noErr(t, portErr(a.SetPorts(aclPorts)))
		o.settled(t)
		bound := func() bool { // both tables: what no rule is for is dropped
			return !o.forwards("Ethernet8", ip("203.0.113.1"), ip("203.0.113.2"), 4420) && !o.forwards("Ethernet8", ip("2001:db8::1"), ip("2001:db8::2"), 4420)
		}
		for end := time.Now().Add(10 * time.Second); !bound() && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
		check("at first", pairs, false)
		for range rapid.IntRange(0, 2).Draw(t, "rounds") {
			steps, stay := change()
			before := maps.Clone(pairs)
			o.mu.Lock()
			o.after = func() {
				for k := range stay {
					for _, w := range [][2]uint32{{k.Low, k.High}, {k.High, k.Low}} {
						if local[w[0]] != "" && addrs[w[0]].Is4() == addrs[w[1]].Is4() && !passes(w[0], w[1]) {
							o.t.Errorf("%s and %s may talk before and after a change, and do not in between", addrs[w[0]], addrs[w[1]])
						}
					}
				}
			}
			o.mu.Unlock()
			noErr(t, a.Apply(steps))
			o.settled(t)
			o.mu.Lock()
			o.after = nil
			o.mu.Unlock()
			check("after a change", before, false)
		}
		for x, port := range local { // on another port, from a stranger
			if o.forwards("Ethernet8", addrs[x], addrs[4], 4420) && port != "Ethernet8" || o.forwards(port, ip("192.0.2.99"), addrs[1], 4420) {
				t.Fatal("an address that is not of its port passes")
			}
			if !o.forwards(port, addrs[x], ip("224.0.0.5"), 0) && addrs[x].Is4() {
				t.Fatal("a group is dropped")
			}
		}
	})
}

func TestANewProcessFindsItsRulesAndChangesNone(t *testing.T) {
	address := server(t)
	o := newOrchagent(t, address, 4096)
	a := acl(t, address)
	noErr(t, a.Configure(hardzone.Default(), nil))
	noErr(t, a.Apply(aclWorld))
	noErr(t, portErr(a.SetPorts(aclPorts)))
	o.settled(t)
	noErr(t, a.Close())
	ops := o.count()

	b := acl(t, address)
	defer b.Close()
	hosts, keys, suspended := b.Adopted()
	number := map[netip.Addr]uint32{}
	for _, h := range hosts {
		number[h.Addr] = h.Number
	}
	if len(hosts) != 3 || len(keys) != 2 || suspended || number[ip("192.0.2.1")] == 0 || number[ip("198.51.100.4")] == 0 {
		t.Fatal(hosts, keys, suspended)
	}
	noErr(t, b.Configure(hardzone.Default(), nil))
	var steps []hardzone.Step
	for _, h := range hosts {
		steps = append(steps, hardzone.Step{Op: hardzone.PutHost, Host: h})
	}
	noErr(t, b.Apply(steps))
	noErr(t, portErr(b.SetPorts(aclPorts)))
	audit, err := b.Audit()
	noErr(t, err)
	o.settled(t)
	if audit.Repaired() != 0 || o.count() != ops {
		t.Errorf("%+v, %d changes of rules", audit, o.count()-ops)
	}
	if s, err := b.Look(ip("192.0.2.1"), ip("192.0.2.2")); err != nil || !s.Open || s.Suspended {
		t.Errorf("%+v %v", s, err)
	}
	if s, err := b.Look(ip("192.0.2.2"), ip("198.51.100.4")); err != nil || s.Open {
		t.Errorf("%+v %v", s, err)
	}
}

func TestAnAuditMendsOurRulesAndLeavesThoseOfOthers(t *testing.T) {
	address := server(t)
	o := newOrchagent(t, address, 4096)
	d := &db{address: address, number: configDB}
	defer d.close()
	set(t, d, "HSET", "ACL_TABLE|DATAACL", "type", "L3", "stage", "ingress", "ports@", "Ethernet0")
	set(t, d, "HSET", "ACL_RULE|DATAACL|RULE_1", "PRIORITY", "55", "PACKET_ACTION", "DROP", "SRC_IP", "10.0.0.0/8")
	a := acl(t, address)
	noErr(t, a.Configure(hardzone.Default(), nil))
	noErr(t, a.Apply(aclWorld))
	noErr(t, portErr(a.SetPorts(aclPorts)))
	rows, err := d.rowsOf(aclTable4)
	noErr(t, err)
	i := 0
	for key := range rows {
		if i++; i == 1 {
			set(t, d, "DEL", key)
		}
	}
	set(t, d, "HSET", "ACL_RULE|"+aclTable4+"|MINE", "PRIORITY", "9999", "PACKET_ACTION", "FORWARD")
	set(t, d, "HSET", "ACL_TABLE|"+aclTable4, "ports@", "Ethernet0")
	audit, err := a.Audit()
	noErr(t, err)
	if audit.Missing != 1 || audit.Foreign != 1 || audit.Hosts != 4 || audit.Pairs != 2 {
		t.Errorf("%+v", audit)
	}
	if audit, err = a.Audit(); err != nil || audit.Repaired() != 0 {
		t.Errorf("%+v %v", audit, err)
	}
	after, err := d.hashes([]string{"ACL_TABLE|" + aclTable4, "ACL_RULE|DATAACL|RULE_1"})
	noErr(t, err)
	if after["ACL_TABLE|"+aclTable4]["ports@"] != "Ethernet0,Ethernet4,Ethernet8" {
		t.Error(after)
	}
	o.settled(t)
	noErr(t, a.Suspend(true))
	for o.forwards("Ethernet0", ip("192.0.2.1"), ip("192.0.2.3"), 4420) == false {
		time.Sleep(time.Millisecond)
	}
	b := acl(t, address) // the next process
	defer b.Close()
	if _, _, suspended := b.Adopted(); !suspended {
		t.Error("a suspension is forgotten")
	}
	noErr(t, a.Suspend(false))
	for o.forwards("Ethernet0", ip("192.0.2.1"), ip("192.0.2.3"), 4420) {
		time.Sleep(time.Millisecond)
	}
	noErr(t, RemoveACL(address))
	keys, err := d.scan("*INOF*")
	left, err1 := d.hashes([]string{"ACL_TABLE|DATAACL", "ACL_RULE|DATAACL|RULE_1"})
	if err != nil || err1 != nil || len(keys) != 0 || len(left["ACL_TABLE|DATAACL"]) != 3 || left["ACL_RULE|DATAACL|RULE_1"]["PRIORITY"] != "55" {
		t.Error(keys, left, err, err1)
	}
	a.Close()
}

func TestWhatExceedsTheASICIsSaidWithTheNumber(t *testing.T) {
	address := server(t)
	o := newOrchagent(t, address, 30)
	a := acl(t, address)
	defer a.Close()
	noErr(t, a.Configure(hardzone.Default(), nil))
	noErr(t, a.Apply(aclWorld))
	noErr(t, portErr(a.SetPorts(aclPorts)))
	o.settled(t)
	if _, err := a.Audit(); err != nil || a.room[aclTable4] != 30 {
		t.Fatal(err, a.room)
	}
	var steps []hardzone.Step
	for n := uint32(10); n < 60; n += 2 { // every other address: nothing can be put together
		steps = append(steps, putPair(1, n), hardzone.Step{Op: hardzone.PutHost, Host: hardzone.Host{Addr: netip.AddrFrom4([4]byte{203, 0, 113, byte(n)}), Number: n}})
	}
	slices.SortStableFunc(steps, func(x, y hardzone.Step) int { return int(x.Op) - int(y.Op) })
	err := a.Apply(steps)
	if err == nil || !strings.Contains(err.Error(), "room for 30 rules") {
		t.Fatal(err)
	}
	if _, auditErr := a.Audit(); auditErr == nil || auditErr.Error() != err.Error() {
		t.Errorf("%v\n%v", auditErr, err)
	}
	o.settled(t)
	if !o.forwards("Ethernet0", ip("192.0.2.1"), ip("192.0.2.2"), 4420) {
		t.Error("a pair that had a rule lost it")
	}
	for i := range steps {
		if steps[i].Op = hardzone.DeletePair; steps[i].Pair.Key.Low == 0 {
			steps[i].Pair.Key = hardzone.KeyOf(1, steps[i].Host.Number)
		}
	}
	noErr(t, a.Apply(steps[:len(steps)/2+20]))
}

func TestRulesAreCounted(t *testing.T) {
	address := server(t)
	o := newOrchagent(t, address, 4096)
	o.mute = true // as an older image
	a := acl(t, address)
	defer a.Close()
	noErr(t, a.Configure(hardzone.Default(), nil))
	noErr(t, a.Apply(aclWorld))
	noErr(t, portErr(a.SetPorts(aclPorts)))
	o.settled(t)
	c, err := a.Counts()
	if err != nil || c.Ports["Ethernet0"].Passed != 14 || c.Ports["Ethernet4"].Passed != 7 || c.Ports["Ethernet8"].Passed != 0 || c.Ports["Ethernet8"].NoPair != 14 {
		t.Errorf("%+v %v", c, err)
	}
	if len(c.Zones) != 4 || c.Zones[3].Passed != 21 {
		t.Errorf("%+v", c.Zones)
	}
}

func TestAnASICThatCannotDropIsSaid(t *testing.T) {
	address := server(t)
	d := &db{address: address, number: stateDB}
	defer d.close()
	set(t, d, "HSET", "ACL_STAGE_CAPABILITY_TABLE|INGRESS", "action_list", "MIRROR_INGRESS_ACTION,NO_NAT")
	if _, err := OpenACL(hardzone.Default(), address); err == nil || !strings.Contains(err.Error(), "PACKET_ACTION") {
		t.Error(err)
	}
	set(t, d, "HSET", "ACL_STAGE_CAPABILITY_TABLE|INGRESS", "action_list", "MIRROR_INGRESS_ACTION,PACKET_ACTION")
	noErr(t, acl(t, address).Close())
	if _, err := OpenACL(hardzone.Default(), address+"x"); err == nil {
		t.Error("no error without a server")
	}
}

func TestPrefixesHaveThePartnersAndNoOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := map[netip.Addr]bool{}
		var list []netip.Addr
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 63)).Draw(t, "addrs") {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})
			in[a], list = true, append(list, a)
		}
		prefixes := cover(list)
		for n := range 256 {
			a, covers := netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 0
			for _, p := range prefixes {
				if p.Contains(a) {
					covers++
				}
			}
			if covers != map[bool]int{true: 1}[in[a]] {
				t.Fatalf("%s is %d times in %v", a, covers, prefixes)
			}
		}
		for i, p := range prefixes { // no two make one
			for _, q := range prefixes[i+1:] {
				if p.Bits() == q.Bits() && p.Bits() > 0 && netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked() == netip.PrefixFrom(q.Addr(), q.Bits()-1).Masked() {
					t.Fatalf("%s and %s are one", p, q)
				}
			}
		}
	})
	var all []netip.Addr
	for n := range 256 {
		all = append(all, netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}))
	}
	if got := pairRules(ip("192.0.2.1"), []string{"Ethernet0"}, all); len(got) != 1 || got[0].dst != netip.MustParsePrefix("10.0.0.0/24") {
		t.Error(got)
	}
}

func TestTheAccessWhitelistAndPermitsAreRulesOfTheirOwn(t *testing.T) {
	cfg := hardzone.Default()
	cfg.Permit = []hardzone.Permit{{Protocol: 6, Port: 22}, {Prefix: netip.MustParsePrefix("192.0.2.254/32")}, {Protocol: 89}}
	bounds := []hardzone.Bound{{Prefix: netip.MustParsePrefix("2001:db8::/64"), Ports: []string{"Ethernet4"}}, {Prefix: netip.MustParsePrefix("10.0.0.0/8"), Ports: []string{"Ethernet0", "Ethernet4"}}}
	var got []string
	for _, r := range baseRules(cfg, bounds, []string{"Ethernet0", "Ethernet4"}) {
		if r.dst.IsValid() && r.dst.Addr().IsMulticast() || r.icmp != 0 || r.table == aclTable6 && r.priority == aclPermit {
			continue
		}
		got = append(got, strings.Join(r.fields(), " "))
	}
	want := []string{
		"PRIORITY 7000 PACKET_ACTION FORWARD DST_IP 255.255.255.255/32",
		"PRIORITY 7000 PACKET_ACTION FORWARD IP_PROTOCOL 6 L4_DST_PORT 22",
		"PRIORITY 7000 PACKET_ACTION FORWARD IP_PROTOCOL 6 L4_SRC_PORT 22 L4_DST_PORT_RANGE 32768-65535",
		"PRIORITY 7000 PACKET_ACTION FORWARD SRC_IP 192.0.2.254/32",
		"PRIORITY 7000 PACKET_ACTION FORWARD DST_IP 192.0.2.254/32",
		"PRIORITY 7000 PACKET_ACTION FORWARD IP_PROTOCOL 89",
		"PRIORITY 8000 PACKET_ACTION DROP IN_PORTS Ethernet0 SRC_IPV6 2001:db8::/64",
		"PRIORITY 10 PACKET_ACTION DROP IN_PORTS Ethernet0 ETHER_TYPE 2048",
		"PRIORITY 10 PACKET_ACTION DROP IN_PORTS Ethernet0 IP_TYPE IPV6ANY",
		"PRIORITY 10 PACKET_ACTION DROP IN_PORTS Ethernet4 ETHER_TYPE 2048",
		"PRIORITY 10 PACKET_ACTION DROP IN_PORTS Ethernet4 IP_TYPE IPV6ANY",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestMembersOfAPortChannelAreFilteredThroughIt(t *testing.T) {
	address := server(t)
	o := newOrchagent(t, address, 4096)
	config := &db{address: address, number: configDB}
	defer config.close()
	o.lag = map[string]string{"Ethernet0": "PortChannel1", "Ethernet4": "PortChannel1"}
	for port, lag := range o.lag {
		set(t, config, "HSET", "PORTCHANNEL_MEMBER|"+lag+"|"+port, "NULL", "NULL")
	}
	a := acl(t, address)
	noErr(t, a.Configure(hardzone.Default(), nil))
	noErr(t, a.Apply([]hardzone.Step{putPair(1, 2), putHost(1, "192.0.2.1", "Ethernet0", "Ethernet4"), putHost(2, "192.0.2.2", "Ethernet8"), putHost(3, "192.0.2.3", "Ethernet8")}))
	noErr(t, portErr(a.SetPorts(aclPorts)))
	bound := func() string {
		rows, err := config.hashes([]string{"ACL_TABLE|" + aclTable4})
		noErr(t, err)
		return rows["ACL_TABLE|"+aclTable4]["ports@"]
	}
	if got := bound(); got != "PortChannel1,Ethernet8" {
		t.Errorf("the table is bound to %s", got)
	}
	judged := func(a *ACL) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); o.forwards("Ethernet4", ip("192.0.2.1"), ip("192.0.2.3"), 4420); time.Sleep(3 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("what comes in at a member is not judged")
			}
		}
		for _, port := range []string{"Ethernet0", "Ethernet4"} {
			if !o.forwards(port, ip("192.0.2.1"), ip("192.0.2.2"), 4420) || o.forwards(port, ip("192.0.2.1"), ip("192.0.2.3"), 4420) || o.forwards(port, ip("192.0.2.2"), ip("192.0.2.1"), 4420) {
				t.Errorf("%s does something else than the rows say", port)
			}
		}
	}
	judged(a)
	noErr(t, a.Close())
	a = acl(t, address) // the next process finds it so
	noErr(t, a.Configure(hardzone.Default(), nil))
	noErr(t, portErr(a.SetPorts(aclPorts)))
	judged(a)

	// A third member that nobody may filter: its frames must not be dropped, and that is said.
	set(t, config, "HSET", "PORTCHANNEL_MEMBER|PortChannel1|Ethernet12", "NULL", "NULL")
	states := a.SetPorts(aclPorts)
	if states[0].Err == nil || !strings.Contains(states[0].Err.Error(), "Ethernet12") || states[0].Attach != "" || states[2].Err != nil || states[2].Attach != hardzone.AttachASIC {
		t.Errorf("%+v", states)
	}
	if got := bound(); got != "Ethernet8" {
		t.Errorf("the table is bound to %s", got)
	}
	// It is out of the PortChannel again, and another port with it: an audit follows.
	set(t, config, "DEL", "PORTCHANNEL_MEMBER|PortChannel1|Ethernet12")
	noErr(t, portErr(a.SetPorts(aclPorts)))
	set(t, config, "DEL", "PORTCHANNEL_MEMBER|PortChannel1|Ethernet4")
	if _, err := a.Audit(); err != nil {
		t.Error(err)
	}
	if got := bound(); got != "PortChannel1,Ethernet4,Ethernet8" {
		t.Errorf("after an audit the table is bound to %s", got)
	}
	noErr(t, a.Remove())
}
