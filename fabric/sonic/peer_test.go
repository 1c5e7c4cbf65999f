package sonic

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux"
	"github.com/openinof/inof/internal/netnstest"
)

// These tests run beside the real orchagent, portmgrd and syncd; see netnstest.SONiC.

const peerWait = 20 * time.Second

// eventually waits for a condition.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(peerWait); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", peerWait, what)
		}
	}
}

// peer is a Source on the switch, with the kernel's ports there.
type peer struct {
	*netnstest.Switch
	*Source
	t testing.TB

	mu     sync.Mutex
	ports  map[string]fabric.Port
	events int
	health []fabric.Health
}

func newPeer(t testing.TB) *peer {
	p := &peer{Switch: netnstest.SONiC(t), t: t, ports: map[string]fabric.Port{}}
	dp, err := linux.New(linux.Config{Access: []string{"Ethernet*"}, NetNS: p.NetNS(), Carrier: fabric.CarrierNetlink})
	if err != nil {
		t.Fatal(err)
	}
	p.Source = New(dp, p.Redis(), nil)
	p.HandleEvents(func(ev fabric.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ports[ev.Port.Name] = ev.Port
		p.events++
	})
	p.HandleHealth(func(_ string, h fabric.Health) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.health = append(p.health, h)
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-p.Ready():
	case err := <-done:
		t.Fatal(err)
	}
	eventually(t, "all ports are up", func() bool { return p.port("Ethernet0").Up() && p.port("Ethernet28").Up() })
	return p
}

func (p *peer) port(name string) fabric.Port {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ports[name]
}

func (p *peer) asicAdmin(port string) string {
	return p.DB(p.t, asicDB, "hget", "ASIC_STATE:SAI_OBJECT_TYPE_PORT:"+p.DB(p.t, countersDB, "hget", "COUNTERS_PORT_NAME_MAP", port), "SAI_PORT_ATTR_ADMIN_STATE")
}

func TestAPortIsShutInTheASIC(t *testing.T) {
	p := newPeer(t)
	noErr(t, p.SetAdmin("Ethernet4", false))
	eventually(t, "the port is announced as shut", func() bool { return !p.port("Ethernet4").AdminUp })
	if got := p.asicAdmin("Ethernet4"); got != "false" {
		t.Errorf("the ASIC's port is %q", got)
	}
	// A later process, whose databases were saved and loaded in between, knows it as ours.
	if got := shutBefore(t, p); !slices.Equal(got, []string{"Ethernet4"}) {
		t.Errorf("shut by us, after a restart: %v", got)
	}
	noErr(t, p.SetAdmin("Ethernet4", true))
	eventually(t, "the port is open again", func() bool { return p.port("Ethernet4").Up() })
	if got, marks := p.asicAdmin("Ethernet4"), p.DB(t, configDB, "exists", ourPorts+"Ethernet4"); got != "true" || marks != "0" {
		t.Errorf("the ASIC's port is %q, marks %s", got, marks)
	}
	eventually(t, "nothing is in doubt", func() bool { return len(p.Doubts(time.Now().Add(time.Hour))) == 0 })
	// What the operator has shut is not ours, and what the operator opens is not any longer.
	p.DB(t, configDB, "hset", "PORT|Ethernet8", "admin_status", "down")
	eventually(t, "the operator's shut is seen", func() bool { return !p.port("Ethernet8").AdminUp })
	noErr(t, p.SetAdmin("Ethernet4", false))
	eventually(t, "the port is shut again", func() bool { return !p.port("Ethernet4").AdminUp })
	for _, port := range []string{"Ethernet4", "Ethernet8"} {
		p.DB(t, configDB, "hset", "PORT|"+port, "admin_status", "up")
	}
	eventually(t, "both are open, and no mark is left", func() bool {
		return p.port("Ethernet4").Up() && p.port("Ethernet8").Up() && p.DB(t, configDB, "exists", ourPorts+"Ethernet4") == "0"
	})
}

// shutBefore lists the ports that a later process on the same switch finds as shut by us.
func shutBefore(t testing.TB, p *peer) (list []string) {
	t.Helper()
	fake := fabric.NewFake(fabric.FakeConfig{}, fabric.Port{Name: "Ethernet0"}, fabric.Port{Name: "Ethernet4"})
	s := New(fake, p.Redis(), nil)
	s.HandleEvents(func(ev fabric.Event) {
		if ev.ShutByUs {
			list = append(list, ev.Port.Name)
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	stop()
	<-done
	return list
}

// Without orchagent a port that was shut is not announced as shut, whatever the kernel's interface
// does, and that is in doubt; a port that cannot even be asked for as well.
func TestAShutThatIsNotConfirmedIsInDoubt(t *testing.T) {
	p := newPeer(t)
	p.Stop(t, "orchagent")
	noErr(t, p.SetAdmin("Ethernet12", false))
	eventually(t, "the kernel's interface is down", func() bool { return !p.port("Ethernet12").Carrier })
	if !p.port("Ethernet12").AdminUp {
		t.Error("it is announced as shut, and the ASIC's port is open")
	}
	later := time.Now().Add(time.Minute)
	if d := p.Doubts(later); len(d) != 1 || d[0].Port != "Ethernet12" || d[0].Up || d[0].Err != nil {
		t.Errorf("%+v", d)
	}
	noErr(t, p.SetAdmin("Ethernet12", true))
	gone := New(p.Source.Dataplane, "/nowhere", nil)
	if err := gone.SetAdmin("Ethernet12", false); err == nil {
		t.Error("no error without Redis")
	}
	if d := gone.Doubts(later); len(d) != 1 || d[0].Err == nil {
		t.Errorf("%+v", d)
	}
}

func TestTheFirstThatSaysDownCounts(t *testing.T) {
	p := newPeer(t)
	p.Hosts(t, "ip", "link", "set", "h5", "down")
	defer p.Hosts(t, "ip", "link", "set", "h5", "up")
	eventually(t, "the cable is out", func() bool { return !p.port("Ethernet16").Carrier })
	if !p.port("Ethernet16").AdminUp {
		t.Error("it counts as shut")
	}
	p.Hosts(t, "ip", "link", "set", "h5", "up")
	eventually(t, "the cable is in", func() bool { return p.port("Ethernet16").Up() })
	p.In(t, "ip", "link", "set", "Ethernet16", "down")
	eventually(t, "the kernel's interface is down", func() bool { return !p.port("Ethernet16").Carrier })
	p.In(t, "ip", "link", "set", "Ethernet16", "up")
	eventually(t, "it is up again", func() bool { return p.port("Ethernet16").Up() })
}

// The watchdog's word comes within a second, and before the queue's row has it.
func TestTheWatchdogsVerdictComesByItsChannel(t *testing.T) {
	p := newPeer(t)
	queue := "COUNTERS:" + p.DB(t, countersDB, "hget", "COUNTERS_QUEUE_NAME_MAP", "Ethernet0:3")
	last := func() fabric.Health {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.health) == 0 {
			return fabric.Health{}
		}
		return p.health[len(p.health)-1]
	}
	p.DB(t, countersDB, "hset", queue, "DEBUG_STORM", "enabled")
	defer p.DB(t, countersDB, "hdel", queue, "DEBUG_STORM")
	eventually(t, "the storm is told", func() bool {
		h := last()
		return h.Valid == fabric.FieldVerdict && h.Dropping == 1<<3 && h.Guarded == 1<<3|1<<4
	})
	eventually(t, "readings have it too", func() bool {
		h, err := p.Health("Ethernet0", fabric.FieldsOfPFC)
		return err == nil && h.Has(fabric.FieldVerdict) && h.Dropping == 1<<3 && h.Deadlocked == 1<<3
	})
	p.DB(t, countersDB, "hdel", queue, "DEBUG_STORM")
	eventually(t, "its end is told", func() bool { h := last(); return h.Dropping == 0 && h.Guarded != 0 })
	// No watchdog guards this port.
	if h, err := p.Health("Ethernet20", fabric.FieldsOfPFC); err != nil || h.Valid&(fabric.FieldVerdict|fabric.FieldDeadlocks) != 0 || h.Guarded != 0 {
		t.Errorf("%+v %v", h, err)
	}
}

func TestOversizeFramesAreNoDamage(t *testing.T) {
	p := newPeer(t)
	crc := func() uint64 {
		h, err := p.Health("Ethernet8", fabric.FieldsOfCounters)
		noErr(t, err)
		return h.RxCRC
	}
	errorsSeen := func(n uint64) func() bool {
		return func() bool { c, err := p.Counters("Ethernet8"); return err == nil && c.RxErrors == n }
	}
	p.Stat(t, "port", "Ethernet8", "SAI_PORT_STAT_IF_IN_ERRORS", "0", "SAI_PORT_STAT_ETHER_RX_OVERSIZE_PKTS", "0")
	eventually(t, "no errors yet", errorsSeen(0))
	before := crc()
	p.Stat(t, "port", "Ethernet8", "SAI_PORT_STAT_IF_IN_ERRORS", "40", "SAI_PORT_STAT_ETHER_RX_OVERSIZE_PKTS", "40")
	eventually(t, "the errors are read", errorsSeen(40))
	if n := crc() - before; n != 0 {
		t.Errorf("40 frames that are too long count as %d damaged ones", n)
	}
	p.Stat(t, "port", "Ethernet8", "SAI_PORT_STAT_IF_IN_ERRORS", "45")
	eventually(t, "more errors are read", errorsSeen(45))
	if n := crc() - before; n != 5 {
		t.Errorf("5 other errors count as %d damaged frames", n)
	}
}

// What operators are shown is the ASIC's, from the first value on.
func TestCountersAreTheASICsAndNothingElse(t *testing.T) {
	p := newPeer(t)
	p.Stat(t, "port", "Ethernet24", "SAI_PORT_STAT_IF_IN_UCAST_PKTS", "123456789")
	eventually(t, "the ASIC's frames are shown", func() bool {
		c, err := p.Counters("Ethernet24")
		return err == nil && c.RxFrames >= 123456789
	})
	without := New(p.Source.Dataplane, "/nowhere", nil)
	if c, err := without.Counters("Ethernet24"); err == nil || c.RxFrames != 0 {
		t.Errorf("without Redis: %+v, %v", c, err)
	}
	if h, err := without.Health("Ethernet24", fabric.AllFields); err == nil || h.Valid != 0 {
		t.Errorf("without Redis: %+v, %v", h, err)
	}
}

func TestAProgramThatDoesNotRunIsInDoubt(t *testing.T) {
	p := newPeer(t)
	p.lookForPrograms()
	p.lookForPrograms()
	if d := p.Doubts(time.Now()); len(d) != 0 {
		t.Errorf("%+v", d)
	}
	// Another server has no orchagent, and no syncd that was ever seen.
	s := newSource(t, server(t))
	s.lookForPrograms()
	if d := s.Doubts(time.Now()); len(d) != 0 {
		t.Errorf("after one round: %+v", d)
	}
	s.lookForPrograms()
	if d := s.Doubts(time.Now()); len(d) != 1 || d[0].Program != "orchagent" {
		t.Errorf("%+v", d)
	}
}

// Counters that stand while frames are sent are not shown, and no cause is judged by them.
func TestCountersThatStandAreNotTold(t *testing.T) {
	p := newPeer(t)
	now := time.Now()
	send := func() {
		for range 3 {
			noErr(t, p.Send("Ethernet20", append([]byte{1, 0x80, 0xc2, 0, 0, 0xe, 2, 0, 0, 0, 0, 1, 0x88, 0xcc}, make([]byte, 46)...)))
		}
	}
	look := func() {
		now = now.Add(motionRound)
		p.lookForMotion([]string{"Ethernet20"}, now)
	}
	look()
	send()
	eventually(t, "the ASIC has counted what was sent", func() bool {
		look()
		p.asking.Lock()
		defer p.asking.Unlock()
		m := p.moves.ports["Ethernet20"]
		return m != nil && !m.before
	})
	p.Stop(t, "syncd")
	send()
	look()
	look()
	if h, err := p.Health("Ethernet20", fabric.FieldsOfCounters|fabric.FieldsOfPFC); err != nil || h.Valid != 0 {
		t.Errorf("counters that stand are told: %v %v", h.Valid, err)
	}
	if _, err := p.Counters("Ethernet20"); err == nil {
		t.Error("counters that stand are shown")
	}
	if h, err := p.Health("Ethernet16", fabric.FieldCounters); err != nil || h.Valid == 0 {
		t.Errorf("a port that sent nothing: %v %v", h.Valid, err)
	}
}

// What was asked for while orchagent was dead is done once it runs again.
func TestADeadOrchagentIsInDoubtUntilItRunsAgain(t *testing.T) {
	p := newPeer(t)
	dead := func() bool {
		d := p.Doubts(time.Now())
		return len(d) == 1 && d[0].Program == "orchagent"
	}
	eventually(t, "orchagent is seen", func() bool { p.asking.Lock(); defer p.asking.Unlock(); return p.missing[0].seen })
	at := time.Now()
	p.Kill(t, "orchagent")
	eventually(t, "its death is seen", dead)
	t.Logf("seen %s after it was killed", time.Since(at).Round(time.Millisecond))
	noErr(t, p.SetAdmin("Ethernet12", false))
	if !p.port("Ethernet12").AdminUp {
		t.Error("a port is announced as shut, and the ASIC's is open")
	}
	p.Restart(t)
	eventually(t, "the port is shut in the ASIC", func() bool { return p.asicAdmin("Ethernet12") == "false" && !p.port("Ethernet12").AdminUp })
	eventually(t, "nothing is in doubt", func() bool { return len(p.Doubts(time.Now().Add(time.Hour))) == 0 })
	noErr(t, p.SetAdmin("Ethernet12", true))
	eventually(t, "all ports are up again", func() bool { return p.port("Ethernet12").Up() && p.port("Ethernet0").Up() && p.port("Ethernet28").Up() })
}
