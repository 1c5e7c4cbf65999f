package sonic

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/openinof/inof/hardzone"
)

// Tables and their types in CONFIG_DB: one for each kind of address, because many ASICs cannot
// match both in one.
const (
	aclTable4 = "INOF_ZONES4"
	aclTable6 = "INOF_ZONES6"
)

// aclMatches are the matches of the two types of tables (SONiC's ACL_TABLE_TYPE).
var aclMatches = map[string]string{
	aclTable4: "IN_PORTS,SRC_IP,DST_IP,ETHER_TYPE,IP_PROTOCOL,L4_SRC_PORT,L4_DST_PORT,L4_DST_PORT_RANGE",
	aclTable6: "IN_PORTS,SRC_IPV6,DST_IPV6,IP_TYPE,NEXT_HEADER,L4_SRC_PORT,L4_DST_PORT,L4_DST_PORT_RANGE,ICMPV6_TYPE",
}

// Priorities of rules: a larger one is asked first. SONiC's own loader uses up to 9999.
const (
	aclPair   = 9000
	aclBound  = 8000
	aclPermit = 7000
	aclRest   = 10
)

// aclRule is a row of ACL_RULE. Its name follows from what it says: orchagent replaces a rule
// that is changed by removing it first, so none ever is; another one takes its place.
type aclRule struct {
	table    string
	priority int
	drop     bool
	ports    string       // IN_PORTS, or OUT_PORTS in a table of the egress; empty: all that the table is bound to
	src, dst netip.Prefix // not valid: any
	protocol uint8        // 0: any
	sport    uint16       // 0: any
	dport    uint16
	high     bool  // dport is 32768..65535
	icmp     uint8 // type of ICMPv6
	etype    uint16
}

// name is that of the rule in its table.
func (r aclRule) name() string {
	sum := sha256.Sum256(fmt.Append(nil, r.fields()))
	kind := "P"
	switch {
	case r.priority == aclBound:
		kind = "B"
	case r.priority == aclPermit:
		kind = "A"
	case r.drop:
		kind = "D"
	}
	return kind + "_" + base32.StdEncoding.EncodeToString(sum[:10])
}

func (r aclRule) key() string { return "ACL_RULE|" + r.table + "|" + r.name() }

// fields are those of the row, with their values.
func (r aclRule) fields() (list []string) {
	add := func(field, value string) { list = append(list, field, value) }
	six := strings.HasSuffix(r.table, "6")
	add("PRIORITY", strconv.Itoa(r.priority))
	if r.drop {
		add("PACKET_ACTION", "DROP")
	} else {
		add("PACKET_ACTION", "FORWARD")
	}
	suffix, protocol := "", "IP_PROTOCOL"
	if six {
		suffix, protocol = "V6", "NEXT_HEADER"
	}
	if r.ports != "" && strings.HasPrefix(r.table, fenceOut) {
		add("OUT_PORTS", r.ports)
	} else if r.ports != "" {
		add("IN_PORTS", r.ports)
	}
	if r.etype != 0 {
		add("ETHER_TYPE", strconv.Itoa(int(r.etype)))
	}
	if r.src.IsValid() {
		add("SRC_IP"+suffix, r.src.String())
	}
	if r.dst.IsValid() {
		add("DST_IP"+suffix, r.dst.String())
	}
	switch { // what a table of this kind of address would not see by itself
	case r.priority != aclRest:
	case six:
		add("IP_TYPE", "IPV6ANY")
	default:
		add("ETHER_TYPE", "2048")
	}
	if r.protocol != 0 {
		add(protocol, strconv.Itoa(int(r.protocol)))
	}
	if r.sport != 0 {
		add("L4_SRC_PORT", strconv.Itoa(int(r.sport)))
	}
	if r.dport != 0 {
		add("L4_DST_PORT", strconv.Itoa(int(r.dport)))
	}
	if r.high {
		add("L4_DST_PORT_RANGE", "32768-65535")
	}
	if r.icmp != 0 {
		add("ICMPV6_TYPE", strconv.Itoa(int(r.icmp)))
	}
	return list
}

// overlaps reports whether two rules are of one kind and a frame may match both.
func (r aclRule) overlaps(o aclRule) bool {
	within := func(a, b netip.Prefix) bool { return !a.IsValid() || !b.IsValid() || a.Overlaps(b) }
	share := r.ports == "" || o.ports == ""
	for p := range strings.SplitSeq(r.ports, ",") {
		share = share || slices.Contains(strings.Split(o.ports, ","), p)
	}
	return r.table == o.table && r.priority == o.priority && share && within(r.src, o.src) && within(r.dst, o.dst)
}

func tableOf(a netip.Addr) string {
	if a.Is4() {
		return aclTable4
	}
	return aclTable6
}

// pairRules are those by which a host here reaches its partners: a rule for each prefix that
// has partners only, however many they are.
func pairRules(src netip.Addr, ports []string, partners []netip.Addr) (list []aclRule) {
	r := aclRule{table: tableOf(src), priority: aclPair, ports: strings.Join(ports, ","), src: netip.PrefixFrom(src, src.BitLen())}
	for _, p := range cover(partners) {
		if p.Addr().Is4() == src.Is4() {
			r.dst = p
			list = append(list, r)
		}
	}
	return list
}

// cover gives the fewest prefixes that have these addresses and no others.
func cover(addrs []netip.Addr) (list []netip.Prefix) {
	slices.SortFunc(addrs, netip.Addr.Compare)
	for _, a := range slices.Compact(addrs) {
		list = append(list, netip.PrefixFrom(a, a.BitLen()))
		for len(list) > 1 {
			x, y := list[len(list)-2], list[len(list)-1]
			if x.Bits() != y.Bits() || x.Bits() == 0 || x.Addr().Is4() != y.Addr().Is4() {
				break
			}
			whole := netip.PrefixFrom(x.Addr(), x.Bits()-1).Masked()
			if whole.Addr() != x.Addr() || !whole.Contains(y.Addr()) {
				break
			}
			list = append(list[:len(list)-2], whole)
		}
	}
	return list
}

// baseRules are those that do not depend on hosts: exceptions, the access whitelist, and that
// the rest is dropped, for each port by itself so that it is counted there.
func baseRules(cfg hardzone.Config, bounds []hardzone.Bound, ports []string) (list []aclRule) {
	add := func(r aclRule) { list = append(list, r) }
	for _, group := range []string{"224.0.0.0/4", "255.255.255.255/32", "ff00::/8"} {
		p := netip.MustParsePrefix(group)
		add(aclRule{table: tableOf(p.Addr()), priority: aclPermit, dst: p})
	}
	for icmp := uint8(133); icmp <= 137; icmp++ { // Neighbor Discovery, RFC 4861
		add(aclRule{table: aclTable6, priority: aclPermit, protocol: 58, icmp: icmp})
	}
	for _, p := range cfg.Permit {
		switch {
		case p.Prefix.IsValid():
			add(aclRule{table: tableOf(p.Prefix.Addr()), priority: aclPermit, src: p.Prefix})
			add(aclRule{table: tableOf(p.Prefix.Addr()), priority: aclPermit, dst: p.Prefix})
			continue
		}
		for _, t := range []string{aclTable4, aclTable6} {
			add(aclRule{table: t, priority: aclPermit, protocol: p.Protocol, dport: p.Port})
			if p.Port != 0 { // the way back, to a port that a client takes
				add(aclRule{table: t, priority: aclPermit, protocol: p.Protocol, sport: p.Port, high: true})
			}
		}
	}
	for _, b := range bounds {
		others := slices.DeleteFunc(slices.Clone(ports), func(p string) bool { return slices.Contains(b.Ports, p) })
		if len(others) > 0 {
			add(aclRule{table: tableOf(b.Prefix.Addr()), priority: aclBound, drop: true, ports: strings.Join(others, ","), src: b.Prefix})
		}
	}
	for _, p := range ports {
		for _, t := range []string{aclTable4, aclTable6} {
			add(aclRule{table: t, priority: aclRest, drop: true, ports: p})
		}
	}
	return list
}

// parsePair is the inverse of pairRules for one row; ok: it is one of those.
func parsePair(table string, fields map[string]string) (r aclRule, ok bool) {
	suffix := ""
	if table == aclTable6 {
		suffix = "V6"
	}
	src, err := netip.ParsePrefix(fields["SRC_IP"+suffix])
	dst, err1 := netip.ParsePrefix(fields["DST_IP"+suffix])
	if err != nil || err1 != nil || !src.IsSingleIP() || fields["PRIORITY"] != strconv.Itoa(aclPair) || fields["IN_PORTS"] == "" {
		return r, false
	}
	return aclRule{table: table, priority: aclPair, ports: fields["IN_PORTS"], src: src, dst: dst}, dst.Bits() >= dst.Addr().BitLen()-maxExpand
}

// maxExpand bounds what one adopted rule is taken for: 2 to this power hosts.
const maxExpand = 12

// addrsOf are all addresses of a prefix.
func addrsOf(p netip.Prefix) (list []netip.Addr) {
	for a := p.Addr(); a.IsValid() && p.Contains(a); a = a.Next() {
		list = append(list, a)
	}
	return list
}
