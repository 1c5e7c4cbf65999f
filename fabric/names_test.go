package fabric

import (
	"slices"
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
		{[]string{"Ethernet*", "!Ethernet48"}, "Ethernet48", false},
		{[]string{"!Ethernet48", "Ethernet*"}, "Ethernet48", false}, // the order does not matter
		{[]string{"Ethernet48", "!Ethernet*"}, "Ethernet48", false},
		{[]string{"Ethernet*", "!Ethernet48"}, "Ethernet480", true},
		{[]string{"!Ethernet48"}, "Ethernet0", false}, // takes nothing in
		{[]string{"Ethernet0-12"}, "Ethernet0", true},
		{[]string{"Ethernet0-12"}, "Ethernet12", true},
		{[]string{"Ethernet0-12"}, "Ethernet13", false},
		{[]string{"Ethernet0-12"}, "Ethernet012", false},
		{[]string{"Ethernet0-12"}, "Ethernet", false},
		{[]string{"Ethernet0-12"}, "Ethernet+5", false},
		{[]string{"Ethernet0-12"}, "Ethernet5.100", false},
		{[]string{"Ethernet0-124", "!Ethernet112-124"}, "Ethernet112", false},
		{[]string{"Ethernet0-124", "!Ethernet112-124"}, "Ethernet108", true},
		{[]string{"Eth1/1-8"}, "Eth1/8", true},
		{[]string{"to-7"}, "to-7", true}, // a name
		{[]string{"p4-1"}, "p4-1", true}, // no range: it would be empty
		{[]string{"p1-4"}, "p1-4", true}, // a range that is a port's name too
		{[]string{"p1-4"}, "p3", true},
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

func TestNamesSayWhichEntriesMatchNoPort(t *testing.T) {
	n, err := ParseNames([]string{"Ethrnet*", "Ethernet0-12"})
	if err != nil {
		t.Fatal(err)
	}
	if got := n.Idle([]string{"Ethernet0", "Ethernet4", "lo"}); !slices.Equal(got, []string{"Ethrnet*"}) {
		t.Errorf("idle entries %q", got)
	}
	if n, err = ParseNames([]string{"Ethernet*", "!Ethernet4", "!Ethernet48"}); err != nil {
		t.Fatal(err)
	}
	if got := n.Idle([]string{"Ethernet0", "Ethernet4"}); !slices.Equal(got, []string{"!Ethernet48"}) {
		t.Errorf("idle entries %q", got)
	}
}
