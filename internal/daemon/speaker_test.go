package daemon

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/lldp"
)

// spoken counts the LLDPDUs that a device has sent out of a port since it was last asked, and those
// of them that end what the others before them said.
func (n *node) spoken(port string) (all, shutdowns int) {
	for _, frame := range n.fake.Sent(port) {
		if frame[12] != 0x88 || frame[13] != 0xcc {
			continue
		}
		all++
		if pdu, err := lldp.Parse(frame[14:]); err == nil && pdu.TTL == 0 {
			shutdowns++
		}
	}
	return all, shutdowns
}

func (n *node) toldOfSpeakers() (texts []string) {
	for _, e := range n.d.log.Events(0).Events {
		if strings.Contains(e.Text, "LLDP daemon") {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

func TestTheDeviceFallsSilentBesideALaterLLDPDaemonAndSpeaksAgainAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		var other atomic.Bool
		n := f.add("sw", "10.0.0.1", "standalone", "eth1")
		n.halt()
		n.tune = func(e *Env) { e.OtherLLDP = other.Load }
		n.start()
		n.fake.SetCarrier("eth1", true)
		time.Sleep(time.Minute)
		if all, ends := n.spoken("eth1"); all < 3 || ends != 0 {
			t.Fatalf("alone: %d LLDPDUs, %d shutdowns", all, ends)
		}
		other.Store(true)
		time.Sleep(speakerEvery + time.Second)
		if _, ends := n.spoken("eth1"); ends != 1 {
			t.Errorf("beside another: %d shutdowns, want 1: what was said lasts for its whole TTL", ends)
		}
		time.Sleep(5 * time.Minute)
		if all, _ := n.spoken("eth1"); all != 0 {
			t.Errorf("%d LLDPDUs beside another daemon", all)
		}
		other.Store(false)
		time.Sleep(speakerEvery + time.Minute)
		if all, _ := n.spoken("eth1"); all < 3 {
			t.Errorf("%d LLDPDUs after the other daemon has gone", all)
		}
		if told := n.toldOfSpeakers(); len(told) != 2 {
			t.Errorf("told: %q", told)
		}
	})
}

func TestWhetherTheDeviceSpeaksIsNotLookedAtWhereItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("sw", "10.0.0.1", "standalone", "eth1")
		n.halt()
		n.cfg.LLDP.Transmit = "on"
		n.tune = func(e *Env) { e.OtherLLDP = func() bool { return true } }
		n.start()
		n.fake.SetCarrier("eth1", true)
		time.Sleep(time.Minute)
		if all, ends := n.spoken("eth1"); all < 3 || ends != 0 {
			t.Errorf("%d LLDPDUs, %d shutdowns", all, ends)
		}
	})
}
