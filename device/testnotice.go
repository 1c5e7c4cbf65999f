package device

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

// A test notice is one that an agent acks and that changes nothing for it: it says that the host's
// own address, as that of an initiator, is inactive. Agents ack what is complete and for an address
// of theirs, and then ignore what is about an initiator; and no agent has a controller to its own
// address, so that one that would act finds nothing to remove. A repetition of what the host knows
// would not do: the existing agent suppresses no duplicate, an 'active' begins its restraint anew
// and an 'inactive' disconnects. The host is told of its own address by nobody else, so the ack is
// no other notice's.

// testNotice is one that waits for its ack.
type testNotice struct {
	host netip.Addr
	port string
	seq  uint32
	sent time.Time
	done chan time.Duration // of one; how long the ack took
}

// SendTestNotice sends one over a port. The round trip is given to done.
func (c *Core) SendTestNotice(host netip.Addr, port string, done chan time.Duration, now time.Time) error {
	if err := c.acts("a test notice"); err != nil {
		return err
	}
	p := c.ports[port]
	if p == nil || !p.present || !p.Up() {
		return fmt.Errorf("port %s is down", port)
	}
	c.testSeq++
	payload, err := snsd.Packet{Version: snsd.Version, Extensions: snsd.ExtFence, Notices: []snsd.Notice{{Subject: host, Host: host, Seq: c.testSeq,
		State: snsd.Inactive, Reason: snsd.ReasonAgedOut, Service: snsd.Service{Role: snsd.RoleInitiator, Protocol: snsd.ProtocolRoCE}}}}.Append(nil)
	if err != nil {
		return err
	}
	sent := c.later(now) // before: an agent beside us answers within microseconds
	c.out.SendFrame(port, append(fabric.AppendEthernet(nil, fabric.MACNTS, p.MAC, fabric.EtherTypeNTS), payload...))
	c.tests = append(c.tests, &testNotice{host: host, port: port, seq: c.testSeq, sent: sent, done: done})
	return nil
}

// EndTestNotices forgets those whose acks go to done.
func (c *Core) EndTestNotices(done chan time.Duration) {
	rest := c.tests[:0]
	for _, t := range c.tests {
		if t.done != done {
			rest = append(rest, t)
		}
	}
	clear(c.tests[len(rest):])
	c.tests = rest
}

// testAcked reports whether an ack is that of a test notice.
func (c *Core) testAcked(port string, a snsd.Ack, at time.Time) bool {
	if a.Host != a.Subject {
		return false
	}
	for _, t := range c.tests {
		if t.host == a.Host && t.port == port && t.seq == a.Seq {
			select {
			case t.done <- at.Sub(t.sent):
			default: // an earlier one was acked already
			}
			return true
		}
	}
	return false
}

// TestTargets lists where a host is attached here.
func (c *Core) TestTargets(host netip.Addr) (list []api.TestNotice, elsewhere string) {
	for _, h := range c.View().Attachments(host) {
		if h.Device == c.self && c.client != nil {
			list = append(list, api.TestNotice{Host: host, Port: h.HostKey.Port, MAC: h.MAC})
		} else {
			elsewhere = fmt.Sprintf("; it is on device %s port %s: ask there", h.Device, h.HostKey.Port)
		}
	}
	return list, elsewhere
}
