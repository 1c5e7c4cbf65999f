// Package plainns sets a new network namespace to what labs and tests assume. A namespace takes
// over IPv4 settings of the machine: on a Docker host each node would forward.
package plainns

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// settings, in this order: a write to ip_forward sets others.
var settings = []struct{ file, value string }{
	{"net/ipv4/ip_forward", "0"},
	{"net/ipv4/conf/all/rp_filter", "0"},
	{"net/ipv4/conf/default/rp_filter", "0"},
	{"net/ipv4/conf/all/arp_ignore", "0"},
	{"net/ipv4/conf/default/arp_ignore", "0"},
	{"net/ipv4/conf/all/arp_filter", "0"},
	{"net/ipv4/conf/default/arp_filter", "0"},
	{"net/ipv6/conf/all/disable_ipv6", "0"},
	{"net/ipv6/conf/default/disable_ipv6", "0"},
	{"net/ipv6/conf/all/forwarding", "0"},
}

// Set writes the settings into the network namespace of the calling thread, which is new: it has
// no interface except lo. A setting that this kernel does not have is left out.
func Set() error {
	for _, s := range settings {
		path := "/proc/sys/" + s.file
		if b, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(b)) == s.value {
			continue // in a container /proc/sys may be read-only
		}
		if err := os.WriteFile(path, []byte(s.value+"\n"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("sysctl %s=%s: %w", s.file, s.value, err)
		}
	}
	return nil
}
