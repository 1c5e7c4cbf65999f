package sonic

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/netnstest"
)

// zoned has hard zoning in the ASIC of a real switch, and says what another program changes there.
func zoned(t *testing.T) (*netnstest.Switch, *ACL, chan struct{}) {
	sw := netnstest.SONiC(t)
	a := acl(t, sw.Redis())
	t.Cleanup(func() { noErr(t, a.Remove()) })
	noErr(t, a.Configure(hardzone.Default(), nil))
	noErr(t, a.Apply(aclWorld))
	noErr(t, portErr(a.SetPorts(aclPorts)))
	changed := make(chan struct{}, 1000)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go func() { _ = a.Watch(ctx, func() { changed <- struct{}{} }) }()
	eventually(t, "all rules are active", func() bool {
		st, err := a.taken(keysOf(a.there))
		return err == nil && len(st.unseen)+len(st.refused) == 0
	})
	eventually(t, "events are heard", func() bool { return sw.DB(t, configDB, "pubsub", "numpat") != "0" })
	return sw, a, changed
}

func keysOf(m map[aclRule]bool) (list []aclRule) {
	for r := range m {
		list = append(list, r)
	}
	return list
}

// entries counts the rules that the ASIC has.
func entries(t *testing.T, sw *netnstest.Switch) int {
	return strings.Count(sw.DB(t, asicDB, "keys", "ASIC_STATE:SAI_OBJECT_TYPE_ACL_ENTRY:*"), "oid")
}

func TestWhatOthersDeleteIsSeenAndPutBack(t *testing.T) {
	sw, a, changed := zoned(t)
	want := entries(t, sw)
	for _, what := range []string{"rules", "tables", "everything"} {
		for len(changed) > 0 {
			<-changed
		}
		var keys []string
		if what != "rules" {
			keys = append(keys, "ACL_TABLE|"+aclTable4, "ACL_TABLE|"+aclTable6)
		}
		if what != "tables" {
			for r := range a.there {
				keys = append(keys, r.key())
			}
		}
		at := time.Now()
		sw.DB(t, configDB, append([]string{"del"}, keys...)...)
		select {
		case <-changed:
			t.Logf("%s: seen after at most %s", what, time.Since(at).Round(time.Millisecond))
		case <-time.After(peerWait):
			t.Fatalf("that %s were deleted is not seen", what)
		}
		eventually(t, "the ASIC has lost them", func() bool { return entries(t, sw) < want })
		at = time.Now()
		audit, err := a.Audit()
		noErr(t, err)
		t.Logf("%s: put back in %s", what, time.Since(at).Round(time.Millisecond))
		if audit.Repaired() == 0 {
			t.Errorf("%s: nothing was repaired", what)
		}
		if n := entries(t, sw); n != want {
			t.Errorf("%s: the ASIC has %d of %d rules again", what, n, want)
		}
		if got := sw.DB(t, configDB, "hget", "ACL_TABLE|"+aclTable4, "ports@"); got != "Ethernet0,Ethernet4,Ethernet8" {
			t.Errorf("%s: bound to %q", what, got)
		}
	}
	for len(changed) > 0 {
		<-changed
	}
	if audit, err := a.Audit(); err != nil || audit.Repaired() != 0 {
		t.Errorf("%+v %v", audit, err)
	}
	noErr(t, a.Apply([]hardzone.Step{putPair(2, 3)}))
	noErr(t, a.Apply([]hardzone.Step{deletePair(2, 3)}))
	select {
	case <-changed:
		t.Error("what we change ourselves counts as changed by others")
	case <-time.After(300 * time.Millisecond):
	}
}

// As long as orchagent has not taken the new rule the old one stays, and is not deleted by another
// look; then it goes.
func TestARuleStaysUntilTheASICHasTheOneThatReplacesIt(t *testing.T) {
	sw, a, _ := zoned(t)
	old := pairRules(ip("192.0.2.1"), []string{"Ethernet0"}, []netip.Addr{ip("192.0.2.2")})[0]
	there := func() bool { return sw.DB(t, configDB, "exists", old.key()) == "1" }
	if !there() {
		t.Fatal("no rule to begin with")
	}
	t.Run("while orchagent hangs", func(t *testing.T) {
		sw.Stop(t, "orchagent")
		// 192.0.2.2 and .3 are one prefix: its rule replaces that of .2.
		if err := a.Apply([]hardzone.Step{putPair(1, 3)}); err == nil || !there() {
			t.Errorf("%v; the old rule is there: %t", err, there())
		}
		if _, err := a.Audit(); err == nil || !there() {
			t.Errorf("after an audit: %v; the old rule is there: %t", err, there())
		}
	})
	eventually(t, "the old rule is gone", func() bool { _, err := a.Audit(); return err == nil && !there() })
}
