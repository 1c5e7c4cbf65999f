package sonic

import (
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
)

// A port that an operator opens before its shut was seen to be confirmed is not in doubt for ever,
// and is not marked as ours any longer.
func TestAShutThatAnOperatorUndoesAtOnceIsForgotten(t *testing.T) {
	s := newSource(t, server(t))
	s.HandleEvents(func(fabric.Event) {})
	s.kernelEvent(fabric.Event{Kind: fabric.PortAdded, Port: fabric.Port{Name: "Ethernet0", AdminUp: true, Carrier: true}})
	const port, mark = "PORT|Ethernet0", ourPorts + "Ethernet0"
	set(t, &s.config, "HSET", port, "admin_status", "up", "lanes", "1")
	noErr(t, s.readPorts([]string{"Ethernet0"}))
	noErr(t, s.SetAdmin("Ethernet0", false))
	s.settleAsked() // by what was read before
	noErr(t, s.readPorts([]string{"Ethernet0"}))
	s.settleAsked()
	later := time.Now().Add(time.Minute)
	if d := s.Doubts(later); len(d) != 1 {
		t.Errorf("shut, and not confirmed: %+v", d)
	}
	set(t, &s.config, "HSET", port, "admin_status", "up")
	noErr(t, s.readPorts([]string{"Ethernet0"}))
	s.settleAsked()
	s.settleAsked()
	if d := s.Doubts(later); len(d) != 0 {
		t.Errorf("opened by an operator: %+v", d)
	}
	if out, err := s.config.do([]string{"EXISTS", mark}); err != nil || out[0][0].text != "0" {
		t.Errorf("the mark is still there: %v, %v", out, err)
	}
}
