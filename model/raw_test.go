package model

import (
	"testing"
)

// taker keeps what control planes get, and carrier changes.
type taker struct {
	got     []string
	ports   []PortID
	at      []Time
	carrier []bool
}

func (*taker) FlowDone(*Sim, FlowID) {}
func (*taker) Timer(*Sim, uint64)    {}
func (h *taker) Control(s *Sim, p PortID, b []byte) {
	h.got, h.ports, h.at = append(h.got, string(b[14:])), append(h.ports, p), append(h.at, s.Now())
}
func (h *taker) Carrier(_ *Sim, _ PortID, up bool) { h.carrier = append(h.carrier, up) }

// line is three switches in a row, a host at both ends.
func line(t *testing.T, mmu func() SwitchProfile) (*Sim, *taker, []NodeID, []LinkID) {
	t.Helper()
	net := &Network{}
	var nodes []NodeID
	for _, name := range []string{"s0", "s1", "s2"} {
		p := mmu()
		nodes = append(nodes, net.AddSwitch(name, p))
	}
	nodes = append(nodes, net.AddHost("h0", ReferenceNIC(nil)), net.AddHost("h1", ReferenceNIC(nil)))
	var links []LinkID
	for _, e := range [][2]int{{0, 1}, {1, 2}, {3, 0}, {4, 2}} {
		id, err := net.Connect(nodes[e[0]], nodes[e[1]], LinkSpec{Rate: 10 * Gbps, Delay: Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, id)
	}
	s, err := net.Build(Options{Seed: 3, Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	h := &taker{}
	s.SetHandler(h)
	return s, h, nodes, links
}

func reference() SwitchProfile { return ReferenceSwitch(1<<20, nil) }

func frameOf(text string) []byte { return append(make([]byte, 14), text...) }

func runTo(t *testing.T, s *Sim, at Time) {
	t.Helper()
	if err := s.Run(at); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckConservation(); err != nil {
		t.Fatal(err)
	}
}

// A control frame takes its serialisation and the wire, and waits while its own class
// is paused and no other.
func TestControlFramesWaitInTheirClass(t *testing.T) {
	s, h, nodes, _ := line(t, reference)
	p := s.PortOf(nodes[0], 1) // towards h0
	send := func(q int, text string) {
		if err := s.SendControl(p, q, frameOf(text)); err != nil {
			t.Fatal(err)
		}
	}
	s.Storm(0, 1<<7, 10*Microsecond, 100*Microsecond) // h0 pauses class 7
	runTo(t, s, 5*Microsecond)
	send(7, "paused")
	send(3, "not paused")
	runTo(t, s, 90*Microsecond)
	if len(h.got) != 1 || h.got[0] != "not paused" || h.at[0] != 5*Microsecond+Microsecond+64*800 {
		t.Fatalf("%q at %v", h.got, h.at)
	}
	runTo(t, s, 200*Microsecond)
	if len(h.got) != 2 || h.at[1] < 100*Microsecond || h.at[1] > 103*Microsecond {
		t.Errorf("%q at %v", h.got, h.at)
	}
	if s.PortNode(h.ports[0]) != nodes[3] || s.ControlInFlight() != 0 {
		t.Errorf("arrived at %v, %d in flight", h.ports, s.ControlInFlight())
	}
}

// Routed frames pass switches, are lost where the path is black, dead or gone, and
// everything is accounted in both buffer models.
func TestRoutedControlFrames(t *testing.T) {
	cells := func() SwitchProfile {
		p := SwitchProfile{Name: "cells", Buffer: 1 << 20, MMU: MMUCells}
		return p
	}
	for name, mmu := range map[string]func() SwitchProfile{"reference": reference, "cells": cells} {
		t.Run(name, func(t *testing.T) {
			s, h, n, links := line(t, mmu)
			if err := s.SendRouted(n[0], n[2], 48<<2, 1, frameOf("x")); err == nil {
				t.Error("sent between switches without addresses")
			}
			if err := s.AddressSwitches(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.AddFlow(FlowSpec{Src: 0, Dst: 1, Bytes: Forever, TOS: 24 << 2}); err != nil {
				t.Fatal(err)
			}
			send := func(text string) {
				if err := s.SendRouted(n[0], n[2], 48<<2, 1, frameOf(text)); err != nil {
					t.Fatal(err)
				}
				runTo(t, s, s.Now()+50*Microsecond)
			}
			for range 50 {
				send("there")
			}
			if len(h.got) != 50 || s.PortNode(h.ports[0]) != n[2] {
				t.Fatalf("%d arrived", len(h.got))
			}
			s.SetMute(links[1], true, false)
			send("into the dark")
			s.SetMute(links[1], false, false)
			s.SetLink(links[1], false)
			send("onto no carrier")
			s.Reroute()
			send("nowhere")
			s.SetLink(links[1], true)
			s.Reroute()
			send("there again")
			s.KillSwitch(n[1])
			send("through the dead")
			if len(h.got) != 51 || h.got[50] != "there again" {
				t.Errorf("%d arrived, last %q", len(h.got), h.got[len(h.got)-1])
			}
			d := s.Totals().Dropped
			if d["black-path"] == 0 || d["no-carrier"] == 0 || d["no-route"] == 0 || s.ControlInFlight() != 0 {
				t.Errorf("dropped %v, %d in flight", d, s.ControlInFlight())
			}
			if len(h.carrier) != 2+2+4 { // a cut, its mending, and two links of the dead switch
				t.Errorf("%d changes of carrier were told", len(h.carrier))
			}
			for _, bad := range []error{s.SendControl(0, 8, frameOf("x")), s.SendControl(0, 1, nil), s.SendRouted(n[0], n[0], 0, 0, frameOf("x")), s.SendRouted(n[3], n[0], 0, 0, frameOf("x"))} {
				if bad == nil {
					t.Error("a frame that cannot be was sent")
				}
			}
		})
	}
}

// What a control plane may have waiting is bounded.
func TestControlQueueIsBounded(t *testing.T) {
	s, _, n, _ := line(t, reference)
	for range 1000 {
		if err := s.SendControl(s.PortOf(n[0], 0), 7, make([]byte, 9000)); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Totals().Dropped["tail-drop"]; got < 800 || s.QueueBytes(s.PortOf(n[0], 0), 7) > rawLimit {
		t.Errorf("%d dropped, %d bytes wait", got, s.QueueBytes(s.PortOf(n[0], 0), 7))
	}
	runTo(t, s, 10*Millisecond)
}
