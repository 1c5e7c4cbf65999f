package main

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func TestADryRunSaysWhichHostsWouldBeToldWhat(t *testing.T) {
	src := apitest.Sample()
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.101")
	src.ZoneChangedValue = api.ZoneChanged{Present: []string{"192.0.2.101"}, Impact: &zone.Impact{Active: 1, Inactive: 2, Told: []zone.Told{
		{Host: a, Subject: b, State: snsd.Active}, {Host: b, Subject: a, State: snsd.Inactive, Reason: snsd.ReasonZoneChanged}}}}
	socket, _ := apitest.Serve(t, src)
	code, out, errs := call(t, strings.Fields("zone member add red 192.0.2.101 --dry-run --socket "+socket)...)
	want := `zone red: nothing has changed; there already: 192.0.2.101 (dry run: nothing was changed)
hosts would be told: 1 active, 2 inactive
HOST         SUBJECT      STATE     REASON
192.0.2.1    192.0.2.101  active    -
192.0.2.101  192.0.2.1    inactive  zone-changed
and 1 more
`
	if code != 0 || out != want {
		t.Errorf("exit code %d, %q\n%s", code, errs, out)
	}
	if got := src.Changes(); len(got) != 1 || got[0] != "add members red [192.0.2.101] as a dry run" {
		t.Errorf("asked for %q", got)
	}
}

func TestAnNQNAndItsPlaceMayBeThreeArguments(t *testing.T) {
	got := joinPlaces([]string{"192.0.2.1", "nqn.a", "at", "192.0.2.11/Ethernet4", "nqn.b at 192.0.2.12", "at"})
	want := []string{"192.0.2.1", "nqn.a at 192.0.2.11/Ethernet4", "nqn.b at 192.0.2.12", "at"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
