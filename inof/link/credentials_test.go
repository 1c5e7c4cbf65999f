package link

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

func TestParseAllowList(t *testing.T) {
	good := strings.Repeat("ab", 32)
	for _, tt := range []struct {
		entry string
		ok    bool
	}{{good, true}, {strings.ToUpper(good), true}, {"192.0.2.1", true}, {"2001:db8::1", true}, {strings.Repeat("ab:", 31) + "ab", true},
		{"", false}, {good[2:], false}, {good + "00", false}, {"device-1", false}} {
		if _, err := ParseAllowList([]string{tt.entry}); (err == nil) != tt.ok {
			t.Errorf("%q: %v", tt.entry, err)
		}
	}
	if l, err := ParseAllowList([]string{"::ffff:192.0.2.1"}); err != nil || !l.devices[netip.MustParseAddr("192.0.2.1")] {
		t.Errorf("a device in the form of IPv6: %v, %v", l.devices, err)
	}
	if s := fmt.Sprintf("%v %+v", &Credentials{}, &Credentials{}); s != "TLS credentials TLS credentials" {
		t.Errorf("printed as %s", s)
	}
	if err := (Auth{Mode: wire.AuthTLS}).Validate(); err == nil {
		t.Error("mode tls without credentials is taken")
	}
	if _, err := NewSession(SessionConfig{Self: inoftest.DevID(0), Auth: tlsAuth(&Credentials{}).a}, inoftest.T0); err == nil {
		t.Error("mode tls without TLS is taken")
	}
}
