package apitest

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

// sampleWhy is an initiator here and a target behind a port that is down, of which it was
// told; the reflector's clock is behind.
func sampleWhy() api.Why {
	a := netip.MustParseAddr
	at := func(d time.Duration) time.Time { return Now.Add(-time.Second + d) }
	self, far := a("192.0.2.11"), a("192.0.2.12")
	i, t := a("192.0.2.101"), a("192.0.2.9")
	return api.Why{Device: self, Synced: true, Shared: []string{"blue"},
		Hosts: [2]api.WhyHost{
			{Addr: i, Attachments: []api.Host{{Addr: i, Type: api.Local, Role: snsd.RoleInitiator, Device: self, Port: "Ethernet2", State: snsd.Active,
				Zones: []string{"blue", "green"}, Since: Now.Add(-26 * time.Hour)}}},
			{Addr: t, Attachments: []api.Host{{Addr: t, Type: api.Remote, Role: snsd.RoleTarget, Device: far, Port: "Ethernet1", State: snsd.Inactive,
				Reason: snsd.ReasonLinkDown, Zones: []string{"blue"}, Since: Now.Add(-90 * time.Minute)}},
				Faults: []api.WhyFault{{Device: far, Port: "Ethernet1", Reason: snsd.ReasonLinkDown, Since: ptr(at(0))}}},
		},
		Told: []api.Told{{Host: i, Subject: t, Subscribes: true, Usable: true, Said: true, Reason: snsd.ReasonLinkDown, Acked: true}},
		Notices: []api.Notice{{Seq: 8, Host: i, Subject: t, Reason: snsd.ReasonLinkDown, Port: "Ethernet2", Queued: ptr(at(700 * time.Microsecond)),
			Sent: ptr(at(800 * time.Microsecond)), Acked: ptr(at(time.Millisecond)), Status: api.NoticeAcked, SentToAcked: ptr(int64(200))}},
		Chain: []api.Step{
			{At: at(0), Device: far, What: "fault seen: device 192.0.2.12 port Ethernet1: link-down, 1 host address(es) unreachable"},
			{At: at(50 * time.Microsecond), Device: far, What: "taken up", After: ptr(int64(50))},
			{At: at(-2 * time.Millisecond), What: "read"},
			{At: at(700 * time.Microsecond), Device: self, What: "decided: 192.0.2.101 is to be told inactive (link-down)", After: ptr(int64(2700))},
			{At: at(800 * time.Microsecond), Device: self, What: "notice sent on port Ethernet2", After: ptr(int64(100))},
			{At: at(time.Millisecond), Device: self, What: "acked by 192.0.2.101\x1b[2J", After: ptr(int64(200))},
		},
		Verdict: "192.0.2.9 cannot be reached: link-down on device 192.0.2.12 port Ethernet1", Do: "on device 192.0.2.12: inofctl show port Ethernet1",
	}
}
