package hostagent

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// want waits for the controllers to have states.
func (h *host) want(states string) {
	h.t.Helper()
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
	var list []string
	for n := range 2 {
		if c, err := h.kernel.Controller(n); err != nil {
			list = append(list, "-")
		} else {
			list = append(list, string(c.State))
		}
	}
	if got := strings.Join(list, " "); got != states {
		h.t.Errorf("controllers are %s, want %s", got, states)
	}
}

func (h *host) port(name string) PortStatus {
	h.t.Helper()
	s, err := h.Status(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range s.Ports {
		if p.Interface == name {
			return p
		}
	}
	h.t.Fatalf("no port %s", name)
	return PortStatus{}
}

// refused counts the lines that say so with a word.
func (h *host) refused(word string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lines {
		if l.Event == "refused" && strings.Contains(l.Error, word) {
			n++
		}
	}
	return n
}

// root is a root TLV as hex text, without its length.
func root(t *testing.T, kind byte, text string) []byte {
	t.Helper()
	value, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{kind, byte(len(value) >> 8), byte(len(value))}, value...)
}

// frame puts root TLVs behind a header.
func frame(roots ...[]byte) []byte {
	b := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	for _, r := range roots {
		b = append(b, r...)
	}
	b[2], b[3] = byte((len(b)-8)>>8), byte(len(b)-8)
	return b
}

// Frames of every malformed kind are refused, said and counted; the good word in the same frame is
// acted on, and so is the next frame.
func TestMalformedFramesHideNoNews(t *testing.T) {
	const addrs = "01 0004 c0000207 02 0004 c0000201 05 0004 00000009 "
	whole := func(name string, b []byte) {
		bubble(t, name, func(t *testing.T) {
			h := newHost(t)
			h.receive("eth1", b)
			synctest.Wait()
			if c := h.port("eth1").Counters.Received; c.Malformed+c.NewerVersion+c.BadRoots != 1 || h.refused("") != 1 {
				t.Errorf("%+v, %d said", c, h.refused(""))
			}
			h.kernel.Break(array1)
			h.hear("eth1", word(array1, snsd.Inactive, snsd.ReasonLinkDown, 8))
			h.want("connecting live")
		})
	}
	whole("empty", nil)
	whole("a header that is cut", []byte{1, 0, 0})
	whole("longer than it is", []byte{1, 0, 5, 0xdc, 0, 0, 0, 0})
	whole("a newer version", []byte{2, 0, 0, 0, 0, 0, 0, 0})
	for name, bad := range map[string][]byte{
		"an unknown kind":     root(t, 0x24, ""),
		"no addresses":        root(t, 0x21, "05 0004 00000009"),
		"no service":          root(t, 0x21, addrs+"06 0004 00000000 07 0004 00000001"),
		"a third state":       root(t, 0x21, addrs+"06 0004 00000002 07 0004 00000001 08 0007 01020000114400"),
		"an NQN that is cut":  root(t, 0x21, addrs+"06 0004 00000000 07 0004 00000001 08 0007 010200001144ff"),
		"two families":        root(t, 0x21, "01 0004 c0000207 04 0010 20010db8000000000000000000000001 05 0004 00000009 06 0004 00000000 07 0004 00000001 08 0007 01020000114400"),
		"a multicast subject": root(t, 0x21, "01 0004 e0000001 02 0004 c0000201 05 0004 00000009 06 0004 00000000 07 0004 00000001 08 0007 01020000114400"),
		"a sub-TLV too long":  root(t, 0x21, "01 00ff c0000207"),
	} {
		bubble(t, name, func(t *testing.T) {
			h := newHost(t)
			h.kernel.Break(array1)
			good := root(t, 0x21, addrs+"06 0004 00000000 07 0004 00000001 08 0007 01020000114400")
			h.receive("eth1", frame(bad, good))
			h.want("connecting live")
			if c := h.port("eth1").Counters.Received; c.BadRoots != 1 || c.Notices != 1 || h.refused("") != 1 {
				t.Errorf("%+v, %d said", c, h.refused(""))
			}
		})
	}
}

// A notice for an address that is not of this port is neither acked nor acted on.
func TestANoticeForAnotherAddressIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.said("eth1")
		n := word(array1, snsd.Inactive, snsd.ReasonLinkDown, 8)
		n.Host = netip.MustParseAddr("192.0.2.99")
		h.hear("eth1", n)
		h.hear("eth1", word(array2, snsd.Inactive, snsd.ReasonLinkDown, 9)) // of the other port
		h.want("live live")
		h.wantSaid("eth1")
		if c := h.port("eth1").Counters; c.NotOurs != 2 || h.refused("192.0.2.99") != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// Of a storm of 10,000 frames each word is acked, all that is new is acted on, and what is kept is
// bounded. Of more targets than there is room for, those that are not acted on are not acked.
func TestAStormOfFramesIsActedOnWhole(t *testing.T) {
	const frames = 10_000
	subject := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}) }
	of := func(i int, state snsd.State, reason snsd.Reason) snsd.Notice {
		n := word(subject(i), state, reason, uint32(i+1))
		n.Host = self1
		return n
	}
	bubble(t, "all new", func(t *testing.T) {
		h := newHost(t)
		h.kernel.Break(array1)
		h.said("eth1")
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range frames {
			if i == frames/2 { // in the midst of it
				h.hear("eth1", word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1_000_000))
			}
			h.hear("eth1", of(i, snsd.Inactive, snsd.ReasonLinkDown))
		}
		h.want("connecting live")
		if acks := len(h.said("eth1")); acks != frames+1 {
			t.Errorf("%d acks", acks)
		}
		p := h.port("eth1")
		if p.Counters.Received.Notices != frames+1 || len(p.Peers) != frames+1 {
			t.Errorf("%d peers, %+v", len(p.Peers), p.Counters)
		}
		h.mu.Lock()
		h.lines = nil // the test's own
		h.mu.Unlock()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
			t.Errorf("%d bytes are kept of it", grown)
		}
	})
	bubble(t, "more targets than there is room for", func(t *testing.T) {
		h := newHost(t)
		h.kernel.Break(array1)
		h.said("eth1")
		for i := range snsd.MaxAgentPairs + 100 {
			h.hear("eth1", of(i, snsd.Active, snsd.ReasonNone))
		}
		h.hear("eth1", word(array1, snsd.Inactive, snsd.ReasonLinkDown, 1_000_000))
		h.want("connecting live")
		if acks := len(h.said("eth1")); acks != snsd.MaxAgentPairs+1 {
			t.Errorf("%d acks", acks)
		}
		if p := h.port("eth1"); p.Counters.TableFull != 100 || len(p.Peers) != snsd.MaxAgentPairs {
			t.Errorf("%d peers, %+v", len(p.Peers), p.Counters)
		}
	})
	bubble(t, "the same again and again", func(t *testing.T) {
		h := newHost(t)
		h.said("eth1")
		for range frames {
			h.hear("eth1", of(0, snsd.Inactive, snsd.ReasonLinkDown))
		}
		h.kernel.Break(array1)
		h.hear("eth1", word(array1, snsd.Inactive, snsd.ReasonLinkDown, 7))
		h.want("connecting live")
		if p := h.port("eth1"); p.Counters.Duplicates != frames-1 || len(p.Peers) != 2 {
			t.Errorf("%+v", p.Counters)
		}
		if acks := len(h.said("eth1")); acks != frames+1 {
			t.Errorf("%d acks", acks)
		}
	})
	bubble(t, "a path that flaps", func(t *testing.T) {
		h := newHost(t)
		for i := range frames {
			n := word(array1, snsd.State(i%2), snsd.ReasonNone, uint32(i+1)) // ends inactive
			if n.State = snsd.Active; i%2 == 1 {
				n.State, n.Reason = snsd.Inactive, snsd.ReasonLinkDown
			}
			h.hear("eth1", n)
		}
		h.kernel.Break(array1)
		h.want("connecting live")
		s, err := h.Status(t.Context())
		if err != nil || len(s.Actions) > keptActions {
			t.Errorf("%d actions are kept, %v", len(s.Actions), err)
		}
	})
}

// A switch that says yes and no in one frame, under one number, in the past and again: the word
// that came last counts, and in between nothing is deleted that is said to be there.
func TestASwitchThatContradictsItself(t *testing.T) {
	active := func(seq uint32) snsd.Notice { return word(array1, snsd.Active, snsd.ReasonNone, seq) }
	gone := func(seq uint32) snsd.Notice { return word(array1, snsd.Inactive, snsd.ReasonZoneChanged, seq) }
	for name, c := range map[string]struct {
		words []snsd.Notice
		want  string
	}{
		"no, then yes":                {[]snsd.Notice{gone(7), active(8)}, "live live"},
		"yes, then no":                {[]snsd.Notice{active(7), gone(8)}, "- live"},
		"yes and no under one number": {[]snsd.Notice{active(7), gone(7)}, "- live"},
		"an older number, later":      {[]snsd.Notice{active(8), gone(7)}, "- live"},
		"no twice, for other reasons": {[]snsd.Notice{word(array1, snsd.Inactive, snsd.ReasonPacketError, 7), gone(8)}, "- live"},
	} {
		bubble(t, name, func(t *testing.T) {
			h := newHost(t)
			h.hear("eth1", c.words...)
			time.Sleep(time.Second)
			h.want(c.want)
			if p := h.port("eth1"); len(p.Peers) != 1 || p.Peers[0] != c.words[len(c.words)-1] {
				t.Errorf("%+v", p.Peers)
			}
			time.Sleep(time.Minute) // what is said to be there is connected again
			synctest.Wait()
			if c.want == "live live" {
				h.want("live live")
			}
		})
	}
}

// Two switches of one plane, as at a bond, tell of one path each under numbers of their own: the
// path is left at the first word, the second changes nothing, and it is connected again when the
// one that spoke last says so.
func TestTwoSwitchesOfOnePlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, cablePort("eth1", self1), cablePort("eth2", self1))
		h.kernel.Break(array1)
		h.hear("eth1", word(array1, snsd.Inactive, snsd.ReasonBFDDown, 100))
		h.want("connecting live")
		h.hear("eth2", word(array1, snsd.Inactive, snsd.ReasonLinkDown, 7))
		h.want("connecting live")
		h.wantSaidLast("eth1", "!192.0.2.7/100")
		h.wantSaidLast("eth2", "!192.0.2.7/7")
		h.kernel.Mend(array1)
		time.Sleep(5 * time.Second)
		h.want("live live")
		h.hear("eth2", word(array1, snsd.Active, snsd.ReasonNone, 8))
		h.hear("eth1", word(array1, snsd.Inactive, snsd.ReasonZoneChanged, 101)) // the last word
		time.Sleep(time.Second)
		h.want("- live")
		h.hear("eth1", word(array1, snsd.Active, snsd.ReasonNone, 102))
		time.Sleep(10 * time.Second)
		h.want("live live")
	})
}

func (h *host) wantSaidLast(port, want string) {
	h.t.Helper()
	if got := h.said(port); len(got) == 0 || got[len(got)-1] != want {
		h.t.Errorf("%s sent %q, want %q at last", port, got, want)
	}
}

// No silence disconnects anything: not that of the switch, nor of its link, nor the agent's own
// restart.
func TestSilenceDisconnectsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.hear("eth1", word(array1, snsd.Active, snsd.ReasonNone, 1))
		h.hear("eth2", word(array2, snsd.Active, snsd.ReasonNone, 1))
		time.Sleep(24 * time.Hour)
		h.want("live live")
		for _, p := range []string{"eth1", "eth2"} {
			if err := h.dp.SetCarrier(p, false); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		for n := range 2 {
			if _, err := h.kernel.Controller(n); err != nil {
				t.Error(err)
			}
		}
		for _, c := range h.kernel.Calls() {
			if strings.HasPrefix(c, "delete") {
				t.Error(c)
			}
		}
	})
}

// vanishing is a kernel whose controllers go while they are acted on.
type vanishing struct{ *hostkernel.Fake }

func (v vanishing) Controller(n int) (hostkernel.Controller, error) {
	c, err := v.Fake.Controller(n)
	if err == nil {
		_ = v.Delete(&c)
	}
	return c, err
}

func (v vanishing) HurryReconnect(c *hostkernel.Controller) (func() error, error) {
	_ = v.Delete(c)
	return v.Fake.HurryReconnect(c)
}

// What vanishes while it is acted on is no error, and the rest goes on.
func TestControllersThatVanishAreNoError(t *testing.T) {
	for _, reason := range []snsd.Reason{snsd.ReasonLinkDown, snsd.ReasonPacketError, snsd.ReasonZoneChanged} {
		bubble(t, fmt.Sprint(reason), func(t *testing.T) {
			b := newBench(t, DefaultOwner, nil)
			defer b.stop()
			b.Actor.kernel = vanishing{b.kernel}
			b.tell(word(array1, snsd.Inactive, reason, 1), 2*time.Second)
			b.Actor.kernel = b.kernel
			b.kernel.Break(array2)
			b.tell(word(array2, snsd.Inactive, snsd.ReasonLinkDown, 2), 300*time.Millisecond)
			if c, err := b.kernel.Controller(1); err != nil || c.State != hostkernel.Connecting {
				t.Errorf("the other path is %s, %v", c.State, err)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, act := range b.acts {
				if act.Subject == array1 && act.Error != "" {
					t.Error(act.Text())
				}
			}
		})
	}
}
