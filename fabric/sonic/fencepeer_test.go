package sonic

import (
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/internal/netnstest"
)

func openFence(t *testing.T, sw *netnstest.Switch) *Fence {
	t.Helper()
	f, err := OpenFence(sw.Redis())
	noErr(t, err)
	t.Cleanup(func() { noErr(t, f.Close()) })
	return f
}

func pairKey(port, array, host string) fence.Key {
	return fence.Key{Port: port, Array: ip(array), Host: ip(host)}
}

func asicHas(t *testing.T, sw *netnstest.Switch, r aclRule) bool {
	counter := sw.DB(t, countersDB, "hget", "ACL_COUNTER_RULE_MAP", r.table+":"+r.name())
	return counter != "" && sw.DB(t, asicDB, "exists", "ASIC_STATE:SAI_OBJECT_TYPE_ACL_COUNTER:"+counter) == "1" &&
		sw.DB(t, stateDB, "hget", "ACL_RULE_TABLE|"+r.table+"|"+r.name(), "status") == aclActive
}

func TestAPairIsBlockedInTheASICBothWays(t *testing.T) {
	sw := netnstest.SONiC(t)
	f := openFence(t, sw)
	t.Cleanup(func() { noErr(t, f.LiftAll()) })
	until := time.Now().Add(time.Hour)
	for _, key := range []fence.Key{pairKey("Ethernet0", "192.0.2.1", "192.0.2.2"), pairKey("Ethernet4", "2001:db8::1", "2001:db8::2")} {
		at := time.Now()
		b, err := f.Block(key, until)
		noErr(t, err)
		t.Logf("%s blocked in %s", fenceText(key), time.Since(at).Round(time.Millisecond))
		for _, r := range fenceRules(key) {
			if !asicHas(t, sw, r) {
				t.Errorf("%+v is not in the ASIC", r)
			}
		}
		if b.Since.Before(at) || !b.Until.Equal(until) {
			t.Errorf("%+v", b)
		}
	}
	key := pairKey("Ethernet0", "192.0.2.1", "192.0.2.2")
	rule := sw.DB(t, configDB, "hgetall", fenceRules(key)[0].key())
	if !strings.Contains(rule, "OUT_PORTS") || strings.Contains(rule, "IN_PORTS") {
		t.Errorf("towards the array: %s", rule)
	}
	counter := func() string {
		r := fenceRules(key)[0]
		return sw.DB(t, countersDB, "hget", "ACL_COUNTER_RULE_MAP", r.table+":"+r.name())
	}
	before := counter()
	// A block is prolonged, never shortened, and its rules stay the same.
	if b, err := f.Block(key, until.Add(-time.Minute)); err != nil || !b.Until.Equal(until) {
		t.Errorf("%+v %v", b, err)
	}
	if b, err := f.Block(key, until.Add(time.Minute)); err != nil || !b.Until.Equal(until.Add(time.Minute)) {
		t.Errorf("%+v %v", b, err)
	}
	if got := sw.DB(t, configDB, "hget", fenceKey(key).row(), "until"); got != until.Add(time.Minute).UTC().Format(time.RFC3339Nano) {
		t.Errorf("until %s", got)
	}
	if now := counter(); now != before {
		t.Errorf("prolonging it has replaced its rule: %s, now %s", before, now)
	}
	c, err := f.Counts()
	if err != nil || len(c) != 2 {
		t.Errorf("%v %v", c, err)
	}
	for range 5 { // a table that goes and comes takes its rules along
		noErr(t, f.LiftAll())
		_, err = f.Block(key, until)
		noErr(t, err)
	}
	noErr(t, f.Lift(key))
	eventually(t, "the ASIC has no rule of it", func() bool { return !asicHas(t, sw, fenceRules(key)[0]) && !asicHas(t, sw, fenceRules(key)[1]) })
	noErr(t, f.LiftAll())
	eventually(t, "nothing of ours is left", func() bool {
		return sw.DB(t, configDB, "keys", "*INOF_FENCE*") == "" && sw.DB(t, stateDB, "keys", "ACL_TABLE_TABLE|INOF_FENCE*") == ""
	})
}

// A block outlives the process, and one that has ended meanwhile is lifted by the next.
func TestBlocksOutliveTheProcessAndEnd(t *testing.T) {
	sw := netnstest.SONiC(t)
	f := openFence(t, sw)
	long, short, port := pairKey("Ethernet0", "192.0.2.1", "192.0.2.2"), pairKey("Ethernet0", "192.0.2.1", "192.0.2.3"), fence.Key{Port: "Ethernet4"}
	until, soonest := time.Now().Add(time.Hour), time.Now().Add(2*time.Second)
	for key, end := range map[fence.Key]time.Time{long: until, short: soonest, port: until} {
		_, err := f.Block(key, end)
		noErr(t, err)
	}
	sw.DB(t, configDB, "hset", "ACL_RULE|"+fenceOut+"4|D_STRAY", "PRIORITY", "1", "PACKET_ACTION", "DROP", "SRC_IP", "192.0.2.9/32")
	noErr(t, f.Close())
	time.Sleep(time.Until(soonest))
	g := openFence(t, sw)
	t.Cleanup(func() { noErr(t, g.LiftAll()) })
	list, err := g.Adopted()
	noErr(t, err)
	got := map[fence.Key]bool{}
	for _, b := range list {
		if got[b.Key] = true; b.Since.IsZero() || !b.Until.Equal(until) {
			t.Errorf("%+v", b)
		}
	}
	if len(got) != 2 || !got[long] || !got[port] {
		t.Errorf("adopted: %+v", list)
	}
	eventually(t, "what has ended is out of the ASIC", func() bool {
		return !asicHas(t, sw, fenceRules(short)[0]) && sw.DB(t, configDB, "exists", "ACL_RULE|"+fenceOut+"4|D_STRAY") == "0"
	})
	if !asicHas(t, sw, fenceRules(long)[0]) || sw.DB(t, configDB, "hget", "PORT|Ethernet4", "admin_status") != "down" {
		t.Error("what goes on is not in force")
	}
	// A block ends by itself while a process runs.
	soon := pairKey("Ethernet8", "192.0.2.1", "192.0.2.4")
	_, err = g.Block(soon, time.Now().Add(time.Second))
	noErr(t, err)
	eventually(t, "the block ends", func() bool {
		return !asicHas(t, sw, fenceRules(soon)[0]) && sw.DB(t, configDB, "exists", fenceKey(soon).row()) == "0"
	})
}

func TestAWholePortIsBlockedByShuttingIt(t *testing.T) {
	p := newPeer(t)
	f := openFence(t, p.Switch)
	key := fence.Key{Port: "Ethernet4"}
	b, err := f.Block(key, time.Now().Add(time.Hour))
	noErr(t, err)
	if p.asicAdmin("Ethernet4") != "false" {
		t.Error("the ASIC's port is open")
	}
	if done, err := f.Drained(b); err != nil || !done {
		t.Errorf("a port that is shut holds something: %v", err)
	}
	// What error-down holds is not opened by the end of a block, nor the other way round.
	noErr(t, p.SetAdmin("Ethernet4", false))
	noErr(t, f.Lift(key))
	time.Sleep(2 * time.Second)
	if got := p.asicAdmin("Ethernet4"); got != "false" {
		t.Errorf("lifting a block has opened a port that error-down has shut: %s", got)
	}
	_, err = f.Block(key, time.Now().Add(time.Hour))
	noErr(t, err)
	noErr(t, p.SetAdmin("Ethernet4", true))
	time.Sleep(2 * time.Second)
	if got := p.asicAdmin("Ethernet4"); got != "false" {
		t.Errorf("a recovery has opened a port that is blocked: %s", got)
	}
	noErr(t, f.LiftAll())
	eventually(t, "the port is open", func() bool { return p.port("Ethernet4").Up() })
	// What the operator has shut stays shut.
	p.DB(t, configDB, "hset", "PORT|Ethernet4", "admin_status", "down")
	eventually(t, "the operator's shut is seen", func() bool { return !p.port("Ethernet4").AdminUp })
	_, err = f.Block(key, time.Now().Add(time.Hour))
	noErr(t, err)
	noErr(t, f.Lift(key))
	if got := p.DB(t, configDB, "hget", "PORT|Ethernet4", "admin_status"); got != "down" {
		t.Errorf("a block has opened a port of the operator: %s", got)
	}
	p.DB(t, configDB, "hset", "PORT|Ethernet4", "admin_status", "up")
	eventually(t, "the port is open again", func() bool { return p.port("Ethernet4").Up() })
	if _, err := f.Block(fence.Key{Port: "Ethernet99"}, time.Now().Add(time.Hour)); err == nil {
		t.Error("a port that there is not is blocked")
	}
}

// Without orchagent nothing is confirmed; later it is.
func TestABlockThatOrchagentHasNotTakenIsNoBlock(t *testing.T) {
	sw := netnstest.SONiC(t)
	f := openFence(t, sw)
	t.Cleanup(func() { noErr(t, f.LiftAll()) })
	pair, port := pairKey("Ethernet12", "192.0.2.1", "192.0.2.2"), fence.Key{Port: "Ethernet16"}
	t.Run("while it hangs", func(t *testing.T) {
		sw.Stop(t, "orchagent")
		for _, key := range []fence.Key{pair, port} {
			if b, err := f.Block(key, time.Now().Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "orchagent") {
				t.Errorf("%+v %v", b, err)
			}
			if done, err := f.Drained(fence.Block{Key: key}); err == nil || done {
				t.Errorf("drained: %t %v", done, err)
			}
		}
	})
	for _, key := range []fence.Key{pair, port} {
		eventually(t, fenceText(key)+" is blocked", func() bool { _, err := f.Block(key, time.Now().Add(time.Hour)); return err == nil })
	}
}

// A queue that a host pauses, and of which nothing else is known, is not drained; one that was
// seen empty, or that nobody pauses, is.
func TestAPausedQueueIsNotDrained(t *testing.T) {
	sw := netnstest.SONiC(t)
	f := openFence(t, sw)
	t.Cleanup(func() { noErr(t, f.LiftAll()) })
	b, err := f.Block(pairKey("Ethernet0", "192.0.2.1", "192.0.2.2"), time.Now().Add(time.Hour))
	noErr(t, err)
	sw.Stat(t, "queue", "Ethernet0:3", queueHolds, "5000")
	queue := "COUNTERS:" + sw.DB(t, countersDB, "hget", "COUNTERS_QUEUE_NAME_MAP", "Ethernet0:3")
	eventually(t, "the queue's occupancy is read", func() bool { return sw.DB(t, countersDB, "hget", queue, queueHolds) == "5000" })
	port := "COUNTERS:" + sw.DB(t, countersDB, "hget", "COUNTERS_PORT_NAME_MAP", "Ethernet0")
	n := 0
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		n++ // the host goes on to send PFC frames
		sw.Stat(t, "port", "Ethernet0", "SAI_PORT_STAT_PFC_3_RX_PKTS", "1"+strings.Repeat("0", n%15+1))
		_ = sw.DB(t, countersDB, "hget", port, "SAI_PORT_STAT_PFC_3_RX_PKTS")
		if done, err := f.Drained(b); err != nil || done {
			t.Fatalf("a paused queue is drained: %t %v", done, err)
		}
	}
	eventually(t, "it is drained once no PFC frames come", func() bool { done, err := f.Drained(b); return err == nil && done })
	// Seen empty: paused or not.
	sw.Stat(t, "queue", "Ethernet4:3", queueHolds, "0")
	b, err = f.Block(pairKey("Ethernet4", "192.0.2.1", "192.0.2.2"), time.Now().Add(time.Hour))
	noErr(t, err)
	eventually(t, "an empty queue is drained", func() bool { done, err := f.Drained(b); return err == nil && done })
}

// What another program deletes is put back.
func TestABlockThatOthersDeleteComesBack(t *testing.T) {
	sw := netnstest.SONiC(t)
	f := openFence(t, sw)
	t.Cleanup(func() { noErr(t, f.LiftAll()) })
	eventually(t, "events are heard", func() bool { return sw.DB(t, configDB, "pubsub", "numpat") != "0" })
	key := pairKey("Ethernet0", "192.0.2.1", "192.0.2.2")
	rules := fenceRules(key)
	_, err := f.Block(key, time.Now().Add(time.Hour))
	noErr(t, err)
	other := fenceRules(pairKey("Ethernet4", "192.0.2.5", "192.0.2.6"))
	_, err = f.Block(pairKey("Ethernet4", "192.0.2.5", "192.0.2.6"), time.Now().Add(time.Hour))
	noErr(t, err)
	for _, keys := range [][]string{{rules[0].key(), rules[1].key()}, {"ACL_TABLE|" + rules[0].table, "ACL_TABLE|" + rules[1].table},
		{fenceKey(key).row(), rules[0].key(), rules[1].key(), "ACL_TABLE|" + rules[0].table, "ACL_TABLE|" + rules[1].table}} {
		before := sw.DB(t, countersDB, "hget", "ACL_COUNTER_RULE_MAP", rules[0].table+":"+rules[0].name())
		sw.DB(t, configDB, append([]string{"del"}, keys...)...)
		eventually(t, "the rules are back in the ASIC", func() bool {
			now := sw.DB(t, countersDB, "hget", "ACL_COUNTER_RULE_MAP", rules[0].table+":"+rules[0].name())
			return now != before && asicHas(t, sw, rules[0]) && asicHas(t, sw, rules[1]) && asicHas(t, sw, other[0]) && asicHas(t, sw, other[1])
		})
		if sw.DB(t, configDB, "exists", fenceKey(key).row()) != "1" {
			t.Error("its row is not back")
		}
	}
}
