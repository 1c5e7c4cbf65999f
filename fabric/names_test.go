package fabric

import (
	"strings"
	"testing"
)

func TestNamesMatch(t *testing.T) {
	for _, c := range []struct {
		list  []string
		name  string
		match bool
	}{
		{nil, "eth0", false},
		{[]string{"eth0"}, "eth0", true},
		{[]string{"eth0"}, "eth00", false},
		{[]string{"eth*"}, "eth", true},
		{[]string{"eth*"}, "xeth0", false},
		{[]string{"Ethernet?"}, "Ethernet10", false},
		{[]string{"Ethernet[0-3]"}, "Ethernet2", true},
		{[]string{"Ethernet[0-3]", "Ethernet48"}, "Ethernet48", true},
		{[]string{"Eth*"}, "Eth1/1.100", true},
		{[]string{"Eth1/[12]"}, "Eth1/2", true},
		{[]string{`a\*`}, "a*", true},
		{[]string{`a\*`}, "ab", false},
		{[]string{"*"}, strings.Repeat("x", MaxPortName+1), false},
	} {
		n, err := ParseNames(c.list)
		if err != nil {
			t.Errorf("%q: %v", c.list, err)
		} else if got := n.Match(c.name); got != c.match {
			t.Errorf("%q matches %q: %t, want %t", c.list, c.name, got, c.match)
		}
	}
}

func TestNamesErrors(t *testing.T) {
	for _, s := range []string{"", strings.Repeat("x", MaxPortName+1), "a[", "a[b", `a\`, "x*[z-", "[]"} {
		if _, err := ParseNames([]string{"ok", s}); err == nil {
			t.Errorf("%q gave no error", s)
		} else if !strings.Contains(err.Error(), "port name 2") {
			t.Errorf("%q: error %q does not tell which entry", s, err)
		}
	}
}
