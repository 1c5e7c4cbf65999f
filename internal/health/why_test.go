package health

import (
	"strings"
	"testing"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

// pair is an initiator of this device and a target of another one, of one zone, both well
// and told.
func pair() api.Why {
	here, there := addr("192.0.2.11"), addr("192.0.2.12")
	i, t := addr("192.0.2.101"), addr("192.0.2.9")
	return api.Why{Device: here, Synced: true, Shared: []string{"blue"}, Hosts: [2]api.WhyHost{
		{Addr: i, Attachments: []api.Host{{Addr: i, Type: api.Local, Device: here, Port: "Ethernet2", Role: snsd.RoleInitiator, State: snsd.Active, Zones: []string{"blue"}}}},
		{Addr: t, Attachments: []api.Host{{Addr: t, Type: api.Remote, Device: there, Port: "Ethernet1", Role: snsd.RoleTarget, State: snsd.Active, Zones: []string{"blue", "red"}}}},
	}, Told: []api.Told{{Host: i, Subject: t, Subscribes: true, Usable: true, Said: true, State: snsd.Active, Acked: true}}}
}

// The verdict is the first thing that keeps two hosts from each other.
func TestTheVerdictOnTwoHosts(t *testing.T) {
	down := func(w *api.Why) {
		b := &w.Hosts[1]
		b.Attachments[0].State, b.Attachments[0].Reason = snsd.Inactive, snsd.ReasonLinkDown
		b.Faults = []api.WhyFault{{Device: b.Attachments[0].Device, Port: "Ethernet1", Reason: snsd.ReasonLinkDown, Since: &now}}
		w.Told[0].State, w.Told[0].Reason = snsd.Inactive, snsd.ReasonLinkDown
	}
	for _, c := range []struct {
		name    string
		make    func(*api.Why)
		good    bool
		verdict string
		do      string
	}{
		{"well", func(*api.Why) {}, true, "192.0.2.101 and 192.0.2.9 share zone blue and can be reached; 192.0.2.101 was told so and has acked", ""},
		{"from a reflector", func(w *api.Why) {
			w.Device, w.Everything, w.Told, w.Hosts[0].Attachments[0].Type = addr("192.0.2.250"), true, nil, api.Remote
		}, true, "share zone blue and can be reached", "ask 192.0.2.11 or 192.0.2.12"},
		{"unknown here", func(w *api.Why) { w.Hosts[1].Attachments = nil }, false, "192.0.2.9 is not known here: no device has it, or it shares no zone", "ask a reflector"},
		{"unknown anywhere", func(w *api.Why) { w.Hosts[1].Attachments, w.Everything = nil, true }, false, "192.0.2.9 is not known in the fabric", "LLDP"},
		{"not synchronized", func(w *api.Why) { w.Hosts[1].Attachments, w.Synced = nil, false }, false, "not synchronized", "show peer"},
		{"not known at the last sync", func(w *api.Why) { w.Hosts[1].Attachments, w.Synced, w.LastSync = nil, false, &now }, false, "192.0.2.9 was not known here; not synchronized since 2026-05-04 12:00:00, deciding by what was known then", "show peer"},
		{"no zone at the last sync", func(w *api.Why) { w.Shared, w.Synced, w.LastSync = nil, false, &now }, false, "share no zone: the one is in zone blue, the other in zones blue, red; not synchronized since", "show peer"},
		{"well at the last sync", func(w *api.Why) { w.Synced, w.LastSync = false, &now }, false, "was told so and has acked; not synchronized since", "show peer"},
		{"port down, by the last sync", func(w *api.Why) { down(w); w.Synced, w.LastSync = false, &now }, false, "link-down on device 192.0.2.12", "show error-down --port Ethernet1, inofctl show port Ethernet1; see the sessions"},
		{"no zone", func(w *api.Why) { w.Shared = nil }, false, "share no zone: the one is in zone blue, the other in zones blue, red", "zone member add"},
		{"port down, told", down, false, "192.0.2.9 cannot be reached: link-down on device 192.0.2.12 port Ethernet1 since 2026-05-04 12:00:00; 192.0.2.101 was told that 192.0.2.9 is inactive (link-down), and has acked", "on device 192.0.2.12: inofctl show error-down --port Ethernet1"},
		{"port down, not acked", func(w *api.Why) { down(w); w.Told[0].Acked, w.Told[0].Retries = false, 4 }, false, "inactive (link-down), 5 time(s), and has not acked", "show error-down"},
		{"path down", func(w *api.Why) {
			down(w)
			w.Hosts[1].Faults = []api.WhyFault{{Device: addr("192.0.2.12"), Reason: snsd.ReasonBFDDown}}
		}, false, "the path to device 192.0.2.12 fails", "inofctl show bfd 192.0.2.12"},
		{"asks for nothing", func(w *api.Why) { w.Told[0] = api.Told{Host: w.Told[0].Host, Subject: w.Told[0].Subject} }, false, "192.0.2.101 has asked for no notices", "LLDP"},
		{"cable out", func(w *api.Why) { w.Told[0].Usable = false }, false, "no port over which it can be told", "show port"},
		{"cable out, another switch tells it", func(w *api.Why) {
			w.Told[0].Usable = false
			other := w.Hosts[0].Attachments[0]
			other.Type, other.Device, other.Port = api.Remote, addr("192.0.2.12"), "Ethernet7"
			w.Hosts[0].Attachments = append(w.Hosts[0].Attachments, other)
		}, true, "can be reached; 192.0.2.101 is told by device 192.0.2.12: its port here is down", ""},
		{"cables out at both switches", func(w *api.Why) {
			w.Told[0].Usable = false
			other := w.Hosts[0].Attachments[0]
			other.Type, other.Device, other.Port = api.Remote, addr("192.0.2.12"), "Ethernet7"
			w.Hosts[0].Attachments = append(w.Hosts[0].Attachments, other)
			w.Hosts[0].Faults = []api.WhyFault{{Device: other.Device, Port: other.Port, Reason: snsd.ReasonLinkDown}}
		}, false, "no port over which it can be told", "show port"},
		{"cable out, another host claims the address elsewhere", func(w *api.Why) {
			w.Told[0].Usable = false
			rival := w.Hosts[0].Attachments[0]
			rival.Type, rival.Device, rival.Conflict = api.Remote, addr("192.0.2.12"), true
			w.Hosts[0].Attachments = append(w.Hosts[0].Attachments, rival)
		}, false, "no port over which it can be told", "show port"},
		{"not told", func(w *api.Why) { w.Told[0].Said = false }, false, "was told nothing of 192.0.2.9", "show notice"},
		{"one role", func(w *api.Why) {
			w.Told[0].Said, w.Hosts[1].Attachments[0].Role = false, snsd.RoleInitiator
		}, false, "hosts of one role (initiator) are told nothing", "another role"},
		{"told the past", func(w *api.Why) { w.Told[0].State, w.Told[0].Reason = snsd.Inactive, snsd.ReasonBFDDown }, false, "was told that 192.0.2.9 is inactive", "show notice"},
		{"not acked", func(w *api.Why) { w.Told[0].Acked = false }, false, "1 time(s), and has not acked", "agent runs"},
	} {
		w := pair()
		c.make(&w)
		Explain(&w)
		if w.Good != c.good || !strings.Contains(w.Verdict, c.verdict) || !strings.Contains(w.Do, c.do) || !c.good && w.Do == "" || w.LastSync != nil && strings.Contains(w.Do, "zone") {
			t.Errorf("%s: good %v, %q, do %q", c.name, w.Good, w.Verdict, w.Do)
		}
	}
}
