package hostagent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// host is a whole agent: its ports are a fake dataplane, its kernel is a fake with a path on each
// plane.
type host struct {
	t      *testing.T
	dp     *fabric.Fake
	kernel *hostkernel.Fake
	*Agent

	mu    sync.Mutex
	lines []Line
}

// newHost has the ports eth1 (self1) and eth2 (self2), with a controller over each.
func newHost(t *testing.T, ports ...Port) *host {
	t.Helper()
	h := &host{t: t, kernel: connected(t, DefaultOwner),
		dp: fabric.NewFake(fabric.FakeConfig{QueueFrames: 20_000}, fabric.Port{Name: "eth1", AdminUp: true, Carrier: true}, fabric.Port{Name: "eth2", AdminUp: true, Carrier: true})}
	if ports == nil {
		ports = []Port{cablePort("eth1", self1), cablePort("eth2", self2)}
	}
	h.Agent = New(h.dp, ports, nil, func(l Line) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lines = append(h.lines, l)
		return nil
	})
	policy := unfenced()
	policy.Options, policy.Connect = hostOptions, true
	actor := NewActor(h.kernel, policy, nil, nil, h.Report)
	h.Act(actor)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go actor.Run(ctx)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, a := range []netip.Addr{array1, array2} {
			h.kernel.Mend(a)
		}
		time.Sleep(5 * time.Minute) // what waits in the fake kernel comes to its end
	})
	synctest.Wait()
	return h
}

func cablePort(name string, addrs ...netip.Addr) Port {
	return Port{Farewell: true, Switch: []fabric.MAC{{2, 9, 9, 9, 9, 9}}, AgentConfig: snsd.AgentConfig{Interface: name, Addrs: addrs, Subscribes: true, Interval: 30 * time.Second, TTL: 120,
		Service: snsd.Service{Role: snsd.RoleInitiator, Protocol: snsd.ProtocolTCP}}}
}

// receive gives the host a frame.
func (h *host) receive(port string, payload []byte) {
	h.t.Helper()
	i := slices.IndexFunc(h.dp.Ports(), func(p fabric.Port) bool { return p.Name == port })
	frame := append(fabric.AppendEthernet(nil, fabric.MACNTS, fabric.MAC{2, 9, 9, 9, 9, 9}, fabric.EtherTypeNTS), payload...)
	if i < 0 {
		h.t.Fatalf("no port %s", port)
	}
	if err := h.dp.Inject(port, frame); err != nil {
		h.t.Fatal(err)
	}
}

// hear gives the host notices in one frame.
func (h *host) hear(port string, notices ...snsd.Notice) {
	h.t.Helper()
	if err := snsd.PackNotices(notices, snsd.Version, func(payload []byte) { h.receive(port, payload) }); err != nil {
		h.t.Fatal(err)
	}
}

// said are the frames that a port sent since the last time: registrations as "+ADDRESS NQN" or
// "-NUMBER", queries as "?ADDRESS", acks as "!SUBJECT/SEQUENCE".
func (h *host) said(port string) (list []string) {
	h.t.Helper()
	synctest.Wait()
	for _, b := range h.dp.Sent(port) {
		switch payload := b[14:]; uint16(b[12])<<8 | uint16(b[13]) {
		case fabric.EtherTypeLLDP:
			list = append(list, h.registration(payload))
		case fabric.EtherTypeNTS:
			p, err := snsd.ParsePacket(payload)
			if err != nil {
				h.t.Fatal(err)
			}
			for _, q := range p.Queries {
				list = append(list, "?"+q.String())
			}
			for _, a := range p.Acks {
				list = append(list, fmt.Sprintf("!%v/%d", a.Subject, a.Seq))
			}
		}
	}
	return list
}

// registration reads an LLDPDU.
func (h *host) registration(b []byte) (said string) {
	h.t.Helper()
	number, ttl := "", 0
	for len(b) >= 2 {
		typ, n := b[0]>>1, int(b[0]&1)<<8|int(b[1])
		value := b[2 : 2+n]
		switch b = b[2+n:]; typ {
		case 2: // Port ID: snsd_eth1_01
			number = string(value[n-1:])
		case 3: // TTL
			ttl = int(value[0])<<8 | int(value[1])
		case 127:
			r, err := snsd.ParseRegistration(value)
			if err != nil {
				h.t.Fatal(err)
			}
			said = strings.TrimSpace(fmt.Sprintf("+%v %s", r.Addr, r.Service.NQN))
		}
	}
	if ttl == 0 {
		return "-" + number
	}
	return said
}

func (h *host) wantSaid(port string, want ...string) {
	h.t.Helper()
	if got := h.said(port); !slices.Equal(got, want) {
		h.t.Errorf("%s sent %q, want %q", port, got, want)
	}
}
