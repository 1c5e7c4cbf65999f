package lldp

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/openinof/inof/fabric"
)

// MaxAgentIndex is the highest number of an address on one physical port that an
// agent gives in its Port ID.
const MaxAgentIndex = 64

// AgentPort is the Port ID of a registering agent, taken apart.
type AgentPort struct {
	Agent  string `json:"agent"`  // "snsd" or "discovery"
	IfName string `json:"ifname"` // the host's interface name, may contain underscores
	Index  int    `json:"index"`  // 1..MaxAgentIndex, numbers the addresses of the interface
}

// ParseAgentPort reads "<prefix><ifname>_<NN>" with one of the two known prefixes
// and NN in 01..64. false when the text is anything else.
func ParseAgentPort(s string) (AgentPort, bool) {
	for _, agent := range [...]string{"snsd", "discovery"} {
		rest, ok := strings.CutPrefix(s, agent+"_")
		if !ok {
			continue
		}
		cut := strings.LastIndexByte(rest, '_')
		if cut < 1 || len(rest)-cut-1 != 2 {
			return AgentPort{}, false
		}
		n, err := strconv.ParseUint(rest[cut+1:], 10, 8)
		if err != nil || n < 1 || n > MaxAgentIndex {
			return AgentPort{}, false
		}
		return AgentPort{Agent: agent, IfName: rest[:cut], Index: int(n)}, true
	}
	return AgentPort{}, false
}

// chassisText gives a chassis id in printable form.
func chassisText(id ID) string {
	switch {
	case id.Subtype == ChassisMAC && len(id.Value) == 6:
		return fabric.MAC([]byte(id.Value)).String()
	case id.Subtype == ChassisNetAddr:
		return netAddrText(id.Value)
	}
	return printable(id.Value)
}

// portText gives a port id in printable form.
func portText(id ID) string {
	switch {
	case id.Subtype == PortMAC && len(id.Value) == 6:
		return fabric.MAC([]byte(id.Value)).String()
	case id.Subtype == PortNetAddr:
		return netAddrText(id.Value)
	}
	return printable(id.Value)
}

// netAddrText reads an IANA family number and an address.
func netAddrText(v string) string {
	if a, ok := netip.AddrFromSlice([]byte(v[1:])); ok && familyOf(a) == v[0] {
		return a.String()
	}
	return printable(v)
}

// printable escapes what a terminal or a JSON reader would stumble over; trailing
// zero bytes (a C string's end) are dropped.
func printable(s string) string {
	s = strings.TrimRight(s, "\x00")
	if utf8.ValidString(s) && !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if (r == utf8.RuneError && n == 1) || unprintable(r) {
			for _, c := range []byte(s[:n]) {
				b.WriteString(`\x`)
				b.WriteByte("0123456789abcdef"[c>>4])
				b.WriteByte("0123456789abcdef"[c&15])
			}
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
